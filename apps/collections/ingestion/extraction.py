"""Turn a file into text: find out what it is, read it in the limited child, mark junk pages."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from apps.collections.ingestion.detect import detect
from apps.collections.ingestion.frames import page_from_json
from apps.collections.ingestion.garbled import garbled_warning
from apps.collections.ingestion.junk import mark_junk
from apps.collections.ingestion.media_types import PDF
from apps.collections.ingestion.sandbox import run_child
from apps.collections.ingestion.types import (
    ExtractedDocument,
    FailureCode,
    PageText,
    ReaderLimits,
    ReadFailure,
)
from basics.texts import Told
from basics.texts import gettext as _

DEFAULT_LIMITS = ReaderLimits()


def document_extract(
    path: Path,
    *,
    name: str,
    limits: ReaderLimits = DEFAULT_LIMITS,
    on_progress: Callable[[int, int], None] | None = None,
    on_page: Callable[[PageText], None] | None = None,
    on_tick: Callable[[], None] | None = None,
) -> ExtractedDocument:
    """Read a file of any supported format.

    Args:
        path: where the bytes are.
        name: the file's name as its owner gave it.
        limits: what it may cost.
        on_progress: called with (pages read, pages in total).
        on_page: called with each page as it comes, before junk is marked (that needs all pages).
        on_tick: called at least every half second, also while a single page takes long; raise in any of the three
            to stop the reader.

    Returns:
        The document with its junk pages marked; if pages wait for text recognition, that is for who reads them.

    Raises:
        ReadFailure: with one of ``FailureCode``'s codes and a message for the file's owner.
    """
    detection = detect(path, name, max_bytes=limits.max_bytes)
    request = {"action": "read", "path": str(path.resolve()), "media_type": detection.media_type}
    pages: list[PageText] = []
    total = 0
    is_paged = True
    finished: dict[str, object] | None = None
    metadata: dict[str, object] = {}
    title = ""
    warnings = [detection.warning] if detection.warning else []
    for header, _blob in run_child(request, limits, on_tick=on_tick):
        if opened := header.get("opened"):
            total, is_paged = int(opened["page_count"]), bool(opened["is_paged"])
        for item in header.get("pages", ()):
            page = page_from_json(item)
            pages.append(page)
            if on_page is not None:
                on_page(page)
        if on_progress is not None and (header.get("pages") or "opened" in header):
            on_progress(len(pages), total)
        if "finished" in header:
            finished = header["finished"]
            title, metadata = str(header["finished"]["title"]), header["finished"]["metadata"]
            warnings.extend(map(Told.of, header["finished"]["warnings"]))
    if finished is None:
        raise ReadFailure(
            FailureCode.CRASHED,
            _(
                "The reader stopped before the last page. Try again; if it happens again, the file is "
                "damaged."
            ),
        )
    if garbled := garbled_warning(page.text for page in pages):
        warnings.append(garbled)
    scanned = any(page.scan is not None for page in pages)
    return ExtractedDocument(
        media_type=detection.media_type,
        # The rules know printed pages; a slide or a sheet may be short and still say everything.
        # A scan is judged when its pictures have been read.
        pages=mark_junk(pages) if detection.media_type == PDF and not scanned else tuple(pages),
        is_paged=is_paged,
        title=title,
        warnings=tuple(warnings),
        metadata=metadata,
    )
