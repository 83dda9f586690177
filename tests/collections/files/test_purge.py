"""What is deleted is gone: also the bytes that the history of files keeps, under every path the file has had."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from apps.collections.collection import services as collection_services
from apps.collections.collection.reconcile import ingestion_check
from apps.collections.documents import services as documents_services
from apps.collections.files import changes, undo
from apps.collections.files import services as files_services
from apps.collections.models import (
    Chunk,
    ChunkTerms,
    Collection,
    Document,
    Embedding,
    FileBatch,
    FileBlob,
    FileRevision,
    Page,
)
from apps.collections.search import LEGS, search_run
from basics.errors import Missing
from tenancy.scope import tenant_scope
from tests.cast import Cast
from tests.collections.conftest import attempt
from tests.factories import make_collection

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def _scope(cast: Cast) -> Iterator[None]:
    with tenant_scope(cast.tenant.pk):
        yield


def common(cast: Cast, collection: Collection) -> dict[str, Any]:
    return {"tenant": cast.tenant, "actor": cast.actor("member"), "collection": collection}


def put(cast: Cast, collection: Collection, path: str, content: str) -> FileBatch:
    batch = files_services.file_write(**common(cast, collection), path=path, content=content)
    assert batch is not None
    return batch


def kept() -> list[str]:
    return sorted(bytes(blob.content).decode() for blob in FileBlob.objects.all())


def document(path: str) -> Document:
    found: Document = Document.objects.filter(path=path).order_by("version").reverse()[0]
    return found


def delete(cast: Cast, path: str) -> None:
    documents_services.document_delete(
        tenant=cast.tenant, actor=cast.actor("member"), document=document(path)
    )


def test_nothing_of_a_deleted_document_is_left_anywhere(cast: Cast, collection: Collection) -> None:
    for text in ("The secret code is 8539.50.00.\n", "The secret code is 8413.70.20.\n"):
        put(cast, collection, "secret.md", text)
        attempt(document("secret.md"))
    put(cast, collection, "other.md", "Harmless.\n")
    delete(cast, "secret.md")
    assert kept() == ["Harmless.\n"]
    assert list(FileRevision.objects.values_list("path", flat=True)) == ["other.md"]
    assert FileBatch.objects.count() == 1, "a change of which nothing is left is gone too"
    for model in (Chunk, ChunkTerms, Embedding, Page):
        assert model.objects.count() == 0
    for leg in LEGS:
        found = search_run(
            tenant=cast.tenant,
            actor=cast.actor("owner"),
            collections=[collection],
            query="secret code 8539.50.00",
            legs=(leg,),
        )
        assert found.hits == []
    assert ingestion_check(tenant=cast.tenant, actor=cast.actor("owner")).findings == []


def test_bytes_under_earlier_paths_go_too_and_those_of_others_stay(
    cast: Cast, collection: Collection
) -> None:
    put(cast, collection, "a.md", "Alpha one.\n")
    put(cast, collection, "a.md", "Alpha two.\n")
    moved = files_services.file_move(**common(cast, collection), path="a.md", to="b.md")
    put(cast, collection, "a.md", "Another file at the old place.\n")
    put(cast, collection, "b.md", "Alpha three.\n")
    assert len(kept()) == 4
    delete(cast, "b.md")
    assert kept() == ["Another file at the old place.\n"]
    assert not FileBatch.objects.filter(pk=moved.pk).exists()


def test_move_that_was_taken_back_leaves_nothing_either(cast: Cast, collection: Collection) -> None:
    put(cast, collection, "a.md", "Alpha.\n")
    batch = files_services.file_move(**common(cast, collection), path="a.md", to="b.md")
    undo.batch_undo(**common(cast, collection), batch=batch)
    delete(cast, "a.md")
    assert (kept(), FileRevision.objects.count()) == ([], 0)


def test_same_bytes_stay_as_long_as_another_history_has_them(cast: Cast, collection: Collection) -> None:
    second = make_collection(cast.tenant, "Second")
    put(cast, collection, "a.md", "The same.\n")
    put(cast, second, "a.md", "The same.\n")
    documents_services.document_delete(
        tenant=cast.tenant, actor=cast.actor("member"), document=Document.objects.get(collection=collection)
    )
    assert kept() == ["The same.\n"]
    collection_services.collection_delete(tenant=cast.tenant, actor=cast.actor("owner"), collection=second)
    assert kept() == []


def test_file_tools_delete_so_that_it_can_be_undone(cast: Cast, collection: Collection) -> None:
    put(cast, collection, "a.md", "Alpha.\n")
    batch = files_services.file_delete(**common(cast, collection), path="a.md")
    assert kept() == ["Alpha.\n"]
    undo.batch_undo(**common(cast, collection), batch=batch)
    assert document("a.md").name == "a.md"


def test_change_of_several_files_keeps_its_other_files(cast: Cast, collection: Collection) -> None:
    edits = [
        changes.FileChange(path, text.encode(), expected="")
        for path, text in (("a.md", "Alpha.\n"), ("b.md", "Beta.\n"))
    ]
    batch = changes.files_change(**common(cast, collection), changes=edits, action=FileBatch.Action.WRITE)
    delete(cast, "a.md")
    assert kept() == ["Beta.\n"]
    assert batch is not None
    assert batch.revisions.get().path == "b.md"
    undo.batch_undo(**common(cast, collection), batch=batch)
    with pytest.raises(Missing):
        files_services.file_delete(**common(cast, collection), path="b.md")


def test_check_finds_and_removes_bytes_that_no_change_names(cast: Cast, collection: Collection) -> None:
    put(cast, collection, "a.md", "Alpha.\n")
    FileBlob.objects.create(tenant=cast.tenant, sha256="e" * 64, size=4, content=b"left")
    who: Any = {"tenant": cast.tenant, "actor": cast.actor("owner")}
    (found,) = [f for f in ingestion_check(**who).findings if f.code == "contents_orphaned"]
    assert (found.subject, found.is_repaired) == ("e" * 12, False)
    ingestion_check(**who, repair=True)
    assert kept() == ["Alpha.\n"]
