"""Key points and links by a model: paid for once, kept whatever happens, and done without when the model fails."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from apps.collections.collection.reconcile import ingestion_check
from apps.collections.documents import services as documents_services
from apps.collections.documents import summaries as documents_summaries
from apps.collections.models import Chunk, ChunkLink, Collection, Document, LinkOrigin, Stage
from apps.collections.pipeline import run as pipeline
from apps.collections.pipeline import summaries, summaries_model
from basics.errors import Conflict
from jobs import registry, runner
from jobs.context import JobContext
from jobs.models import Job, JobStatus
from runs import remote_models
from runs.models import UsageRecord
from tenancy.scope import tenant_scope
from tests.cast import Cast
from tests.collections.conftest import attempt, ingest, make_due, upload
from tests.fake_provider import FakeProvider, running
from toolloop.limits import Limits

pytestmark = pytest.mark.django_db
TEXT = b"\n\n".join(
    b"# Part %d\n\nLamps of lot %d pay %d percent when they come by sea. The invoice INV-%d names them all. "
    % (n, n, n, 1000 + n)
    * 3
    for n in range(20)
)
MODEL = "fake-points"


@pytest.fixture(autouse=True)
def scope(cast: Cast) -> Iterator[None]:
    with tenant_scope(cast.tenant.pk):
        yield


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeProvider]:
    """A model server whose model answers about every passage it is shown."""
    remote_models._known.clear()
    quick = Limits(max_steps=1, max_seconds=20, max_retries=1, retry_min_s=0.01, retry_max_s=0.02)
    monkeypatch.setattr(summaries_model, "LIMITS", quick)
    with running() as (url, fake):
        monkeypatch.setenv("GROUNDWORK_COMPATIBLE_BASE_URL", url)
        monkeypatch.setenv("GROUNDWORK_COMPATIBLE_MODELS", MODEL)
        fake.replies[MODEL] = answer
        yield fake


@pytest.fixture
def modelled(collection: Collection, server: FakeProvider) -> Collection:
    """The collection, summarised by a model."""
    collection.links_by, collection.links_model = LinkOrigin.MODEL, f"compatible/{MODEL}"
    collection.save()
    return collection


def asked(body: dict[str, Any]) -> tuple[list[int], list[int]]:
    """Return the indexes of the passages and of those elsewhere that a request shows, or one to repair its answer."""
    prompt = next(m["content"] for m in body["messages"] if m["role"] == "user")
    window, _, elsewhere = prompt.partition("Elsewhere:")
    found = [[int(n) for n in re.findall(r'chunk_index="(\d+)"', part)] for part in (window, elsewhere)]
    return found[0], found[1]


def answer(body: dict[str, Any]) -> str:
    """Answer as a good model does."""
    window, elsewhere = asked(body)
    links = [
        {"chunk_index": a, "target_index": b, "relation": "supports", "common_topic": "lamps"}
        for a, b in zip(window, [*window[1:], *elsewhere[:1]], strict=False)
    ]
    points = [{"chunk_index": n, "points": [f"Point of {n}.", "Lamps pay."]} for n in window]
    return json.dumps({"passages": points, "links": links})


def by(document: Document) -> dict[str, int]:
    found: dict[str, int] = {}
    for origin in Chunk.objects.filter(document=document).values_list("points_by", flat=True):
        found[origin] = found.get(origin, 0) + 1
    return found


def run_job(job: Job) -> Job:
    """Run one attempt of a job as the worker does."""
    claimed = runner.claim(job.tenant_id, job.pk)
    assert claimed is not None, "the job is not waiting"
    context = JobContext(claimed)
    error: BaseException | None = None
    try:
        registry.get(claimed.kind).handler(context, **claimed.payload)
    except Exception as raised:  # noqa: BLE001 - recorded as the runner does
        error = raised
    runner._finish(context, claimed, error)
    job.refresh_from_db()
    return job


def test_points_and_links_are_the_models_when_it_answers(
    cast: Cast, modelled: Collection, server: FakeProvider
) -> None:
    document = ingest(cast, modelled, "lots.md", TEXT)
    assert (document.status, document.warnings) == ("ready", [])
    assert by(document) == {"model": document.chunk_count}
    chunk = Chunk.objects.get(document=document, index=3)
    assert chunk.key_points == ["Point of 3.", "Lamps pay."]
    links = ChunkLink.objects.filter(document=document, made_by="model")
    forward = set(links.filter(relation="supports").values_list("chunk__index", "target__index"))
    back = set(links.filter(relation="supported_by").values_list("target__index", "chunk__index"))
    assert (3, 4) in forward
    assert forward == back, "both directions are stored"
    assert ChunkLink.objects.filter(document=document, made_by="rule").exists()
    windows = [asked(entry)[0] for entry in server.log]
    assert sorted(n for window in windows for n in window) == list(range(document.chunk_count))
    records = list(UsageRecord.objects.all())
    assert len(records) == len(windows) > 1
    assert {row.kind for row in records} == {"summary"}
    assert records[0].attribution["document"] == document.pk
    assert records[0].user_id == cast.user("member").pk
    assert document.timings["summarise"] > 0
    assert ingestion_check(tenant=cast.tenant, actor=cast.actor("member")).findings == []


def test_chunks_with_a_models_points_are_not_paid_for_again_when_the_worker_dies(
    cast: Cast, modelled: Collection, server: FakeProvider
) -> None:
    def dies_once(body: dict[str, Any]) -> str:
        if len(server.log) == 2:
            raise_at.append(1)
        return answer(body)

    raise_at: list[int] = []
    real = summaries.links_insert

    def dying(*args: Any, **kwargs: Any) -> int:
        if raise_at:
            raise_at.clear()
            raise RuntimeError("killed before the second window was written")
        return real(*args, **kwargs)

    server.replies[MODEL] = dies_once
    document = upload(cast, modelled, "lots.md", TEXT)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(summaries_model, "links_insert", dying)
        attempt(document)
    assert (document.status, document.stage) == ("processing", "summarise")
    assert by(document)["model"] == summaries_model.WINDOW
    make_due(document)
    attempt(document)
    assert (document.status, by(document)) == ("ready", {"model": document.chunk_count})
    windows = [tuple(asked(entry)[0]) for entry in server.log]
    assert len(windows) == len(set(windows)) + 1, "only the window that was not written is repeated"
    assert windows[1] == windows[2]
    assert UsageRecord.objects.count() == len(windows), "what was paid is recorded, answered or not"


@pytest.mark.parametrize(
    ("failure", "requests"),
    [
        (401, 1),  # no use in asking again
        (500, 2),  # the loop's own retry, then the pass is given up
        ("no json at all", 9),  # three windows, each repaired twice
    ],
)
def test_document_is_ready_with_links_by_rule_and_says_so_when_the_model_fails(
    cast: Cast, modelled: Collection, server: FakeProvider, failure: Any, requests: int
) -> None:
    server.replies[MODEL] = lambda body: failure
    document = ingest(cast, modelled, "lots.md", TEXT * 2)
    assert document.status == "ready"
    assert by(document) == {"rule": document.chunk_count}
    assert set(ChunkLink.objects.filter(document=document).values_list("made_by", flat=True)) == {"rule"}
    (warning,) = document.warnings
    assert warning.startswith(f"{summaries_model.WARNING}{document.chunk_count} of")
    assert len(server.log) == requests

    server.replies[MODEL] = answer
    job = documents_summaries.document_summarise_again(
        tenant=cast.tenant, actor=cast.actor("member"), document=document
    )
    before = set(Chunk.objects.filter(document=document).values_list("pk", flat=True))
    assert run_job(job).status == JobStatus.SUCCEEDED
    document.refresh_from_db()
    assert (document.status, document.warnings) == ("ready", [])
    assert by(document) == {"model": document.chunk_count}
    assert set(Chunk.objects.filter(document=document).values_list("pk", flat=True)) == before


@pytest.mark.parametrize("model", ["anthropic/claude-sonnet-4-5", "nobody/nothing", "extractive"])
def test_document_is_ready_with_a_warning_when_the_model_cannot_be_had(
    cast: Cast, modelled: Collection, monkeypatch: pytest.MonkeyPatch, model: str
) -> None:
    monkeypatch.delenv("ANTHROPIC_API_KEY", raising=False)
    modelled.links_model = model
    modelled.save()
    document = ingest(cast, modelled, "lots.md", TEXT)
    assert document.status == "ready"
    assert by(document) == {"rule": document.chunk_count}
    assert document.warnings[0].startswith(summaries_model.WARNING)


def test_one_window_keeps_the_rules_points_when_the_model_fails_it(
    cast: Cast, modelled: Collection, server: FakeProvider
) -> None:
    def refuses_the_second(body: dict[str, Any]) -> str:
        return "I cannot." if summaries_model.WINDOW in asked(body)[0] else answer(body)

    server.replies[MODEL] = lambda body: (
        "I cannot." if len(body["messages"]) > 2 else refuses_the_second(body)
    )
    document = ingest(cast, modelled, "lots.md", TEXT)
    assert document.status == "ready"
    assert by(document)["rule"] == summaries_model.WINDOW
    assert f"for {summaries_model.WINDOW} of {document.chunk_count}" in document.warnings[0]


def _link(window: list[int], topic: str) -> dict[str, Any]:
    ends = {"chunk_index": window[0], "target_index": window[-1]}
    return {**ends, "relation": "same_topic", "common_topic": topic}


HOSTILE: dict[str, Callable[[list[int]], Any]] = {
    "foreign indexes": lambda window: {
        "passages": [{"chunk_index": 99_999, "points": ["x"]}, {"chunk_index": -1, "points": ["y"]}],
        "links": [
            {"chunk_index": window[0], "target_index": 99_999, "relation": "supports", "common_topic": ""}
        ],
    },
    "itself": lambda window: {
        "passages": [{"chunk_index": window[0], "points": ["a\x00b " * 400]}] * 3,
        "links": [
            {"chunk_index": window[0], "target_index": window[0], "relation": "supports", "common_topic": "t"}
        ],
    },
    "empty points": lambda window: {
        "passages": [{"chunk_index": n, "points": ["", "  "]} for n in window],
        "links": [],
    },
    "too many links": lambda window: {"passages": [], "links": [_link(window, "lamps " * 500)] * 400},
    "half a character": lambda window: {"passages": [], "links": [_link(window, "\ud800")]},
}


@pytest.mark.parametrize("kind", HOSTILE)
def test_nothing_false_is_stored_when_the_model_answers_nonsense(
    cast: Cast, modelled: Collection, server: FakeProvider, kind: str
) -> None:
    server.replies[MODEL] = lambda body: json.dumps(HOSTILE[kind](asked(body)[0]))
    document = ingest(cast, modelled, "lots.md", TEXT)
    assert document.status == "ready"
    for chunk in Chunk.objects.filter(document=document):
        assert chunk.key_points
        assert all(point and len(point) <= 300 for point in chunk.key_points)
    indexes = set(Chunk.objects.filter(document=document).values_list("pk", flat=True))
    for link in ChunkLink.objects.filter(document=document):
        assert {link.chunk_id, link.target_id} <= indexes
        assert link.chunk_id != link.target_id
    assert ingestion_check(tenant=cast.tenant, actor=cast.actor("member")).findings == []


def test_model_is_asked_no_more_when_the_document_is_cancelled(
    cast: Cast, modelled: Collection, server: FakeProvider, monkeypatch: pytest.MonkeyPatch
) -> None:
    document = upload(cast, modelled, "lots.md", TEXT)
    contexts: list[JobContext] = []
    real = pipeline._STAGES[Stage.SUMMARISE]

    def kept(ctx: Any, row: Document) -> Document:
        contexts.append(ctx)
        return real(ctx, row)

    def cancels(body: dict[str, Any]) -> str:
        if len(server.log) == 2:
            contexts[0].cancelled.set()
        return answer(body)

    monkeypatch.setattr(pipeline, "_STAGES", {**pipeline._STAGES, Stage.SUMMARISE: kept})
    server.replies[MODEL] = cancels
    attempt(document)
    assert (document.status, document.stage) == ("cancelled", "summarise")
    assert len(server.log) == 2
    documents_services.document_retry(tenant=cast.tenant, actor=cast.actor("member"), document=document)
    server.replies[MODEL] = answer
    assert attempt(document).status == "ready"
    assert by(document) == {"model": document.chunk_count}


def test_everything_is_asked_again_when_that_is_wanted_and_rules_when_the_collection_says_so(
    cast: Cast, modelled: Collection, server: FakeProvider
) -> None:
    document = ingest(cast, modelled, "lots.md", TEXT)
    count = len(server.log)
    ask: dict[str, Any] = {"tenant": cast.tenant, "actor": cast.actor("member"), "document": document}
    run_job(documents_summaries.document_summarise_again(**ask))
    assert len(server.log) == count, "nothing was missing"
    run_job(documents_summaries.document_summarise_again(**ask, everything=True))
    assert len(server.log) == 2 * count
    modelled.links_by = LinkOrigin.RULE
    modelled.save()
    run_job(documents_summaries.document_summarise_again(**ask))
    assert by(document) == {"rule": document.chunk_count}
    assert not ChunkLink.objects.filter(document=document, made_by="model").exists()


def test_only_ready_documents_are_summarised_again(cast: Cast, modelled: Collection) -> None:
    document = upload(cast, modelled, "lots.md", TEXT)
    with pytest.raises(Conflict, match="isn't ready"):
        documents_summaries.document_summarise_again(
            tenant=cast.tenant, actor=cast.actor("member"), document=document
        )


def test_document_stays_ready_and_says_so_when_the_job_is_given_up(
    cast: Cast, modelled: Collection, server: FakeProvider, monkeypatch: pytest.MonkeyPatch
) -> None:
    server.replies[MODEL] = lambda body: 500
    document = ingest(cast, modelled, "lots.md", TEXT)
    job = documents_summaries.document_summarise_again(
        tenant=cast.tenant, actor=cast.actor("member"), document=document
    )

    def broken(*args: Any, **kwargs: Any) -> Any:
        raise RuntimeError("always")

    monkeypatch.setattr(summaries_model, "completion_run", broken)
    for _ in range(3):
        Job.objects.filter(pk=job.pk).update(run_after="2000-01-01T00:00Z")
        run_job(job)
    assert job.status == JobStatus.FAILED
    document.refresh_from_db()
    assert document.status == "ready"
    assert len(document.warnings) == 1
    assert "wrong on our side" in document.warnings[0]
