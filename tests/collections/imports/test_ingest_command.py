"""``manage.py ingest`` brings in archives, repositories and Chroma folders, and its exit code tells how it went."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import pytest
from django.core.management import call_command
from dulwich import porcelain

from apps.collections.models import Collection, Document, Import
from tenancy.scope import tenant_scope
from tests.cast import Cast
from tests.collections.collection.test_commands import NoHeartbeat
from tests.collections.conftest import LAMPS
from tests.collections.imports.support import make_zip

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture(autouse=True)
def quiet(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("jobs.runner.heartbeat", NoHeartbeat)


def ingest(cast: Cast, *args: str) -> tuple[int, str]:
    """Return the exit code and what the command printed."""
    out = io.StringIO()
    try:
        call_command("ingest", *args, "--tenant", cast.tenant.slug, "--collection", "trade", stdout=out)
    except SystemExit as ended:
        return int(str(ended.code)), out.getvalue()
    return 0, out.getvalue()


@pytest.fixture
def archive(tmp_path: Path) -> Path:
    path = tmp_path / "docs.zip"
    path.write_bytes(make_zip({"a/lamps.md": LAMPS, "logo.png": b"\x89PNG\r\n\x1a\n"}))
    return path


def test_archive_is_ready_when_no_worker_is_alive(cast: Cast, collection: Collection, archive: Path) -> None:
    code, printed = ingest(cast, str(archive), "--json")
    found = json.loads(printed)
    (document,) = found["documents"]
    assert (code, document["status"]) == (0, "ready")
    (row,) = found["imports"]
    assert (row["status"], row["entries"]["found"], row["entries"]["created"]) == ("completed", 2, 1)
    assert [(p["path"], p["is_skip"]) for p in row["problems"]] == [("logo.png", True)]
    with tenant_scope(cast.tenant.pk):
        assert Document.objects.get().path == "docs/a/lamps.md"


def test_second_call_changes_nothing(cast: Cast, collection: Collection, archive: Path) -> None:
    ingest(cast, str(archive))
    code, printed = ingest(cast, str(archive))
    assert code == 0
    assert "1 unchanged" in printed
    with tenant_scope(cast.tenant.pk):
        assert Document.objects.count() == 1


def test_exit_code_is_one_and_the_rest_is_ready_when_an_entry_failed(
    cast: Cast, collection: Collection, tmp_path: Path
) -> None:
    path = tmp_path / "mixed.zip"
    path.write_bytes(make_zip({"lamps.md": LAMPS, "../out.md": b"x"}))
    code, printed = ingest(cast, str(path))
    assert code == 1
    assert "ready   lamps.md" in printed
    assert "1 problems" in printed
    assert "unsafe_path" in printed


def test_exit_code_is_one_when_the_archive_cannot_be_read(
    cast: Cast, collection: Collection, tmp_path: Path
) -> None:
    path = tmp_path / "broken.zip"
    path.write_bytes(b"no archive")
    code, printed = ingest(cast, str(path))
    assert code == 1
    assert "broken.zip: failed" in printed


def test_address_that_is_not_public_is_refused_and_said(cast: Cast, collection: Collection) -> None:
    code, printed = ingest(cast, "--url", "http://127.0.0.1/", "--url", "http://example.org/")
    assert code == 1
    assert "127.0.0.1 is not a public address" in printed
    with tenant_scope(cast.tenant.pk):
        assert not Import.objects.exists()


@pytest.mark.servers
def test_repository_is_read_at_the_revision_asked_for(
    cast: Cast, collection: Collection, tmp_path: Path, settings: Any
) -> None:
    root = tmp_path / "repos" / "app"
    root.mkdir(parents=True)
    porcelain.init(str(root))
    commits = []
    for text in ("The first duty.", "The second duty."):
        (root / "guide.md").write_text(f"# Guide\n\n{text}")
        porcelain.add(str(root), paths=[str(root / "guide.md")])
        who = b"A <a@example.org>"
        commits.append(porcelain.commit(str(root), message=b"Change", author=who, committer=who).decode())
    refused, printed = ingest(cast, "--git", str(root))
    assert refused == 1
    assert "GROUNDWORK_IMPORT_PATHS" in printed
    settings.IMPORT_PATHS = [str(root.parent)]
    code, printed = ingest(cast, "--git", str(root), "--ref", commits[0], "--json")
    assert code == 0, printed
    found = json.loads(printed)
    assert found["imports"][0]["entries"]["commit"] == commits[0]
    assert [d["status"] for d in found["documents"]] == ["ready"]
    with tenant_scope(cast.tenant.pk):
        assert "first duty" in Document.objects.get().pages.get().text


def test_folder_of_the_server_keeps_its_paths(
    cast: Cast, collection: Collection, tmp_path: Path, settings: Any
) -> None:
    folder = tmp_path / "srv" / "book"
    (folder / "one").mkdir(parents=True)
    (folder / "one" / "lamps.md").write_bytes(LAMPS)
    settings.IMPORT_PATHS = [str(tmp_path / "srv")]
    code, printed = ingest(cast, "--folder", str(folder))
    assert code == 0, printed
    with tenant_scope(cast.tenant.pk):
        assert Document.objects.get().path == "book/one/lamps.md"
