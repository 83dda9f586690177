"""REST operations that a made-up request (tests/api/test_schema_fuzz.py) can hardly carry out, done once each."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from dulwich import porcelain

from apps.collections.ingestion.document_types import trade_compliance_data
from apps.collections.models import (
    Chunk,
    ChunkRevision,
    Collection,
    Document,
    FileRevision,
    Import,
    SpaceSwap,
)
from notices.models import Notice
from tenancy.scope import tenant_scope
from tests.cast import Cast
from tests.collections.collection.test_api import ALL, Api
from tests.collections.collection.test_swaps import other, work  # noqa: F401 - a fixture
from tests.collections.conftest import LAMPS, attempt, first_chunk, ingest
from tests.collections.imports.support import make_zip, run, start

pytestmark = pytest.mark.django_db


@pytest.fixture
def api(cast: Cast, collection: Collection) -> Api:
    return Api(cast, "owner", *ALL)


@pytest.fixture(autouse=True)
def _scope(cast: Cast) -> Iterator[None]:
    with tenant_scope(cast.tenant.pk):
        yield


def done(answer: Any, status: int = 200) -> Any:
    """Return what an answer of this status says."""
    assert answer.status_code == status, answer.content
    return answer.json() if answer.content else None


def test_earlier_version_is_restored_and_a_document_read_again(
    cast: Cast, collection: Collection, api: Api
) -> None:
    first = ingest(cast, collection, "lamps.md", LAMPS)
    ingest(cast, collection, "lamps.md", LAMPS + b"\nMore is to come.\n")
    first.refresh_from_db()
    assert first.live_to is not None
    made = done(api("post", f"documents/{first.pk}/restore"), 202)
    assert (made["version"], made["sha256"]) == (3, first.sha256)
    third = attempt(Document.objects.get(pk=made["id"]))
    assert (third.status, third.live_to) == ("ready", None)
    again = done(api("post", f"documents/{third.pk}/reindex"), 202)
    assert again["status"] == "queued"
    assert attempt(Document.objects.get(pk=again["id"])).status == "ready"


def test_chunk_gets_its_text_back(cast: Cast, collection: Collection, api: Api) -> None:
    chunk = first_chunk(ingest(cast, collection, "lamps.md", LAMPS))
    before = chunk.text
    done(api("patch", f"chunks/{chunk.pk}", {"text": "Something else altogether.", "note": "try"}))
    change = ChunkRevision.objects.get(chunk=chunk)
    done(api("post", f"chunk-changes/{change.pk}/restore"))
    assert Chunk.objects.get(pk=chunk.pk).text == before


def test_rules_for_types_are_set_and_shown(api: Api) -> None:
    rules = trade_compliance_data()
    assert done(api("put", "document-types", {"rules": rules}))["rules"] == rules
    assert done(api("get", "document-types"))["rules"] == rules


def test_patterns_of_codes_are_set_used_and_shown(cast: Cast, collection: Collection, api: Api) -> None:
    part = {"name": "part", "pattern": "PX[- ]?[0-9]{4}", "keep": "letters_digits"}
    patterns = {"version": 1, "kinds": [part]}
    assert done(api("get", "code-patterns")) == {"patterns": None, "late": []}
    assert done(api("put", "code-patterns", {"patterns": patterns}))["patterns"] == patterns
    assert api("put", "code-patterns", {"patterns": {"kinds": 1}}).status_code == 400
    ingest(cast, collection, "parts.md", b"# Parts\n\nThe pump is sold as PX-1234 since May.")
    found = done(api("post", "search", {"query": "Which one is px 1234?"}))
    told = {code["canonical"]: (code["code"], code["found"]) for code in found["codes"]}
    assert told == {"part:px1234": ("px 1234", "exact")}
    assert found["behind"] == 0
    assert done(api("put", "code-patterns", {"patterns": None}))["patterns"] is None


@pytest.mark.usefixtures("other")
def test_embedding_model_is_moved_to_another_and_back(cast: Cast, collection: Collection, api: Api) -> None:
    ingest(cast, collection, "lamps.md", LAMPS)
    begun = done(api("post", f"collections/{collection.pk}/swaps", {"embedder": "test/other"}), 202)
    work(SpaceSwap.objects.get(pk=begun["id"]))
    for step, status in (("switch", "switched"), ("undo", "undone")):
        assert done(api("post", f"swaps/{begun['id']}", {"step": step}))["status"] == status


def test_archive_is_imported_cancelled_and_retried(cast: Cast, collection: Collection, api: Api) -> None:
    archive = SimpleUploadedFile("trade.zip", make_zip({"lamps.md": LAMPS}))
    sent = api.client.post(
        f"/api/v1/collections/{collection.pk}/imports", {"source": "archive", "file": archive}
    )
    ident = done(sent, 202)["id"]
    assert done(api("post", f"imports/{ident}/cancel"), 202)["status"] == "cancelled"
    assert done(api("post", f"imports/{ident}/retry"), 202)["status"] == "queued"
    row = run(Import.objects.get(pk=ident))
    assert row.status == "completed"
    told = Notice.objects.get(tenant=cast.tenant, user=row.created_by)
    assert (told.kind, told.object_id, told.state) == ("import", ident, "completed")
    assert Document.objects.get(collection=collection).path == "trade/lamps.md"


def test_files_are_read_edited_moved_and_brought_back(collection: Collection, api: Api) -> None:
    base = f"collections/{collection.pk}/files"
    done(api("put", f"{base}/content", {"path": "src/a.py", "content": "x = 1\n"}))
    done(api("put", f"{base}/content", {"path": "src/b.py", "content": "x = 2\n"}))
    read = done(api("get", f"{base}/content?path=src/a.py"))
    assert (read["lines"], read["total_lines"]) == (["x = 1"], 1)
    assert done(api("get", f"{base}/syntax?path=src/a.py"))["problems"] == []
    assert "-x = 1\n+x = 2" in done(api("get", f"{base}/diff?path=src/a.py&other=src/b.py"))["diff"]
    edit = {"kind": "replace_text", "old": "x = 1", "text": "x = 7"}
    files = [{"path": "src/a.py", "expected": read["sha256"], "edits": [edit]}]
    done(api("post", f"{base}/edit", {"files": files, "note": "more"}))
    assert done(api("get", f"{base}/content?path=src/a.py"))["lines"] == ["x = 7"]
    done(api("post", f"{base}/undo", {}))
    assert done(api("get", f"{base}/content?path=src/a.py"))["lines"] == ["x = 1"]
    done(api("post", f"{base}/redo", {}))
    assert done(api("get", f"{base}/content?path=src/a.py"))["lines"] == ["x = 7"]
    first = FileRevision.objects.filter(path="src/a.py").order_by("pk")[0]
    done(api("post", f"{base}/restore", {"revision": first.pk}))
    assert done(api("get", f"{base}/content?path=src/a.py"))["lines"] == ["x = 1"]
    done(api("post", f"{base}/move", {"path": "src/a.py", "to": "lib/a.py"}))
    assert api("get", f"{base}/content?path=src/a.py").status_code == 404
    done(api("delete", f"{base}/content?path=lib/a.py"))
    assert api("get", f"{base}/content?path=lib/a.py").status_code == 404


@pytest.mark.servers
def test_repository_tells_state_commits_and_changes(
    cast: Cast, collection: Collection, api: Api, tmp_path: Path, settings: Any
) -> None:
    source = tmp_path / "source"
    source.mkdir()
    repo = porcelain.init(str(source))
    (source / "a.py").write_text("x = 1\n")
    porcelain.add(repo, paths=[str(source / "a.py")])
    who = b"Ann <ann@example.org>"
    porcelain.commit(repo, message=b"First", author=who, committer=who)
    repo.close()
    settings.IMPORT_PATHS = [str(tmp_path)]
    assert run(start(cast, collection, "git", path=str(source), into="")).status == "completed"
    done(api("put", f"collections/{collection.pk}/files/content", {"path": "a.py", "content": "x = 2\n"}))
    base = f"collections/{collection.pk}/git"
    assert done(api("get", f"{base}/status"))["changed"] == [{"path": "a.py", "kind": "modified"}]
    assert [c["subject"] for c in done(api("get", f"{base}/log"))["results"]] == ["First"]
    assert "-x = 1\n+x = 2" in done(api("get", f"{base}/diff"))["files"][0]["text"]
    made = done(api("post", f"{base}/commit", {"message": "Second", "paths": ["a.py"]}), 201)
    assert done(api("get", f"{base}/log"))["results"][0]["id"] == made["commit"]
    (line,) = done(api("get", f"{base}/blame?path=a.py"))["runs"]
    assert (line["id"], line["subject"]) == (made["commit"], "Second")
    assert api("post", f"{base}/commit", {"message": "Again"}).status_code == 409


def test_failed_import_is_started_again(cast: Cast, collection: Collection, api: Api) -> None:
    row = run(start(cast, collection, "archive", data=b"PK\x03\x04 cut", name="cut.zip"))
    assert row.status == "failed"
    assert done(api("post", f"imports/{row.pk}/retry"), 202)["status"] == "queued"
