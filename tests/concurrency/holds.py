"""Hold the ingestion of a document, a tool call, or a question that waits, open in the middle, for as long as a marker file exists.

The worker's side (``install``, run by the test-only app) wraps functions of the pipeline; nothing in the product knows
of it. The test's side is ``Holds``. Every point lies where a crash hurts most: after the stage's work, before its commit.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from tests.servers import wait_for
from toolloop.tools import Toolset, tool

FOLDER = "TESTS_HOLD_FOLDER"
POINTS = {
    "fetch": "the original is hashed, nothing is written",
    "parse": "the reader child is alive and in the middle of its pages",
    "pages": "pages are written and not committed",
    "chunk": "chunks are written and not committed",
    "summarise": "key points and links by rule are written and not committed",
    "embed": "one batch of vectors is committed, the next is not",
    "index": "lexical rows and statistics are written and not committed",
    "done": "document and job have ended, the queue does not know yet",
}
MODEL_POINTS = {
    "model": "a model has answered about a window, its points are written and not committed",
    "swap": "vectors of the space beside the live one are made and not written",
}
TOOL = "tool"  # in a call of ``send_notice`` or ``look_up``, which only these tests have
QUEUED_POINTS = {
    "queue": "the answer before it has ended, nobody has looked at the question that waits",
    "asked": "the question that waited is a turn, its job has not ended",
}
IMPORT = "import"  # a file of this name is written and not committed; by the import's id
HELD_FILE = "held.md"
NOTICES = "notices"
QUICK = "quick"


class _Ingested(threading.local):
    """What this thread ingests: a process has one for its regular slot, and may have others for small files and scans."""

    document = 0


_ingested = _Ingested()


class Holds:
    """The test's side: arm a point for a document, wait until a worker stands there, let it go."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def arm(self, point: str, document: int) -> None:
        """Hold the document's ingestion (or the call about this number) at the point from now on, in every attempt."""
        known = {**POINTS, **MODEL_POINTS, **QUEUED_POINTS}
        assert point in known or point in (TOOL, IMPORT)
        self._marker(point, document).touch()

    def reached(self, point: str, document: int) -> int:
        """Wait for a process to stand at the point; return its pid."""
        report = self._marker(point, document).with_suffix(".pid")
        wait_for(report.exists, f"{point} of document {document}")
        pid = int(report.read_text())
        report.unlink()
        return pid

    def is_reached(self, point: str, document: int) -> bool:
        """Tell whether a process stands at the point, of which ``reached`` has not told yet."""
        return self._marker(point, document).with_suffix(".pid").exists()

    def release(self, point: str, document: int) -> None:
        """Let go whoever stands at the point, and hold nobody there any more."""
        self._marker(point, document).unlink()

    def quicken(self, *, is_quick: bool) -> None:
        """Let embedders look at the first characters of a passage only: for thousands whose vectors do not matter."""
        if is_quick:
            (self.folder / QUICK).touch()
        else:
            (self.folder / QUICK).unlink()

    def notices(self) -> list[str]:
        """Return what the tools have done to the world, in order."""
        path = self.folder / NOTICES
        return path.read_text().splitlines() if path.exists() else []

    def clear(self) -> None:
        """Let go whoever a test before left held, and forget what the tools have done."""
        for path in self.folder.iterdir():
            path.unlink(missing_ok=True)

    def _marker(self, point: str, document: int) -> Path:
        return self.folder / f"{point}-{document}"


def install() -> None:
    """Wrap the pipeline's steps in this process; without the environment variable do nothing."""
    if FOLDER not in os.environ:
        return
    from apps.collections.documents import services
    from apps.collections.index import terms
    from apps.collections.pipeline import run as pipeline
    from apps.collections.pipeline import summaries_model
    from apps.conversations.toolset import bundle as tools
    from apps.conversations.turns import queue

    tools.TOOLSET = Toolset([*tools.TOOLSET, send_notice, look_up])
    _wrap(pipeline, "document_ingest", _whole)
    _wrap(pipeline, "document_extract", _reading)
    _wrap(pipeline, "embedder_for", _embedding)
    _wrap(pipeline, "file_digest", _after("fetch"))
    _wrap(pipeline, "pages_write", _after("pages"))
    _wrap(pipeline, "chunks_write", _after("chunk"))
    _wrap(pipeline, "summaries_write", _after("summarise"))
    _wrap(summaries_model, "points_update", _after("model"))
    _wrap(terms, "document_index", _after("index"))
    _wrap(services, "document_put", _bringing)
    _wrap(queue, "queued_next", _asking)


