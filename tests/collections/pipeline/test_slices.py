"""A document worked on in slices, some of which end in a death: nothing lost, nothing doubled, nothing seen halfway."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import contextmanager
from typing import Any

import pytest

from apps.collections.collection.reconcile import ingestion_check
from apps.collections.display import selectors
from apps.collections.documents.services import document_cancel, document_delete, document_retry
from apps.collections.index.postings import postings_note_late
from apps.collections.models import (
    Chunk,
    ChunkLink,
    ChunkTerms,
    Collection,
    Document,
    Embedding,
    Page,
    SearchIndex,
    Stage,
)
from apps.collections.pipeline import lexical_rows as pipeline_lexical
from apps.collections.pipeline import run as pipeline
from apps.collections.pipeline import stage as pipeline_stage
from apps.collections.pipeline import summaries
from apps.collections.search import LEGS, search_run
from apps.collections.storage import rows as pipeline_rows
from jobs import registry, runner
from jobs.context import JobContext, JobYielded
from jobs.models import Job, JobStatus
from tenancy.scope import tenant_scope
from tests.cast import Cast
from tests.collections.conftest import LAMPS, WordEmbedder, ingest, job_of, make_due, upload
from tests.collections.pipeline.test_run import counted_again, statistics

pytestmark = pytest.mark.django_db
PARTS = (b"# Part %d\n\nSentence number %d about tariffs and lamps. " % (i, i) * 3 for i in range(14))
TEXT = b"\n\n".join([LAMPS, *PARTS, b"The word zanzibar stands here alone.\n"])
ORDER = list(Stage.values)


@pytest.fixture(autouse=True)
def small_batches(cast: Cast, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(pipeline_rows, "PAGE_CHARS", 100)
    monkeypatch.setattr(pipeline, "CHUNK_BATCH", 3)
    monkeypatch.setattr(summaries, "WINDOW", 4)
    monkeypatch.setattr(pipeline, "EMBED_BATCH", 4)
    monkeypatch.setattr(pipeline_lexical, "INDEX_BATCH", 4)
    with tenant_scope(cast.tenant.pk):
        yield


def slice_run(document: Document, give_way: Callable[[], bool]) -> Job:
    """Run one slice as the runner does; ``give_way`` is asked at each point where it may end."""
    make_due(document)
    job = runner.claim(document.tenant_id, job_of(document).pk)
    assert job is not None
    context, error = JobContext(job, turn=give_way), None
    try:
        registry.get(job.kind).handler(context, **job.payload)
    except Exception as raised:  # noqa: BLE001 - recorded as the runner does
        error = raised
    if not isinstance(error, JobYielded | RuntimeError | None):
        raise error
    runner._finish(context, job, error)
    document.refresh_from_db()
    return job_of(document)


def found(cast: Cast, collection: Collection, words: str) -> set[int]:
    """Return the documents that any leg of a search finds."""
    return {
        hit.document_id
        for leg in LEGS
        for hit in search_run(
            tenant=cast.tenant,
            actor=cast.actor("owner"),
            collections=[collection],
            query=words,
            k=50,
            legs=[leg],
        ).hits
    }


def assert_agrees(cast: Cast) -> None:
    """The check of rows, counts, statistics and files finds nothing, also in the middle of the work."""
    assert ingestion_check(tenant=cast.tenant, actor=cast.actor("owner")).findings == []


def rows_of(document: Document) -> tuple[Any, ...]:
    """Return what was made of a document, without its ids."""
    links = ChunkLink.objects.filter(document=document).order_by("chunk__index", "target__index", "relation")
    return (
        list(
            Page.objects.filter(document=document)
            .order_by("number")
            .values_list("number", "text", "char_start")
        ),
        list(
            Chunk.objects.filter(document=document)
            .order_by("index")
            .values_list("index", "text", "key_points")
        ),
        list(links.values_list("chunk__index", "target__index", "relation")),
        Embedding.objects.filter(document_id=document.pk).count(),
        sorted(ChunkTerms.objects.filter(document_id=document.pk).values_list("chunk__index", "length")),
    )


def test_document_made_in_slices_is_the_same_as_in_one(cast: Cast, collection: Collection) -> None:
    other = ingest(cast, collection, "lamps.md", LAMPS)
    document = upload(cast, collection, "long.md", TEXT)
    before = statistics(collection)
    places, slices, looked = [], 0, set[str]()
    while document.status != "ready":
        job = slice_run(document, lambda: True)
        slices += 1
        assert slices < 200
        assert job.attempts <= 1, "a slice is no attempt"
        if document.status == "ready":
            break
        assert (document.status, job.status) == ("processing", JobStatus.QUEUED)
        places.append((ORDER.index(document.stage), document.progress_current))
        assert statistics(collection) == before, "what is not open does not weigh"
        if document.stage not in looked or (document.stage == "index" and slices % 2):
            looked.add(document.stage)
            assert found(cast, collection, "zanzibar tariffs sentence number") <= {other.pk}
            assert_agrees(cast)
    assert slices > 12
    assert places == sorted(places), "progress never jumps back"
    assert len(set(places)) > 8
    assert set(document.timings) == set(ORDER)
    assert document.pk in found(cast, collection, "zanzibar")
    assert statistics(collection) == counted_again(collection)
    assert selectors.document_ledger(actor=cast.actor("viewer"), document=document).agrees
    assert_agrees(cast)


@pytest.mark.parametrize("lives", [1, 2])
def test_nothing_is_lost_or_doubled_when_workers_die_between_and_in_slices(
    cast: Cast, collection: Collection, monkeypatch: pytest.MonkeyPatch, lives: int
) -> None:
    """Each worker ends ``lives`` slices in order, and the one after that dies in the middle of its first transaction."""
    document = upload(cast, collection, "long.md", TEXT)
    real = pipeline_stage.stage_writing
    dying = [False]

    def deadly(*args: Any, **kwargs: Any) -> Any:
        @contextmanager
        def opened() -> Any:
            with real(*args, **kwargs) as rows:
                yield rows
                if dying[0]:
                    dying[0] = False
                    raise RuntimeError("killed")

        return opened()

    for module in (pipeline, pipeline_lexical):
        monkeypatch.setattr(module, "stage_writing", deadly)
    Job.objects.filter(pk=job_of(document).pk).update(max_attempts=1000)
    rounds = 0
    while document.status != "ready":
        rounds += 1
        assert rounds < 400
        dying[0] = rounds % (lives + 1) == 0
        slice_run(document, lambda: True)
        dying[0] = False
    assert statistics(collection) == counted_again(collection)
    assert selectors.document_ledger(actor=cast.actor("viewer"), document=document).agrees
    assert_agrees(cast)
    made = rows_of(document)
    document_delete(tenant=cast.tenant, actor=cast.actor("member"), document=document)
    again = upload(cast, collection, "long.md", TEXT)
    while again.status != "ready":
        slice_run(again, lambda: True)
    assert rows_of(again) == made


@pytest.mark.parametrize("stage", ["embed", "index"])
def test_document_is_cancelled_or_deleted_between_two_slices(
    cast: Cast, collection: Collection, stage: str
) -> None:
    ingest(cast, collection, "lamps.md", LAMPS)
    before = statistics(collection)
    document = upload(cast, collection, "long.md", TEXT)
    while not (document.stage == stage and document.progress_current) and stage != document.stage:
        slice_run(document, lambda: True)
    if stage == "index":
        slice_run(document, lambda: True)
        assert ChunkTerms.objects.filter(document_id=document.pk).exists()
    document_cancel(tenant=cast.tenant, actor=cast.actor("member"), document=document)
    document.refresh_from_db()
    assert (document.status, job_of(document).status) == ("cancelled", "cancelled")
    assert statistics(collection) == before
    assert_agrees(cast)
    document_retry(tenant=cast.tenant, actor=cast.actor("member"), document=document)
    document.refresh_from_db()
    slice_run(document, lambda: True)
    document_delete(tenant=cast.tenant, actor=cast.actor("member"), document=document)
    assert statistics(collection) == before
    assert not ChunkTerms.objects.filter(document_id=document.pk).exists()
    assert_agrees(cast)


def test_links_of_windows_reach_back(cast: Cast, collection: Collection) -> None:
    """Neighbours are linked across the edges of windows, and nothing else claims to be a neighbour."""
    document = ingest(cast, collection, "long.md", TEXT)
    nexts = ChunkLink.objects.filter(document=document, relation="next").order_by("chunk__index")
    assert list(nexts.values_list("chunk__index", "target__index")) == [
        (index, index + 1) for index in range(document.chunk_count - 1)
    ]
    assert not Chunk.objects.filter(document=document, points_by="").exists()


def test_index_that_was_built_meanwhile_learns_of_late_rows(
    cast: Cast, collection: Collection, embedder: WordEmbedder
) -> None:
    document = ingest(cast, collection, "lamps.md", LAMPS)
    ids = sorted(Chunk.objects.filter(document=document).values_list("pk", flat=True))
    index = SearchIndex.objects.create(
        tenant=cast.tenant,
        collection=collection,
        kind=SearchIndex.Kind.POSTINGS,
        last_chunk=ids[-2],
        chunk_count=5,
        edited=[ids[0]],
    )
    postings_note_late(collection=collection, document_id=document.pk)
    index.refresh_from_db()
    assert index.edited == ids[:-1], "the last one lies behind the index and is scanned anyway"
