"""Another embedding model with no downtime: built beside the live one, compared, switched, undone, dropped."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from apps.collections.collection import swaps
from apps.collections.documents import services as documents_services
from apps.collections.index import spaces
from apps.collections.models import Chunk, Collection, Document, Embedding, EmbeddingSpace, SpaceSwap
from apps.collections.search import search_run
from basics.errors import Conflict, DomainError, Invalid, Missing
from jobs import registry, runner
from jobs.context import JobContext
from jobs.models import Job
from tenancy.scope import tenant_scope
from tests.cast import Cast
from tests.collections.conftest import LAMPS, WordEmbedder, attempt, ingest, upload

pytestmark = pytest.mark.django_db
Status = SpaceSwap.Status


@pytest.fixture(autouse=True)
def scope(cast: Cast):
    with tenant_scope(cast.tenant.pk):
        yield


class OtherEmbedder(WordEmbedder):
    """The same words in other places: vectors that are worthless in the first space."""

    def embed_documents(self, texts: Any, *, on_progress: Any = None) -> Any:
        return np.roll(super().embed_documents(texts, on_progress=on_progress), 7, axis=1)


@pytest.fixture
def other(monkeypatch: pytest.MonkeyPatch, embedder: WordEmbedder) -> OtherEmbedder:
    """A second embedder, with a space of its own."""
    second = OtherEmbedder()
    space, _ = EmbeddingSpace.objects.get_or_create(
        provider="test", model="other", dimensions=384, fingerprint="other"
    )
    for module in (
        "apps.collections.pipeline.run",
        "apps.collections.search.run",
        "apps.collections.index.spaces",
    ):
        monkeypatch.setattr(
            f"{module}.embedder_for",
            lambda wanted, *, tenant: second if wanted.pk == space.pk else embedder,
        )
    monkeypatch.setattr("apps.collections.collection.swaps.space_for", lambda setting, *, tenant: space)
    return second


def start(cast: Cast, collection: Collection) -> SpaceSwap:
    return swaps.swap_start(
        tenant=cast.tenant, actor=cast.actor("member"), collection=collection, embedder="test/other"
    )


def work(swap: SpaceSwap) -> SpaceSwap:
    """Run the swap's job once, as the worker does."""
    swap.refresh_from_db()
    assert swap.job_id is not None
    job = runner.claim(swap.tenant_id, swap.job_id)
    assert job is not None
    context, error = JobContext(job), None
    try:
        registry.get(job.kind).handler(context, **job.payload)
    except Exception as raised:  # noqa: BLE001 - recorded as the runner does
        error = raised
    runner._finish(context, job, error)
    swap.refresh_from_db()
    return swap


def hits(cast: Cast, collection: Collection) -> list[int]:
    found = search_run(
        tenant=cast.tenant,
        actor=cast.actor("viewer"),
        collections=[Collection.objects.select_related("space").get(pk=collection.pk)],
        query="tariff of lamps",
        legs=("vector",),
    )
    return [hit.chunk_id for hit in found.hits]


def in_space(space: EmbeddingSpace) -> int:
    return Embedding.objects.filter(space=space).count()


def call(service: Any, cast: Cast, swap: SpaceSwap) -> SpaceSwap:
    result: SpaceSwap = service(tenant=cast.tenant, actor=cast.actor("member"), swap=swap)
    return result


def test_swap_builds_compares_switches_and_drops(
    cast: Cast, collection: Collection, other: OtherEmbedder
) -> None:
    ingest(cast, collection, "lamps.md", LAMPS)
    before = hits(cast, collection)
    swap = work(start(cast, collection))
    assert (swap.status, swap.done) == (Status.READY, Chunk.objects.count())
    assert swap.comparison["overlap"] == 1.0  # the same words, so the same neighbours
    assert hits(cast, collection) == before
    call(swaps.swap_switch, cast, swap)
    assert hits(cast, collection) == before
    collection.refresh_from_db()
    assert collection.space_id == swap.to_space_id
    work(call(swaps.swap_drop, cast, swap))
    assert (in_space(swap.from_space), in_space(swap.to_space)) == (0, Chunk.objects.count())
    assert hits(cast, collection) == before


def test_batch_of_vectors_that_is_kept_sets_the_deaths_of_workers_back(
    cast: Cast, collection: Collection, other: OtherEmbedder
) -> None:
    ingest(cast, collection, "lamps.md", LAMPS)
    swap = start(cast, collection)
    job = Job.objects.filter(pk=swap.job_id or 0)
    job.update(deaths=2)
    assert work(swap).status == Status.READY
    assert job.get().deaths == 0


