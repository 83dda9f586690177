"""A process that is killed between the commit and the disk, or before the commit: the next access finds whole states."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from django.db import connections

from apps.collections.files import changes as files
from apps.collections.files import changes as files_changes
from apps.collections.files import selectors as file_selectors
from apps.collections.files import services as files_services
from apps.collections.models import Collection, Document, FileBatch
from apps.collections.tree.store import files_stored, trees_folder
from tenancy.scope import tenant_scope
from tests.cast import Cast

pytestmark = pytest.mark.django_db(transaction=True)


def killed(act: Callable[[], object]) -> None:
    """Run in a fork that must die by SIGKILL."""
    connections.close_all()
    pid = os.fork()
    if pid == 0:
        try:
            act()
        finally:
            os._exit(77)  # it was not killed where it should have been
    _, status = os.waitpid(pid, 0)
    assert os.WIFSIGNALED(status), f"ended with {os.WEXITSTATUS(status)}"
    assert os.WTERMSIG(status) == signal.SIGKILL


def die(*args: object, **kwargs: object) -> None:
    sys.stdout.flush()
    os.kill(os.getpid(), signal.SIGKILL)


@pytest.mark.parametrize("moment", ["_tree_follow", "audit_record"])
def test_next_access_finds_one_whole_state_when_process_is_killed(
    cast: Cast, collection: Collection, monkeypatch: pytest.MonkeyPatch, moment: str
) -> None:
    common: dict[str, Any] = {"tenant": cast.tenant, "actor": cast.actor("member"), "collection": collection}
    with tenant_scope(cast.tenant.pk):
        files_services.file_write(**common, path="kept.txt", content="old\n")
        files_services.file_write(**common, path="gone.txt", content="old\n")
    changes = [files_changes.FileChange("kept.txt", b"new\n"), files_changes.FileChange("gone.txt", None)]

    def act() -> None:
        with tenant_scope(cast.tenant.pk):
            files_changes.files_change(**common, changes=changes, action=FileBatch.Action.EDIT)

    with monkeypatch.context() as patched:
        patched.setattr(files, moment, die)
        killed(act)
    root = Path(trees_folder(), f"t{cast.tenant.pk}", str(collection.pk))
    assert (root / "kept.txt").read_bytes() == b"old\n"  # the disk was not reached in either case
    is_done = moment == "_tree_follow"
    with tenant_scope(cast.tenant.pk):
        assert FileBatch.objects.filter(action="edit").exists() is is_done
        names = {"kept.txt"} if is_done else {"kept.txt", "gone.txt"}
        assert set(files_stored(cast.actor("member"), collection.pk)) == names
        assert set(Document.objects.values_list("path", flat=True)) == names
        file_selectors.file_list(actor=cast.actor("member"), collection=collection)
        assert {path.name for path in root.iterdir()} == names
        read = file_selectors.file_read(actor=cast.actor("member"), collection=collection, path="kept.txt")
    assert read.lines == (["new"] if is_done else ["old"])
    assert (root / "kept.txt").read_bytes() == (b"new\n" if is_done else b"old\n")
