"""The commands: exit codes tell, and JSON is for programs."""

from __future__ import annotations

import io
import json
from pathlib import Path

import pytest
from django.core.management import CommandError, call_command

from apps.collections.models import Collection, Document
from jobs.context import JobContext
from tenancy.scope import tenant_scope
from tests.cast import Cast
from tests.collections.conftest import LAMPS
from tests.factories import make_space

pytestmark = pytest.mark.django_db(transaction=True)


class NoHeartbeat:
    """The real one is a thread with a connection, which would outlive the test database."""

    def add(self, context: JobContext) -> None:
        """Take no care."""

    def remove(self, context: JobContext) -> None:
        """Take no care."""


@pytest.fixture(autouse=True)
def quiet(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("jobs.runner.heartbeat", NoHeartbeat)


def run(command: str, *args: str, to: io.StringIO | None = None) -> str:
    out = to or io.StringIO()
    call_command(command, *args, stdout=out)
    return out.getvalue()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    folder = tmp_path / "in"
    folder.mkdir()
    (folder / "lamps.md").write_bytes(LAMPS)
    (folder / "program.exe").write_bytes(b"MZ")
    return folder


def test_files_are_ready_when_no_worker_is_alive(cast: Cast, collection: Collection, folder: Path) -> None:
    args = ("--tenant", cast.tenant.slug, "--collection", "trade", "--json")
    found = json.loads(run("ingest", str(folder), *args))
    (document,) = found["documents"]
    assert (document["name"], document["status"]) == ("lamps.md", "ready")
    (skipped,) = found["skipped"]
    assert skipped["path"].endswith("program.exe")
    assert ".exe are not read from folders" in skipped["message"]
    shown = json.loads(run("search", "8539.50.00", *args))
    assert shown["hits"][0]["document_name"] == "lamps.md"
    assert "exact 1" in run("search", "8539.50.00", "--tenant", cast.tenant.slug)


def test_exit_code_is_one_when_a_file_failed(cast: Cast, collection: Collection, folder: Path) -> None:
    (folder / "empty.txt").touch()
    (folder / "odd.txt").write_bytes("Müller zahlt für Äpfel. ".encode().decode("latin-1").encode() * 3)
    told = io.StringIO()
    with pytest.raises(SystemExit) as ended:
        run("ingest", str(folder), "--tenant", cast.tenant.slug, "--collection", "Trade", to=told)
    assert ended.value.code == 1
    assert "warning: Letters are garbled" in told.getvalue()
    assert "skipped" in told.getvalue()
    with tenant_scope(cast.tenant.pk):
        assert set(Document.objects.values_list("status", flat=True)) == {"ready", "failed"}


def test_collection_is_made_only_when_asked(
    cast: Cast, collection: Collection, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("apps.collections.collection.services.space_default", lambda *, tenant: make_space())
    args = (str(folder), "--tenant", cast.tenant.slug, "--collection", "New")
    with pytest.raises(CommandError, match="--create"):
        run("ingest", *args)
    run("ingest", *args, "--create")
    with tenant_scope(cast.tenant.pk):
        assert Collection.objects.filter(name="New").exists()


def test_other_tenants_collection_is_not_there(cast: Cast, collection: Collection) -> None:
    with pytest.raises(CommandError, match="no collection"):
        run("search", "x", "--tenant", cast.other_tenant.slug, "--collection", str(collection.pk))


@pytest.mark.parametrize(
    "args", [("--tenant", "nowhere"), ("--tenant", "{slug}", "--filters", '{"color": 1}')]
)
def test_command_says_what_is_wrong(cast: Cast, args: tuple[str, ...]) -> None:
    with pytest.raises(CommandError, match="Known"):
        run("search", "x", *(a.replace("{slug}", cast.tenant.slug) for a in args))
