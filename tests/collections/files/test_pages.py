"""Pages and REST of files: what they show, refuse and change."""

from __future__ import annotations

from typing import Any

import pytest
from django.test import Client
from django.urls import reverse

from apps.collections.documents import access
from apps.collections.files import services as files_services
from apps.collections.models import Collection, FileBatch, FileRevision
from tests.cast import Cast
from tests.collections.conftest import upload
from tests.collections.files.conftest import Write

pytestmark = pytest.mark.django_db


@pytest.fixture
def go(cast: Cast, collection: Collection, client: Client, scope: None) -> Any:
    client.force_login(cast.user("member"))

    def of(name: str, *more: Any, post: dict[str, Any] | None = None, **query: Any) -> Any:
        address = reverse(f"collections:{name}", args=[cast.tenant.slug, collection.pk, *more])
        return client.get(address, query) if post is None else client.post(address, post)

    return of


def test_file_is_written_shown_edited_and_brought_back_on_pages(go: Any, write: Write) -> None:
    made = go("file-edit", post={"path": "src/a.py", "content": "x = '<script>'\r\n", "note": "first"})
    assert made.status_code == 302
    assert b"src" in go("files").content
    page = go("file", path="src/a.py").content.decode()
    assert "&lt;script&gt;" in page
    assert "<script>'" not in page
    form = go("file-edit", path="src/a.py").content.decode()
    sha256 = FileRevision.objects.get().after.sha256
    assert sha256 in form
    saved = go("file-edit", post={"path": "src/a.py", "content": "x = 2\n", "expected": sha256})
    assert saved.status_code == 302
    stale = go("file-edit", post={"path": "src/a.py", "content": "x = 3\n", "expected": sha256})
    assert stale.status_code == 422
    assert "Read it again" in stale.content.decode()
    assert "x = 3" in stale.content.decode()
    revision = FileRevision.objects.order_by("-pk")[0]
    diff = go("file-revision", revision.pk).content.decode()
    assert "1 added" in diff
    assert "x = 2" in diff
    go("file-undo", post={})
    assert "&lt;script&gt;" in go("file", path="src/a.py").content.decode()
    go("file-redo", post={})
    first = FileRevision.objects.order_by("pk")[0]
    go("file-restore", post={"revision": first.pk})
    go("file-delete", post={"path": "src/a.py"})
    assert go("file", path="src/a.py").status_code == 404
    history = go("file-history").content.decode()
    assert history.count('class="card change') == FileBatch.objects.count() == 6


def test_pages_answer_a_refusal_not_an_error_when_input_is_hostile(go: Any, write: Write) -> None:
    write("a.txt", "x\n")
    for path in ("../a", "/etc/passwd", "a\0", "", "a.txt/b", "\u202ea.txt"):
        assert go("file", path=path).status_code in (400, 404)
        assert go("files", folder=f"{path}/x").status_code in (400, 404)
        assert go("file-edit", post={"path": path, "content": "x"}).status_code == 422
    assert go("file", path="a.txt", page="9999").status_code == 400
    for name in ("file-undo", "file-redo"):
        assert go(name, post={"change": "9" * 18}).status_code == 404
        assert go(name, post={"change": "x"}).status_code == 404
    assert go("file-restore", post={"revision": "x"}).status_code == 404
    assert go("file-history", path="a\0").status_code == 200


def test_limited_file_is_on_no_page_for_others(
    go: Any, cast: Cast, collection: Collection, write: Write
) -> None:
    document = upload(cast, collection, "pay-secret.txt", b"secret pay\n")
    access.document_access_set(
        tenant=cast.tenant, actor=cast.actor("owner"), document=document, is_restricted=True, roles=["owner"]
    )
    files_services.file_write(
        tenant=cast.tenant,
        actor=cast.actor("owner"),
        collection=collection,
        path="pay-secret.txt",
        content="more\n",
    )
    revision = FileRevision.objects.get()
    assert "pay-secret" not in go("files").content.decode()
    assert go("file", path="pay-secret.txt").status_code == 404
    assert go("file-edit", path="pay-secret.txt").status_code == 404
    assert "pay-secret" not in go("file-history").content.decode()
    assert go("file-revision", revision.pk).status_code == 404
    assert go("file-restore", post={"revision": revision.pk}).status_code == 404


def test_rest_reads_writes_edits_and_tells_stale_edits(
    cast: Cast, collection: Collection, client: Client, scope: None
) -> None:
    client.force_login(cast.user("member"))
    base = f"/api/v1/collections/{collection.pk}/files"

    def send(method: str, path: str, body: Any = None) -> Any:
        options: dict[str, Any] = {"headers": {"X-Tenant": cast.tenant.slug}}
        if body is not None:
            options |= {"data": body, "content_type": "application/json"}
        return getattr(client, method)(f"{base}{path}", **options)

    made = send("put", "/content", {"path": "a.py", "content": "  x = 1\n", "expected": ""}).json()
    sha256 = made["change"]["revisions"][0]["after"]
    read = send("get", "/content?path=a.py").json()
    assert (read["lines"], read["sha256"]) == (["  x = 1"], sha256)
    edit = {
        "files": [
            {"path": "a.py", "expected": sha256, "edits": [{"kind": "replace_lines", "line": 1, "text": "y"}]}
        ]
    }
    assert send("post", "/edit", edit).status_code == 200
    again = send("post", "/edit", edit)
    assert (again.status_code, again.json()["code"]) == (409, "file_stale")
    assert send("post", "/undo", {}).json()["change"]["undoes_id"]
    assert send("get", "/content?path=a.py").json()["sha256"] == sha256
    assert [c["action"] for c in send("get", "/changes").json()["results"]] == ["undo", "edit", "write"]
    assert send("get", "/search?query=x").json()["matches"][0]["line"] == 1
    for bad in (
        "/search?query=(&kind=regex",
        "/search?query=x&kind=y",
        "/content",
        "/content?path=../x",
        "?offset=-1",
        "?folder=/x",
    ):
        assert send("get", bad).status_code == 400
    for path in ("a\0b", "\ud800", "../x"):
        for body in (
            {"path": path, "content": "x", "note": path},
            {"path": "n.txt", "content": path, "note": path},
        ):
            assert send("put", "/content", body).status_code in (200, 400)
        assert send("delete", "/content", {"path": path}).status_code in (400, 404)
        assert send("post", "/move", {"path": path, "to": path}).status_code in (400, 404)
    assert send("put", "/rules", {"read_only": True}).json()["read_only"] is True
    refused = send("put", "/content", {"path": "b.py", "content": ""})
    assert (refused.status_code, refused.json()["code"]) == (403, "files_read_only")
    assert send("put", "/rules", {"nonsense": 1}).status_code == 400
