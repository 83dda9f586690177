"""kill -9 in the middle of an import: the next one removes what it left, and brings the same workspace."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from django.db import connections

from basics.errors import Conflict
from erasure.ledger import fingerprint
from exports import imports, unfinished
from exports.imports import workspace_import
from exports.unfinished import unfinished_remove
from tenancy.models import Tenant
from tenancy.row_security import tenant_models
from tenancy.scope import platform_scope
from tests.exports.test_import_refused import everything, files, source
from tests.permissions.world import Side

__all__ = ["source"]
pytestmark = pytest.mark.django_db(transaction=True)

POINTS: dict[str, tuple[Any, str, int]] = {
    "before its workspace is committed": (os, "fsync", 1),
    "before its first file": (imports, "keep", 1),
    "after its first file": (imports._Import, "_people_find", 1),
    "at its first rows": (imports._Plan, "insert", 1),
    "among its rows": (imports._Plan, "insert", 9),
    "before the commit": (imports._Import, "_record", 1),
}


def killed(work: Callable[[], object], place: Any, name: str, nth: int) -> None:
    """Do some work in a process of its own, which is killed when it calls something for the nth time."""
    connections.close_all()  # the child must not speak on them
    child = os.fork()
    if child == 0:
        status = 1
        try:
            called, calls = getattr(place, name), 0

            def dies(*given: Any, **named: Any) -> Any:
                nonlocal calls
                calls += 1
                if calls == nth:
                    os.kill(os.getpid(), signal.SIGKILL)
                return called(*given, **named)

            setattr(place, name, dies)
            work()
        finally:
            os._exit(status)
    assert os.WTERMSIG(os.waitpid(child, 0)[1]) == signal.SIGKILL


def counts_of(tenant: Tenant) -> dict[str, int]:
    with platform_scope():
        return {m._meta.label: m._base_manager.filter(tenant_id=tenant.pk).count() for m in tenant_models()}


def notes(home: Path) -> list[Path]:
    return list((home / "run" / "imports").glob("*"))


@pytest.mark.parametrize("point", POINTS)
def test_the_next_import_removes_what_a_killed_one_left(
    source: tuple[Side, Side, Path], home: Path, point: str
) -> None:
    _, _, path = source
    whole = workspace_import(path, slug="whole")
    before, kept = everything(), files(home)
    killed(lambda: workspace_import(path, slug="elsewhere"), *POINTS[point])
    assert len(notes(home)) == 1
    made = workspace_import(path, slug="elsewhere")
    was_made = point != "before its workspace is committed"
    assert list(made.removed) == (["elsewhere"] if was_made else [])
    assert (made.rows, made.files, counts_of(made.tenant)) == (
        whole.rows,
        whole.files,
        counts_of(whole.tenant),
    )
    after = everything()
    assert after["Tenant"] == before["Tenant"] + 1
    assert {label: after[label] - before[label] for label in counts_of(made.tenant) if label in after} == {
        label: count for label, count in counts_of(made.tenant).items() if label in after
    }
    new = {
        name for name in files(home) - kept if not name.startswith("files/incoming/")
    }  # later uploads sweep these
    assert len(new) == made.files
    assert notes(home) == []


def test_a_workspace_that_has_arrived_stays_whatever_its_note_says(
    source: tuple[Side, Side, Path], home: Path
) -> None:
    """Its import died after the commit; later the operator closes the workspace, and imports another."""
    _, _, path = source
    killed(lambda: workspace_import(path, slug="elsewhere"), imports, "Imported", 1)
    arrived = Tenant.objects.get(slug="elsewhere")
    counts = counts_of(arrived)
    assert arrived.is_active
    assert len(notes(home)) == 1
    Tenant.objects.filter(pk=arrived.pk).update(is_active=False)
    with pytest.raises(Conflict, match="already taken"):
        workspace_import(path, slug="elsewhere")
    assert counts_of(arrived) == counts
    assert notes(home) == []


def test_a_note_of_an_import_under_way_and_of_another_row_remove_nothing(home: Path) -> None:
    tenant = Tenant.objects.create(name="Closed", slug="closed", is_active=False)
    with unfinished.import_noted() as note:
        note(tenant)
        assert unfinished_remove() == []
    other = home / "run" / "imports" / "other.json"
    other.write_text(json.dumps({"tenant": tenant.pk, "is": "0" * 64}))
    torn = home / "run" / "imports" / "torn.json"
    torn.write_text('{"tenant": ')
    assert unfinished_remove() == []
    assert Tenant.objects.filter(pk=tenant.pk).exists()
    other.write_text(json.dumps({"tenant": tenant.pk, "is": fingerprint(tenant)}))
    assert unfinished_remove() == ["closed"]
    assert not Tenant.objects.filter(pk=tenant.pk).exists()
    assert notes(home) == []


def test_what_cannot_be_removed_while_a_backup_copies_files_goes_at_the_next_import(
    source: tuple[Side, Side, Path], home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _, _, path = source
    before, kept = everything(), files(home)

    def fail(*_: object) -> None:
        raise OSError("no more")

    with monkeypatch.context() as patch:
        patch.setattr(imports._Import, "_record", fail)
        patch.setattr(unfinished, "workspace_files_erase", lambda *_: False)
        with pytest.raises(OSError, match="no more"):
            workspace_import(path, slug="elsewhere")
    assert len(notes(home)) == 1
    assert files(home) > kept
    assert unfinished_remove() == ["elsewhere"]
    assert (everything(), files(home), notes(home)) == (before, kept, [])