@tool(side_effects=True, blocking=True)
def send_notice(query: str) -> str:
    """Send a notice to the outside world; twice would be a mistake.

    Args:
        query: what about; ends in a number.
    """
    return _act("sent", query)


@tool(blocking=True)
def look_up(query: str) -> str:
    """Look something up; twice does no harm.

    Args:
        query: what about; ends in a number.
    """
    return _act("looked", query)


def _act(verb: str, query: str) -> str:
    number = int(query.split()[-1])
    with (Path(os.environ[FOLDER]) / NOTICES).open("a") as notices:
        notices.write(f"{verb} {number}\n")
    _hold(TOOL, number)
    return f"{verb} {number}"


def _hold(point: str, number: int) -> None:
    marker = Path(os.environ[FOLDER]) / f"{point}-{number}"
    if not marker.exists():
        return
    draft = marker.with_suffix(".draft")
    draft.write_text(str(os.getpid()))
    draft.rename(marker.with_suffix(".pid"))
    while marker.exists():
        time.sleep(0.02)


def _wrap(module: Any, name: str, make: Callable[[Callable[..., Any]], Callable[..., Any]]) -> None:
    setattr(module, name, make(getattr(module, name)))


def _after(point: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    def make(inner: Callable[..., Any]) -> Callable[..., Any]:
        def call(*args: Any, **kwargs: Any) -> Any:
            result = inner(*args, **kwargs)
            _hold(point, _ingested.document)
            return result

        return call

    return make


def _whole(inner: Callable[..., Any]) -> Callable[..., Any]:
    def call(*args: Any, document_id: int, **kwargs: Any) -> Any:
        _ingested.document = document_id
        result = inner(*args, document_id=document_id, **kwargs)
        _hold("done", document_id)
        return result

    return call


def _reading(inner: Callable[..., Any]) -> Callable[..., Any]:
    def call(*args: Any, on_progress: Callable[[int, int], None], **kwargs: Any) -> Any:
        document = _ingested.document

        def progress(current: int, total: int) -> None:
            on_progress(current, total)
            if current:
                _hold("parse", document)

        return inner(*args, on_progress=progress, **kwargs)

    return call


def _bringing(inner: Callable[..., Any]) -> Callable[..., Any]:
    def call(*args: Any, path: str, **kwargs: Any) -> Any:
        result = inner(*args, path=path, **kwargs)
        batch = kwargs.get("batch")
        if batch is not None and path.endswith(HELD_FILE):
            _hold(IMPORT, batch.pk)
        return result

    return call


def _asking(inner: Callable[..., Any]) -> Callable[..., Any]:
    def call(*args: Any, conversation_pk: int, **kwargs: Any) -> Any:
        _hold("queue", conversation_pk)
        result = inner(*args, conversation_pk=conversation_pk, **kwargs)
        _hold("asked", conversation_pk)
        return result

    return call


def _embedding(inner: Callable[..., Any]) -> Callable[..., Any]:
    def call(space: Any, **kwargs: Any) -> Any:
        from apps.collections.models import Document

        document = _ingested.document
        live = Document.objects.values_list("collection__space_id", flat=True).get(pk=document)
        point, batch = ("embed", 2) if space.pk == live else ("swap", 1)
        return _Holding(inner(space, **kwargs), point, batch, document)

    return call


class _Holding:
    """An embedder that holds after its n-th batch of the document."""

    def __init__(self, inner: Any, point: str, batch: int, document: int) -> None:
        self._inner, self._point, self._batch, self._batches = inner, point, batch, 0
        self._document = document

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    def embed_documents(self, texts: Sequence[str], **kwargs: Any) -> Any:
        if (Path(os.environ[FOLDER]) / QUICK).exists():
            texts = [text[:16] for text in texts]
        vectors = self._inner.embed_documents(texts, **kwargs)
        self._batches += 1
        if self._batches == self._batch:
            _hold(self._point, self._document)
        return vectors
