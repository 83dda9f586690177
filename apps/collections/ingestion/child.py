"""The limited child process: runs one reader (or draws one page, or walks one repository) and sends frames to its parent.

Started as ``python -m apps.collections.ingestion.child`` with one JSON object on standard input. It never imports
Django, has no credentials in its environment, and dies with its parent.
"""

from __future__ import annotations

import json
import os
import resource
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from apps.collections.ingestion.frames import encode_frame, page_to_json
from apps.collections.ingestion.types import FailureCode, ReaderLimits, ReadFailure
from basics.processes import end_with_parent
from basics.texts import kept

# Libraries reserve address space they never touch (thread stacks, arenas): resident memory is what the parent watches,
# this only stops a single huge allocation.
_ADDRESS_SPACE_HEADROOM = 3 * 1024 * 1024 * 1024
_BATCH_CHARS = 200_000

Send = Callable[[Mapping[str, Any], bytes], None]


def main() -> int:
    """Serve one request and exit; every outcome, good or bad, is a frame."""
    send = _take_over_stdout()
    request = json.loads(sys.stdin.buffer.readline())
    limits = ReaderLimits(**request["limits"])
    end_with_parent(parent=int(request["parent_pid"]))
    _limit_resources(limits)
    try:
        _ACTIONS[request["action"]](request, limits, send)
    except ReadFailure as failure:
        send({"failure": failure.code, "message": kept(failure.message), "data": failure.data}, b"")
    except MemoryError:
        send({"failure": FailureCode.OUT_OF_MEMORY, "message": "", "data": {}}, b"")
    return 0


def _read(request: Mapping[str, Any], limits: ReaderLimits, send: Send) -> None:
    from apps.collections.ingestion.readers.registry import reader_for

    reading = reader_for(request["media_type"]).read(Path(request["path"]), limits)
    send({"opened": {"page_count": reading.page_count, "is_paged": reading.is_paged}}, b"")
    batch: list[dict[str, Any]] = []
    chars = 0
    for page in reading.pages:
        batch.append(page_to_json(page))
        chars += len(page.text)
        if chars >= _BATCH_CHARS or len(batch) >= 16:
            send({"pages": batch}, b"")
            batch, chars = [], 0
    send(
        {
            "pages": batch,
            "finished": {
                "title": reading.title,
                "warnings": [kept(text) for text in reading.warnings],
                "metadata": reading.metadata,
            },
        },
        b"",
    )


def _scan(request: Mapping[str, Any], limits: ReaderLimits, send: Send) -> None:
    from apps.collections.ingestion.ocr.pages import pages_recognise

    os.nice(request["nice"])
    pages_recognise(request, send)


def _render(request: Mapping[str, Any], limits: ReaderLimits, send: Send) -> None:
    from apps.collections.ingestion.page_images import draw_page

    image, size = draw_page(
        Path(request["path"]),
        request["media_type"],
        request["page_number"],
        request["scale"],
        request["image_format"],
    )
    send({"result": {"width": size[0], "height": size[1]}}, image)


def _boxes(request: Mapping[str, Any], limits: ReaderLimits, send: Send) -> None:
    from apps.collections.ingestion.page_images import find_boxes

    boxes = find_boxes(
        Path(request["path"]), request["page_number"], request["char_start"], request["char_end"]
    )
    send({"result": {"boxes": boxes}}, b"")


def _git(request: Mapping[str, Any], limits: ReaderLimits, send: Send) -> None:
    from apps.collections.ingestion.sources.git import repository_read

    _of_source(repository_read, request, send)


def _history(request: Mapping[str, Any], limits: ReaderLimits, send: Send) -> None:
    from apps.collections.ingestion.sources.git_history import history_read

    _of_source(history_read, request, send)


def _chroma(request: Mapping[str, Any], limits: ReaderLimits, send: Send) -> None:
    from apps.collections.ingestion.sources.chroma import chroma_read

    _of_source(chroma_read, request, send)


def _of_source(
    read: Callable[[Mapping[str, Any], Send], None], request: Mapping[str, Any], send: Send
) -> None:
    # Not at the top: a child that reads one document would pay a tenth of its processor time for this module.
    from apps.collections.ingestion.sources.base import SourceFailure

    try:
        read(request, send)
    except SourceFailure as failure:
        send({"source_failure": failure.code, "message": kept(failure.message)}, b"")


_ACTIONS: dict[str, Callable[[Mapping[str, Any], ReaderLimits, Send], None]] = {
    "read": _read,
    "scan": _scan,
    "render": _render,
    "boxes": _boxes,
    "git": _git,
    "history": _history,
    "chroma": _chroma,
}


def _take_over_stdout() -> Send:
    """Keep the pipe for frames and send stray prints of libraries to standard error."""
    channel = os.dup(1)
    os.dup2(2, 1)
    stream = os.fdopen(channel, "wb", buffering=0)

    def send(header: Mapping[str, Any], blob: bytes = b"") -> None:
        view = memoryview(encode_frame(header, blob))
        while view:
            view = view[stream.write(view) or 0 :]

    return send


def _limit_resources(limits: ReaderLimits) -> None:
    _lower(resource.RLIMIT_CORE, 0)
    _lower(resource.RLIMIT_CPU, limits.cpu_seconds)
    if sys.platform == "linux":
        _lower(resource.RLIMIT_AS, limits.memory_bytes + _ADDRESS_SPACE_HEADROOM)


def _lower(kind: int, value: int) -> None:
    """Set soft and hard limit, never above a hard limit that is there already."""
    _, hard = resource.getrlimit(kind)
    if hard != resource.RLIM_INFINITY:
        value = min(value, hard)
    resource.setrlimit(kind, (value, hard))


if __name__ == "__main__":
    sys.exit(main())