def test_document_that_comes_meanwhile_is_found_before_and_after_the_switch_and_after_its_undoing(
    cast: Cast, collection: Collection, other: OtherEmbedder
) -> None:
    ingest(cast, collection, "lamps.md", LAMPS)
    swap = work(start(cast, collection))
    ingest(cast, collection, "more.md", b"# Tubes\n\nZirconium tubes have a tariff of lamps.\n")
    new = set(Chunk.objects.filter(document__name="more.md").values_list("pk", flat=True))
    assert new <= set(hits(cast, collection))
    call(swaps.swap_switch, cast, swap)
    assert new <= set(hits(cast, collection))
    ingest(cast, collection, "third.md", b"# Bulbs\n\nBulbs have a tariff of lamps too.\n")
    call(swaps.swap_undo, cast, swap)
    third = set(Chunk.objects.filter(document__name="third.md").values_list("pk", flat=True))
    assert new | third <= set(hits(cast, collection))
    work(swap)
    assert in_space(swap.to_space) == 0
    assert in_space(swap.from_space) == Chunk.objects.count()


def test_switch_waits_for_chunks_that_lack_a_vector(
    cast: Cast, collection: Collection, other: OtherEmbedder
) -> None:
    ingest(cast, collection, "lamps.md", LAMPS)
    swap = work(start(cast, collection))
    Embedding.objects.filter(space=swap.to_space, chunk=Chunk.objects.order_by("pk")[0]).delete()
    with pytest.raises(Conflict) as refused:
        call(swaps.swap_switch, cast, swap)
    assert (refused.value.code, refused.value.data) == ("swap_not_ready", {"missing": 1})
    assert work(swap).status == Status.READY
    assert call(swaps.swap_switch, cast, swap).status == Status.SWITCHED


def test_build_goes_on_where_it_was_killed(
    cast: Cast, collection: Collection, other: OtherEmbedder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(spaces, "BATCH", 2)
    ingest(cast, collection, "lamps.md", LAMPS * 6)
    swap = start(cast, collection)
    seen: list[int] = []

    def die(texts: Any) -> None:
        seen.append(len(texts))
        if len(seen) == 2:
            raise SystemExit

    other.on_texts = die
    with pytest.raises(SystemExit):
        work(swap)
    assert in_space(swap.to_space) == 2
    Job.objects.filter(pk=swap.job_id or 0).update(
        status="queued", worker="", lease_expires_at=None, run_after="2000-01-01T00:00Z"
    )
    assert work(swap).status == Status.READY
    assert in_space(swap.to_space) == Chunk.objects.count()


def test_failed_build_says_why_and_goes_on_when_told(
    cast: Cast, collection: Collection, other: OtherEmbedder
) -> None:
    ingest(cast, collection, "lamps.md", LAMPS)
    swap = start(cast, collection)

    def refuse(texts: Any) -> None:
        raise DomainError("embedder_down", "The embedder does not answer.")

    other.on_texts = refuse
    failed = work(swap)
    assert (failed.status, failed.error_message) == (Status.FAILED, "The embedder does not answer.")
    other.on_texts = None
    assert work(call(swaps.swap_retry, cast, swap)).status == Status.READY


def test_cancelled_swap_leaves_nothing(cast: Cast, collection: Collection, other: OtherEmbedder) -> None:
    ingest(cast, collection, "lamps.md", LAMPS)
    swap = work(start(cast, collection))
    assert work(call(swaps.swap_cancel, cast, swap)).status == Status.CANCELLED
    assert in_space(swap.to_space) == 0
    assert in_space(swap.from_space) == Chunk.objects.count()


def test_second_swap_and_the_same_space_are_refused(
    cast: Cast, collection: Collection, other: OtherEmbedder
) -> None:
    swap = start(cast, collection)
    with pytest.raises(Conflict) as refused:
        start(cast, collection)
    assert refused.value.code == "swap_open"
    call(swaps.swap_switch, cast, work(swap))
    call(swaps.swap_drop, cast, swap)
    with pytest.raises(Conflict) as refused:
        start(cast, collection)
    assert refused.value.code == "swap_same"


@pytest.mark.parametrize("embedder", ["", "0", "openai/text-embedding-3-small@9999", "local/other"])
def test_name_of_no_embedder_is_refused(cast: Cast, collection: Collection, embedder: str) -> None:
    with pytest.raises(Invalid) as refused:
        swaps.swap_start(
            tenant=cast.tenant, actor=cast.actor("member"), collection=collection, embedder=embedder
        )
    assert refused.value.code == "embedder_invalid"


def test_foreign_swap_does_not_exist(cast: Cast, collection: Collection, other: OtherEmbedder) -> None:
    swap = start(cast, collection)
    with tenant_scope(cast.other_tenant.pk), pytest.raises(Missing):
        swaps.swap_switch(tenant=cast.other_tenant, actor=cast.actor("outsider"), swap=swap)


def test_document_deleted_under_the_build_leaves_no_vector(
    cast: Cast, collection: Collection, other: OtherEmbedder
) -> None:
    document: Document = attempt(upload(cast, collection, "lamps.md", LAMPS))
    swap = start(cast, collection)

    def delete(texts: Any) -> None:
        other.on_texts = None
        documents_services.document_delete(tenant=cast.tenant, actor=cast.actor("member"), document=document)

    other.on_texts = delete
    assert work(swap).status == Status.READY
    assert Embedding.objects.count() == 0
