"""Collections as a whole: deleting takes everything along, and nothing of others."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from apps.collections.collection import services as collection_services
from apps.collections.documents import services as documents_services
from apps.collections.models import Chunk, ChunkTerms, Collection, Document, Embedding, Page, TermFrequency
from basics.errors import Conflict, Denied, Invalid, Missing
from blobs import services as blobs
from jobs.models import JobStatus
from tenancy.scope import tenant_scope
from tests.cast import Cast
from tests.collections.conftest import LAMPS, ingest, job_of, upload
from tests.factories import make_collection, make_space

pytestmark = pytest.mark.django_db
CONTENT = (Document, Page, Chunk, Embedding, ChunkTerms, TermFrequency)


@pytest.fixture(autouse=True)
def scope(cast: Cast):
    with tenant_scope(cast.tenant.pk):
        yield


def test_deleting_takes_rows_files_and_jobs_along(
    cast: Cast, collection: Collection, storage: Path, django_capture_on_commit_callbacks
) -> None:
    other = make_collection(cast.tenant)
    kept = ingest(cast, other, "lamps.md", LAMPS)
    ingest(cast, collection, "lamps.md", LAMPS)
    waiting = upload(cast, collection, "b.txt", b"waits")
    with django_capture_on_commit_callbacks(execute=True):
        collection_services.collection_delete(
            tenant=cast.tenant, actor=cast.actor("admin"), collection=collection
        )
    assert job_of(waiting).status == JobStatus.CANCELLED
    for model in (Document, Chunk, Embedding, ChunkTerms, TermFrequency):
        documents = model.objects.all()
        assert documents.exists(), "the other collection keeps its rows"
    assert [d.pk for d in Document.objects.all()] == [kept.pk]
    assert not Embedding.objects.exclude(document_id=kept.pk).exists()
    assert [p for p in storage.rglob("*") if p.is_file()] == [storage / kept.file]


def test_deleting_documents_one_by_one_brings_the_statistics_to_nothing(
    cast: Cast, collection: Collection
) -> None:
    documents = [ingest(cast, collection, f"{n}.md", LAMPS + b"Number %d" % n) for n in range(3)]
    for document in documents:
        documents_services.document_delete(tenant=cast.tenant, actor=cast.actor("member"), document=document)
    collection.refresh_from_db()
    assert (collection.chunk_total, collection.term_total) == (0, 0)
    for model in CONTENT:
        assert not model.objects.exists(), model


def test_file_stays_while_another_document_of_the_collection_needs_it(
    cast: Cast, collection: Collection, storage: Path, django_capture_on_commit_callbacks: Any
) -> None:
    document = upload(cast, collection, "a.txt", b"same")
    with django_capture_on_commit_callbacks(execute=True):
        blobs.drop(cast.tenant.pk, document.file)
    assert (storage / document.file).is_file()


@pytest.mark.parametrize(
    ("found", "total", "share"), [(0, 0, None), (5, 5, 1.0), (1147, 1149, 0.99), (1, 3, 0.33)]
)
def test_fidelity_is_whole_only_when_nothing_is_lost(found: int, total: int, share: float | None) -> None:
    assert Document(identifiers_found=found, identifiers_total=total).identifier_fidelity == share


def test_name_is_taken_in_any_case_but_only_within_the_tenant(cast: Cast, collection: Collection) -> None:
    make: dict[str, Any] = {"actor": cast.actor("member"), "space": make_space()}
    with pytest.raises(Conflict, match="already"):
        collection_services.collection_create(tenant=cast.tenant, name="TRADE", **make)
    with tenant_scope(cast.other_tenant.pk):
        collection_services.collection_create(
            tenant=cast.other_tenant, actor=cast.actor("outsider"), name="Trade", space=make_space()
        )


@pytest.mark.parametrize(
    ("values", "field"),
    [
        ({"name": "  "}, "name"),
        ({"name": "x" * 121}, "name"),
        ({"name": "x", "chunk_size": 199}, "chunk_size"),
        ({"name": "x", "chunk_size": 4001}, "chunk_size"),
        ({"name": "x", "chunk_size": 400, "chunk_overlap": 200}, "chunk_overlap"),
        ({"name": "x", "chunk_overlap": -1}, "chunk_overlap"),
    ],
)
def test_collection_is_refused_when_its_values_are_wrong(
    cast: Cast, values: dict[str, Any], field: str
) -> None:
    with pytest.raises(Invalid) as refused:
        collection_services.collection_create(
            tenant=cast.tenant, actor=cast.actor("member"), space=make_space(), **values
        )
    assert field in refused.value.data["fields"]


def test_rights_are_asked_for_each_write(cast: Cast, collection: Collection) -> None:
    viewer, member = cast.actor("viewer"), cast.actor("member")
    document = upload(cast, collection, "a.txt", b"x")
    for refused in (
        lambda: collection_services.collection_create(tenant=cast.tenant, actor=viewer, name="x"),
        lambda: collection_services.collection_update(
            tenant=cast.tenant, actor=viewer, collection=collection, name="x"
        ),
        lambda: collection_services.collection_delete(
            tenant=cast.tenant, actor=member, collection=collection
        ),
        lambda: documents_services.document_retry(tenant=cast.tenant, actor=viewer, document=document),
        lambda: documents_services.document_cancel(tenant=cast.tenant, actor=viewer, document=document),
        lambda: documents_services.document_delete(tenant=cast.tenant, actor=viewer, document=document),
    ):
        with pytest.raises(Denied):
            refused()


def test_foreign_rows_are_missing_to_every_write(cast: Cast, collection: Collection) -> None:
    document = upload(cast, collection, "a.txt", b"x")
    outsider, theirs = cast.actor("outsider"), cast.other_tenant
    with tenant_scope(theirs.pk):
        for refused in (
            lambda: collection_services.collection_update(
                tenant=theirs, actor=outsider, collection=collection, name="x"
            ),
            lambda: collection_services.collection_delete(
                tenant=theirs, actor=outsider, collection=collection
            ),
            lambda: documents_services.document_retry(tenant=theirs, actor=outsider, document=document),
            lambda: documents_services.document_cancel(tenant=theirs, actor=outsider, document=document),
            lambda: documents_services.document_delete(tenant=theirs, actor=outsider, document=document),
        ):
            with pytest.raises(Missing):
                refused()
    document.refresh_from_db()
    assert document.status == "queued"
