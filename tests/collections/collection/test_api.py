"""REST of collections: another tenant's ids do not exist, input is judged, errors have one shape."""

from __future__ import annotations

import io
import zipfile
from typing import Any

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client

from apps.collections.models import Collection
from tenancy.scope import tenant_scope
from tenancy.services import api_key_create
from tests.cast import Cast
from tests.collections.conftest import LAMPS, first_chunk, ingest
from tests.factories import make_collection, make_space

pytestmark = pytest.mark.django_db


class Api:
    """A client with an API key."""

    def __init__(self, cast: Cast, role: str, *scopes: str) -> None:
        membership = getattr(cast, role)
        with tenant_scope(membership.tenant_id):
            _, key = api_key_create(
                tenant=membership.tenant,
                actor=cast.actor(role),
                name="test",
                scopes=list(scopes),
                expires_at=None,
            )
        self.client = Client(headers={"Authorization": f"Bearer {key}"})

    def __call__(self, method: str, path: str, data: Any = None) -> Any:
        kind = {} if data is None else {"data": data, "content_type": "application/json"}
        return getattr(self.client, method)(f"/api/v1/{path}", **kind)


ALL = ("collection.*", "document.*", "search.run")


@pytest.fixture
def api(cast: Cast, collection: Collection) -> Api:
    return Api(cast, "owner", *ALL)


@pytest.fixture
def outside(cast: Cast, collection: Collection) -> Api:
    return Api(cast, "outsider", *ALL)


def test_foreign_ids_do_not_exist(cast: Cast, collection: Collection, outside: Api) -> None:
    with tenant_scope(cast.tenant.pk):
        document = ingest(cast, collection, "lamps.md", LAMPS)
        chunk = first_chunk(document)
    for method, path in (
        ("get", f"collections/{collection.pk}"),
        ("patch", f"collections/{collection.pk}"),
        ("delete", f"collections/{collection.pk}"),
        ("get", f"collections/{collection.pk}/documents"),
        ("get", f"documents/{document.pk}"),
        ("delete", f"documents/{document.pk}"),
        ("post", f"documents/{document.pk}/retry"),
        ("post", f"documents/{document.pk}/cancel"),
        ("get", f"chunks/{chunk.pk}"),
    ):
        answer = outside(method, path, {} if method in ("patch", "post") else None)
        assert answer.status_code == 404, (method, path)
        assert set(answer.json()) == {"code", "message", "details", "request_id"}
    answer = outside("post", "search", {"query": "lamps", "collections": [collection.pk]})
    assert answer.status_code == 404
    assert outside("post", "search", {"query": "lamps 8539.50.00"}).json()["hits"] == []
    assert outside("get", "collections").json()["results"] == []
    file = SimpleUploadedFile("a.txt", b"x")
    upload = outside.client.post(f"/api/v1/collections/{collection.pk}/documents", {"file": file})
    assert upload.status_code == 404


def test_key_may_do_only_what_its_scopes_say(cast: Cast, collection: Collection) -> None:
    reader = Api(cast, "owner", "collection.read")
    assert reader("get", "collections").status_code == 200
    assert reader("post", "collections", {"name": "x"}).status_code == 403
    assert reader("delete", f"collections/{collection.pk}").status_code == 403
    assert reader("post", "search", {"query": "x"}).status_code == 403
    assert Client().get("/api/v1/collections").status_code == 401


