"""What tests of collections share: storage in a temporary folder, an embedder that costs nothing, one way to ingest."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from django.test import Client

from apps.collections.documents import services
from apps.collections.embedders.base import EmbeddingSpace, EmbeddingUsage
from apps.collections.ingestion import child, extraction, media_types
from apps.collections.ingestion.sandbox import run_child
from apps.collections.ingestion.types import ReaderLimits
from apps.collections.models import Chunk, Collection, Document
from jobs import registry, runner
from jobs.context import JobContext
from jobs.models import Job
from tests.cast import Cast
from tests.factories import make_collection

DIMS = 384
# What these rooms show does not depend on where a document was read: plain text is read without the process that guards
# against its bytes, which would cost more than all the rest of a small document. Every other format has its process here
# too, and in the rooms of reading itself (ingestion, pipeline, imports, storage) every document has. Fixtures of other
# rooms, whose tests stand on documents, ask for it with ``read_at_once``.
READ_AT_ONCE = {"chunks", "collection", "display", "documents", "graph", "index", "quotes", "search"}


class WordEmbedder:
    """Vectors in which texts with common words are near each other; deterministic, no model."""

    space = EmbeddingSpace("test", "test", DIMS, "test")
    usage = EmbeddingUsage()

    def __init__(self) -> None:
        self.on_texts: Callable[[Sequence[str]], None] | None = None

    def embed_documents(self, texts: Sequence[str], *, on_progress: Any = None) -> Any:
        if self.on_texts is not None:
            self.on_texts(texts)
        vectors = np.full((len(texts), DIMS), 0.001, dtype=np.float32)
        for row, text in enumerate(texts):
            for word in text.lower().split():
                vectors[row, int(hashlib.sha256(word.encode()).hexdigest()[:8], 16) % DIMS] += 1
        if on_progress is not None:
            on_progress(len(texts), len(texts))
        result: Any = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
        return result

    def embed_query(self, text: str) -> Any:
        return self.embed_documents([text])[0]


@pytest.fixture
def embedder(monkeypatch: pytest.MonkeyPatch) -> WordEmbedder:
    fake = WordEmbedder()
    for module in (
        "apps.collections.pipeline.run",
        "apps.collections.search.run",
        "apps.collections.index.spaces",
    ):
        monkeypatch.setattr(f"{module}.embedder_for", lambda space, *, tenant: fake)
    return fake


@pytest.fixture(autouse=True)
def _plain_text_is_read_at_once(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    if request.path.parent.name in READ_AT_ONCE:
        read_at_once(monkeypatch)


def read_at_once(patch: pytest.MonkeyPatch) -> None:
    """Read documents of plain text in this process, until the patch is undone."""
    patch.setattr(extraction, "run_child", _frames_at_once)


def _frames_at_once(
    request: Mapping[str, Any], limits: ReaderLimits, *, on_tick: Callable[[], None] | None = None
) -> Iterator[tuple[dict[str, Any], bytes]]:
    """Yield the frames of a document of plain text, read in this process; of every other as the product does."""
    if request["media_type"] not in (media_types.TEXT, media_types.MARKDOWN):
        yield from run_child(request, limits, on_tick=on_tick)
        return
    frames: list[tuple[dict[str, Any], bytes]] = []

    def send(header: Mapping[str, Any], blob: bytes) -> None:
        frames.append((json.loads(json.dumps(header)), blob))

    child._read(request, limits, send)
    for frame in frames:
        if on_tick is not None:
            on_tick()
        yield frame


@pytest.fixture
def storage(settings: Any, tmp_path: Path) -> Path:
    """Keep files and page images of this test apart; returns the folder of the originals."""
    settings.DATA_DIR = tmp_path
    settings.MEDIA_ROOT = tmp_path / "files"
    return tmp_path / "files"


@pytest.fixture
def collection(cast: Cast, storage: Path, embedder: WordEmbedder) -> Collection:
    """A collection of the cast's tenant, ready to ingest into."""
    return make_collection(cast.tenant, "Trade", chunk_size=400, chunk_overlap=50)


def upload(cast: Cast, collection: Collection, name: str, data: bytes, role: str = "member") -> Document:
    """Upload bytes; the caller is in the tenant's scope."""
    return services.document_upload(
        tenant=cast.tenant, actor=cast.actor(role), collection=collection, name=name, chunks=[data]
    ).document


class NotWaiting(Exception):
    """A job cannot be claimed now."""


def attempt(document: Document) -> Document:
    """Run one attempt of a document's job as the worker does, without its heartbeat thread; returns the fresh row.

    (That thread has a connection of its own, which cannot see rows of a test's open transaction.)
    """
    document.refresh_from_db()
    assert document.job_id is not None
    job = runner.claim(document.tenant_id, document.job_id)
    if job is None:
        raise NotWaiting(f"job {document.job_id} is not waiting")
    context = JobContext(job)
    error: BaseException | None = None
    try:
        registry.get(job.kind).handler(context, **job.payload)
    except Exception as raised:  # noqa: BLE001 - recorded as the runner does
        error = raised
    runner._finish(context, job, error)
    document.refresh_from_db()
    return document


def job_of(document: Document) -> Job:
    """Return a document's job."""
    assert document.job_id is not None
    job: Job = Job.objects.get(pk=document.job_id)
    return job


def first_chunk(document: Document) -> Chunk:
    """Return a document's first chunk."""
    chunk: Chunk = Chunk.objects.filter(document=document).order_by("index")[0]
    return chunk


def make_due(document: Document) -> None:
    """Let a job that waits for its next attempt start now."""
    Job.objects.filter(pk=job_of(document).pk).update(run_after="2000-01-01T00:00Z")


def ingest(cast: Cast, collection: Collection, name: str, data: bytes) -> Document:
    """Upload and ingest; returns the document as it ended."""
    return attempt(upload(cast, collection, name, data))


@pytest.fixture
def member_client(cast: Cast, client: Client) -> Client:
    client.force_login(cast.user("member"))
    return client


LAMPS = b"""# Lamps

LED lamps of heading 8539.50.00 are dutiable at two percent. The code INV-100234 names the invoice.

# Pumps

Pumps for liquids stand in heading 8413.70.20 and pay nothing when they come from Brazil.

# Method

We compare the statutory rate with the collected rate for every month and explain the difference in words.
"""
