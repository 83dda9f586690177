"""The check that compares rows, statistics and files finds what is wrong, says it, and repairs what it can."""

from __future__ import annotations

import os
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from django.core.management import call_command

from apps.collections.collection.reconcile import Check, ingestion_check
from apps.collections.models import (
    Chunk,
    ChunkTerms,
    Collection,
    Document,
    Embedding,
    EmbeddingSpace,
    TermFrequency,
)
from basics.errors import Denied
from jobs.models import Job
from tenancy.scope import tenant_scope
from tests.cast import Cast
from tests.collections.conftest import LAMPS, attempt, ingest, upload

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def scope(cast: Cast):
    with tenant_scope(cast.tenant.pk):
        yield


def check(cast: Cast, *, repair: bool = False) -> Check:
    return ingestion_check(tenant=cast.tenant, actor=cast.actor("member"), repair=repair)


def codes(found: Check) -> list[str]:
    return [finding.code for finding in found.findings]


def aged(path: Path) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    if not path.exists():
        path.write_bytes(b"left")
    os.utime(path, (1, 1))
    return path


def test_nothing_is_found_when_all_is_well(cast: Cast, collection: Collection) -> None:
    ingest(cast, collection, "lamps.md", LAMPS)
    ingest(cast, collection, "lamps.md", LAMPS + b"\n\nMore.")  # an earlier version is well too
    found = check(cast)
    assert (found.findings, found.documents) == ([], 2)


def test_viewer_may_not_check(cast: Cast, collection: Collection) -> None:
    with pytest.raises(Denied):
        ingestion_check(tenant=cast.tenant, actor=cast.actor("viewer"))


def test_document_without_a_job_is_put_back_into_the_queue(cast: Cast, collection: Collection) -> None:
    document = upload(cast, collection, "lamps.md", LAMPS)
    Job.objects.update(status="failed")
    assert codes(check(cast)) == ["stuck"]
    assert check(cast, repair=True).open == []
    assert attempt(document).status == "ready"
    assert check(cast).findings == []


def test_lost_vector_is_found_and_the_document_read_again(cast: Cast, collection: Collection) -> None:
    document = ingest(cast, collection, "lamps.md", LAMPS)
    Embedding.objects.filter(chunk=Chunk.objects.order_by("pk")[0]).delete()
    assert codes(check(cast)) == ["ledger"]
    assert check(cast, repair=True).open == []
    attempt(Document.objects.get(version=2))
    document.refresh_from_db()
    assert document.live_to is not None


def test_wrong_count_is_counted_again(cast: Cast, collection: Collection) -> None:
    document = ingest(cast, collection, "lamps.md", LAMPS)
    Document.objects.update(chunk_count=99)
    assert check(cast, repair=True).open == []
    assert check(cast).findings == []
    assert Document.objects.get().chunk_count == document.chunk_count


def test_statistics_are_counted_again(cast: Cast, collection: Collection) -> None:
    ingest(cast, collection, "lamps.md", LAMPS)
    before = sorted(TermFrequency.objects.values_list("term", "chunks"))
    term = TermFrequency.objects.order_by("term")[0]
    TermFrequency.objects.filter(pk=term.pk).update(chunks=7)
    Collection.objects.update(term_total=1)
    assert codes(check(cast)) == ["statistics"]
    assert check(cast, repair=True).open == []
    assert check(cast).findings == []
    assert sorted(TermFrequency.objects.values_list("term", "chunks")) == before
    collection.refresh_from_db()
    assert collection.term_total == sum(ChunkTerms.objects.values_list("length", flat=True))


def test_vectors_of_an_unused_space_are_removed(cast: Cast, collection: Collection) -> None:
    ingest(cast, collection, "lamps.md", LAMPS)
    unused = EmbeddingSpace.objects.create(provider="test", model="old", dimensions=384, fingerprint="old")
    vector = Embedding.objects.all()[0]
    Embedding.objects.create(
        tenant=cast.tenant,
        chunk_id=vector.chunk_id,
        space=unused,
        collection=collection,
        document_id=vector.document_id,
        vector=vector.vector,
    )
    assert codes(check(cast)) == ["vectors_left"]
    check(cast, repair=True)
    assert not Embedding.objects.filter(space=unused).exists()
    assert check(cast).findings == []


def test_orphaned_original_and_images_are_removed_and_young_ones_left(
    cast: Cast, collection: Collection, storage: Path, django_capture_on_commit_callbacks: Any
) -> None:
    document = ingest(cast, collection, "lamps.md", LAMPS)
    aged(storage / document.file)
    orphan = aged(storage / f"t{cast.tenant.pk}/{collection.pk}/ab/abcd")
    young = storage / f"t{cast.tenant.pk}/{collection.pk}/cd/cdef"
    young.parent.mkdir(parents=True)
    young.write_bytes(b"arriving")
    foreign = aged(storage / f"t{cast.other_tenant.pk}/1/ab/abcd")
    images = storage.parent / "cache" / "pages" / f"t{cast.tenant.pk}" / "ab" / "abcd"
    images.mkdir(parents=True)
    os.utime(images, (1, 1))
    assert sorted(codes(check(cast))) == ["images_orphaned", "original_orphaned"]
    with django_capture_on_commit_callbacks(execute=True):
        assert check(cast, repair=True).open == []
    assert (orphan.exists(), images.exists()) == (False, False)
    assert all(path.exists() for path in (young, foreign, storage / document.file))


def test_lost_original_is_told_with_advice(cast: Cast, collection: Collection, storage: Path) -> None:
    document = ingest(cast, collection, "lamps.md", LAMPS)
    (storage / document.file).unlink()
    (finding,) = check(cast, repair=True).open
    assert (finding.code, finding.subject) == ("original_missing", "lamps.md")
    assert "Upload" in finding.advice


def test_command_says_what_it_found_and_ends_with_one(
    cast: Cast, collection: Collection, storage: Path
) -> None:
    ingest(cast, collection, "lamps.md", LAMPS)
    Document.objects.update(chunk_count=99)
    out = StringIO()
    with pytest.raises(SystemExit) as ended:
        call_command("ingestion_check", tenant=cast.tenant.slug, stdout=out)
    assert ended.value.code == 1
    assert "OPEN     ledger" in out.getvalue()
    out = StringIO()
    call_command("ingestion_check", tenant=cast.tenant.slug, repair=True, stdout=out)
    assert "1 findings, 0 open" in out.getvalue()