def test_collection_lives_and_dies(cast: Cast, api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("apps.collections.collection.services.space_default", lambda *, tenant: make_space())
    made = api("post", "collections", {"name": "Rules", "chunk_size": 800})
    assert made.status_code == 201
    body = made.json()
    assert (body["name"], body["chunk_size"], body["document_count"]) == ("Rules", 800, 0)
    taken = api("post", "collections", {"name": "RULES"})
    assert (taken.status_code, taken.json()["code"]) == (409, "collection_name_taken")
    path = f"collections/{body['id']}"
    assert api("patch", path, {"description": "Law"}).json()["description"] == "Law"
    assert api("patch", path, {"chunk_overlap": 400}).status_code == 400
    assert api("post", "collections", {"name": "a\x00b"}).status_code == 400
    assert api("delete", path).status_code == 204
    assert api("get", path).status_code == 404


def test_document_is_uploaded_read_and_deleted(cast: Cast, api: Api, collection: Collection) -> None:
    from tests.collections.conftest import attempt

    path = f"/api/v1/collections/{collection.pk}/documents"

    def send() -> Any:
        return api.client.post(path, {"file": SimpleUploadedFile("lamps.md", LAMPS)})

    first, again = send(), send()
    assert (first.status_code, first.json()["created"]) == (201, True)
    assert (again.status_code, again.json()["created"]) == (200, False)
    assert first.json()["id"] == again.json()["id"]
    pk = first.json()["id"]
    with tenant_scope(cast.tenant.pk):
        from apps.collections.models import Document

        attempt(Document.objects.get(pk=pk))
    body = api("get", f"documents/{pk}").json()
    assert body["status"] == "ready"
    assert body["ledger"]["agrees"] is True
    assert body["ledger"]["chunks"] == body["chunk_count"] > 0
    listed = api("get", f"collections/{collection.pk}/documents?status=ready").json()
    assert [d["id"] for d in listed["results"]] == [pk]
    assert api("get", f"collections/{collection.pk}/documents?status=odd").status_code == 400
    assert api("post", f"documents/{pk}/retry").status_code == 409
    assert api("delete", f"documents/{pk}").status_code == 204
    assert api("get", f"documents/{pk}").status_code == 404


def test_uploaded_archive_is_imported_as_the_portal_does(
    cast: Cast, api: Api, collection: Collection
) -> None:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        archive.writestr("law/lamps.md", LAMPS)
    path = f"/api/v1/collections/{collection.pk}/documents"
    taken = api.client.post(path, {"file": SimpleUploadedFile("law.zip", packed.getvalue())})
    assert (taken.status_code, taken.json()["source"]) == (202, "archive")
    assert api("get", f"imports/{taken.json()['id']}").json()["name"] == "law.zip"
    # A name that promises an archive and bytes that are none end in the import, with a reason.
    broken = api.client.post(path, {"file": SimpleUploadedFile("law2.zip", b"PK nothing")})
    assert broken.status_code == 202


def test_search_returns_passages_with_their_trace(cast: Cast, api: Api, collection: Collection) -> None:
    with tenant_scope(cast.tenant.pk):
        ingest(cast, collection, "lamps.md", LAMPS)
    body = api(
        "post", "search", {"query": "heading 8539.50.00", "collections": [collection.pk], "k": 2}
    ).json()
    assert body["identifiers"] == ["8539.50.00"]
    assert len(body["hits"]) == 2
    hit = body["hits"][0]
    assert hit["exact_rank"] == 1
    assert hit["document_name"] == "lamps.md"
    assert isinstance(hit["headings"], list)
    chunk = api("get", f"chunks/{hit['chunk_id']}").json()
    assert (chunk["text"], chunk["citation_id"]) == (hit["text"], f"c{hit['chunk_id']}")
    neighbour = chunk["next_id"] or chunk["previous_id"]
    assert chunk["id"] in (api("get", f"chunks/{neighbour}").json()[k] for k in ("next_id", "previous_id"))


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"query": ""},
        {"query": "x", "k": 0},
        {"query": "x", "k": 10**30},
        {"query": "x", "filters": {"color": 1}},
        {"query": "x", "filters": {"document_id": {"gt": 1}}},
        {"query": "x", "filters": []},
        {"query": "x", "collections": ["one"]},
        {"query": "x", "collections": [2**70]},
        {"query": "x", "legs": ["magic"]},
        {"query": "x", "legs": []},
        {"query": "x" * 5000},
        [],
        "text",
    ],
)
def test_search_is_refused_when_the_input_is_wrong(api: Api, body: Any) -> None:
    answer = api("post", "search", body)
    assert answer.status_code == 400
    assert set(answer.json()) == {"code", "message", "details", "request_id"}


def test_failed_and_partial_documents_show_no_chunks(cast: Cast, api: Api, collection: Collection) -> None:
    from apps.collections.models import Document

    with tenant_scope(cast.tenant.pk):
        document = ingest(cast, collection, "lamps.md", LAMPS)
        pk = first_chunk(document).pk
        Document.objects.filter(pk=document.pk).update(status="failed")
    assert api("get", f"chunks/{pk}").status_code == 404


def test_ids_beyond_the_database_are_not_found(api: Api) -> None:
    for path in ("collections", "documents", "chunks"):
        assert api("get", f"{path}/{10**30}").status_code == 404


def test_collections_are_listed_with_a_constant_number_of_queries(
    cast: Cast, api: Api, collection: Collection
) -> None:
    from django.db import connection
    from django.test.utils import CaptureQueriesContext

    def count() -> int:
        with CaptureQueriesContext(connection) as queries:
            assert api("get", "collections").status_code == 200
        return len(queries)

    count()
    before = count()
    for _ in range(4):
        make_collection(cast.tenant)
    assert count() == before
