"""Reading the scanned pages of a document: one page, one commit, so that nothing is read twice and nobody waits for it.

The ingestion's own job ends when it has found such pages and hands the document to a job of the lane for scans; that
one reads them in the limited child process, at the lowest priority, and hands the document back.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import structlog
from django.conf import settings

from apps.collections.ingestion.junk import mark_junk
from apps.collections.ingestion.ocr.known import known_bytes, known_name
from apps.collections.ingestion.ocr.types import Scan, scan_from_json, scan_to_json
from apps.collections.ingestion.sandbox import run_child
from apps.collections.ingestion.types import (
    ChunkDraft,
    ExtractedDocument,
    FailureCode,
    PageText,
    ReaderLimits,
    ReadFailure,
)
from apps.collections.models import Document, DocumentStatus, Page, Stage
from apps.collections.pipeline.document_types import type_infer
from apps.collections.pipeline.ocr_settings import recognition_count, recognition_state
from apps.collections.pipeline.stage import IngestContext, stage_advance, stage_writing
from apps.collections.storage import originals as files
from apps.collections.storage.rows import extracted_load, page_layout
from basics.errors import DomainError
from basics.texts import Told, ngettext
from basics.texts import gettext as _
from blobs.leases import lease
from jobs.context import JobCancelled
from jobs.fairness import BYTES_A_SECOND
from jobs.services import job_enqueue
from tenancy.actors import system_actor

log = structlog.get_logger(__name__)

SCAN_JOB = "collections.document_scan"
INGEST_JOB = "collections.document_ingest"
PAGE_SECONDS = 120
"""Wall-clock and processor limit of one page; a dense page takes 5 to 10 seconds."""
PAGE_WEIGHT = 8 * int(BYTES_A_SECOND)
"""What a page counts in the lane for scans, in bytes that take as long: until finished jobs tell, 8 seconds."""
_ENDLESS = 3  # so many pages in a row that break the reader, and the rest is not tried
_SURE = 0.85  # mean confidence of the lines that were read
_MOST = 20  # warnings
_VERSIONS = 10  # of a document, in which the same pages are looked for
_WAITING = {"layout__scan__state": "wanted"}
_ACTIVE = (DocumentStatus.QUEUED, DocumentStatus.PROCESSING)


def scans_wait(document: Document) -> bool:
    """Tell whether a document has been read but for pages that wait for text recognition."""
    # The count is set with the last of the pages: a reader that was killed among them begins again.
    return document.page_count > 0 and Page.objects.filter(document=document, **_WAITING).exists()


def scans_hand_over(ctx: IngestContext, document: Document, began: float) -> Document:
    """Give a document whose text has been read to the lane for scans, or end its reading where they cannot be read."""
    problem = recognition_state(document.tenant_id).problem
    if problem:
        return _finish(ctx, document, began, problem)
    with stage_writing(ctx, document) as row:
        pages = Page.objects.filter(document=row, **_WAITING).count()
        _pass_on(row, SCAN_JOB, weight=pages * PAGE_WEIGHT)
        ctx.complete()
    return row


def document_scan(ctx: IngestContext, *, document_id: int) -> None:
    """Read the pages of a document that wait for it, then let its ingestion go on.

    Raises:
        DomainError: ``no_text``: neither the pages nor their pictures hold any.
        JobCancelled: the document was deleted, or another job took it over.
    """
    began = time.perf_counter()
    document: Document | None = Document.objects.filter(
        pk=document_id, job_id=ctx.job_id, status__in=_ACTIVE
    ).first()
    if document is None:
        raise JobCancelled(f"document {document_id} is gone or has another job")
    if document.status == DocumentStatus.QUEUED:
        Document.objects.filter(pk=document.pk).update(status=DocumentStatus.PROCESSING)
        document.status = DocumentStatus.PROCESSING
    broken = 0
    problem = ""
    while numbers := _waiting(document):
        problem = recognition_state(document.tenant_id).problem
        if problem:
            break
        if broken >= _ENDLESS:
            problem = _("Text recognition (OCR) failed on several pages in a row.")
            break
        try:
            _read(ctx, document, numbers)
            broken = 0
        except ReadFailure as failure:
            if failure.code == FailureCode.NO_TEXT:
                problem = failure.message  # it is not installed
                break
            left = _waiting(document)
            broken = broken + 1 if left[:1] == numbers[:1] else 1
            if left:
                _keep(ctx, document, left[0], "\n\n", Scan("failed", problem=failure.message), 0.0)
    _finish(ctx, document, began, problem)


def _waiting(document: Document) -> list[int]:
    rows = Page.objects.filter(document=document, **_WAITING).order_by("number")
    return list(rows.values_list("number", flat=True))


def _read(ctx: IngestContext, document: Document, numbers: Sequence[int]) -> None:
    """Read pages in one child process, each kept as it comes."""
    with lease(document.file) as path:
        _read_at(ctx, document, numbers, path)


def _read_at(ctx: IngestContext, document: Document, numbers: Sequence[int], path: Path) -> None:
    state = recognition_state(document.tenant_id)
    request = {
        "action": "scan",
        "path": str(path.resolve()),
        "media_type": document.media_type,
        "pages": list(numbers),
        "languages": state.languages,
        "known": _known(document),
        "nice": settings.OCR_NICE,
    }
    limits = ReaderLimits(
        wall_seconds=float(PAGE_SECONDS),
        cpu_seconds=PAGE_SECONDS * len(numbers),
        memory_bytes=settings.OCR_MEMORY_MB * 1024 * 1024,
    )
    used = state.used
    for header, _blob in run_child(request, limits, on_tick=ctx.check, is_renewed=True):
        told = header["scanned"]
        _keep(ctx, document, told["number"], told["text"], told["scan"], float(told["cpu_seconds"]))
        used += float(told["cpu_seconds"])
        ctx.give_way()
        if used >= state.budget:
            return


def _known(document: Document) -> list[str]:
    """Return the folders in which results of this document and of its other versions are kept."""
    same = Document.objects.filter(
        tenant_id=document.tenant_id, collection_id=document.collection_id, path=document.path
    )
    found = same.order_by("-version").values_list("sha256", flat=True)[:_VERSIONS]
    folders = dict.fromkeys((document.sha256, *found))
    return [str(files.page_cache(document.tenant_id, one).resolve()) for one in folders]


def _keep(
    ctx: IngestContext,
    document: Document,
    number: int,
    text: str,
    scan: Scan | dict[str, Any],
    seconds: float,
) -> None:
    wire = scan_to_json(scan) if isinstance(scan, Scan) else scan
    with stage_writing(ctx, document) as row:
        page = Page.objects.get(document=row, number=number)
        if wire["state"] == "read":
            page.text = text.replace("\x00", "")
            # What the reader had found in the layer stays where it was; of a layer that said nothing there is nothing.
            if not wire["layer_chars"]:
                page.layout = {**page.layout, "headings": [], "regions": []}
                page.layout.pop("marks", None)
        page.layout = {**page.layout, "scan": wire}
        page.save(update_fields=["text", "layout"])
        recognition_count(row.tenant_id, seconds)
        _remember(row, page.text, wire)
        scanned = Page.objects.filter(document=row, layout__scan__isnull=False)
        row.progress_total = scanned.count()
        row.progress_current = row.progress_total - scanned.filter(**_WAITING).count()
        row.save(update_fields=["progress_current", "progress_total", "updated_at"])


def _remember(row: Document, text: str, wire: dict[str, Any]) -> None:
    """Keep a result for the next reading; a full disk costs that reading time, not this one its page."""
    if wire["state"] != "read" or not wire["digest"]:
        return
    target = files.page_cache(row.tenant_id, row.sha256) / known_name(wire["digest"])
    try:
        files.cache_write(target, known_bytes(text, scan_from_json(wire)))
    except OSError as error:
        log.warning("scan_not_kept", document=row.pk, error=type(error).__name__)


def _finish(ctx: IngestContext, document: Document, began: float, problem: str) -> Document:
    """Judge the pages as the reader of a PDF with text does, and go on with the chunks.

    Raises:
        DomainError: ``no_text``.
    """
    extracted = extracted_load(document)
    if not any(ch.isalnum() for page in extracted.pages for ch in page.text):
        raise DomainError("no_text", _no_text(extracted, problem), status=422)
    marked = replace(extracted, pages=mark_junk(extracted.pages))
    with stage_writing(ctx, document) as row:
        pages = {page.number: page for page in Page.objects.filter(document=row)}
        for found, start in zip(marked.pages, marked.page_starts, strict=True):
            page = pages[found.number]
            page.char_start, page.skip_reason = start, str(found.junk or "")
            page.layout = page_layout(found)
            page.save(update_fields=["char_start", "skip_reason", "layout"])
        row.skipped_pages = sum(1 for page in marked.pages if page.junk)
        row.warnings = [*row.warnings, *_warnings(marked.pages, problem)]
        type_infer(row, marked)
        stage_advance(row, Stage.CHUNK, began)
        if row.job is not None and row.job.kind == SCAN_JOB:
            _pass_on(row, INGEST_JOB, weight=row.size)
            ctx.complete()
    return row


def _pass_on(row: Document, kind: str, *, weight: int) -> None:
    """Give a document to another job, in the transaction that ends the one under way."""
    row.job = job_enqueue(
        tenant=row.tenant,
        actor=system_actor(row.tenant_id, row.uploaded_by_id),
        kind=kind,
        payload={"document": row.pk},
        dedupe_key=f"document:{row.pk}",
        topic=f"collection:{row.collection_id}",
        weight=weight,
    )
    row.save(update_fields=["job", "updated_at"])


def _warnings(pages: Sequence[PageText], problem: str) -> list[str]:
    read = [p.number for p in pages if p.scan is not None and p.scan.state == "read"]
    empty = [p.number for p in pages if p.number in set(read) and not _says(p)]
    found: list[str] = []
    if len(read) > len(empty):
        said = [n for n in read if n not in set(empty)]
        found.append(
            ngettext(
                "Page %(pages)s was read by text recognition (OCR). Check important details against the image.",
                "Pages %(pages)s were read by text recognition (OCR). Check important details against the image.",
                len(said),
            )
            % _pages(said)
        )
    doubtful = [p.number for p in pages if p.scan and p.scan.words and p.scan.confidence < _SURE]
    if doubtful:
        found.append(
            ngettext(
                "Page %(pages)s: barely legible, or in a script that text recognition (OCR) isn't set up for, so "
                "much of the text may be wrong.",
                "Pages %(pages)s: barely legible, or in a script that text recognition (OCR) isn't set up for, so "
                "much of the text may be wrong.",
                len(doubtful),
            )
            % _pages(doubtful)
        )
    if empty:
        found.append(
            ngettext(
                "Page %(pages)s has no text, even after text recognition (OCR).",
                "Pages %(pages)s have no text, even after text recognition (OCR).",
                len(empty),
            )
            % _pages(empty)
        )
    left = [p.number for p in pages if p.scan is not None and p.scan.state == "wanted"]
    if left:
        found.append(
            ngettext(
                "Page %(pages)s was not read. %(problem)s Read the document again when this is fixed.",
                "Pages %(pages)s were not read. %(problem)s Read the document again when this is fixed.",
                len(left),
            )
            % (_pages(left) | {"problem": problem})
        )
    unread: dict[tuple[bool, str], list[int]] = {}
    for page in pages:
        if page.scan is not None and page.scan.state != "wanted" and page.scan.problem:
            unread.setdefault((page.scan.state == "failed", page.scan.problem), []).append(page.number)
    for (is_whole, why), numbers in list(unread.items())[: _MOST - len(found)]:
        found.append(_unread(numbers, is_whole=is_whole) % (_pages(numbers) | {"why": why}))
    return found


def _unread(numbers: Sequence[int], *, is_whole: bool) -> Told:
    if is_whole:
        return ngettext(
            "Page %(pages)s could not be read. %(why)s",
            "Pages %(pages)s could not be read. %(why)s",
            len(numbers),
        )
    return ngettext(
        "Page %(pages)s: some text in images could not be read. %(why)s",
        "Pages %(pages)s: some text in images could not be read. %(why)s",
        len(numbers),
    )


def _says(page: PageText) -> bool:
    return any(ch.isalnum() for ch in page.text)


def _pages(numbers: Sequence[int]) -> dict[str, str]:
    shown = ", ".join(str(n) for n in numbers[:20])
    if len(numbers) > 20:
        shown = _("%(shown)s and %(n)s more") % {"shown": shown, "n": len(numbers) - 20}
    return {"pages": shown}


def _no_text(extracted: ExtractedDocument, problem: str) -> str:
    failed = next((p.scan for p in extracted.pages if p.scan and p.scan.problem), None)
    why = problem or (failed.problem if failed else "")
    if why:
        return _("The document holds only images, and they were not read. %(why)s") % {"why": why}
    return _(
        "The document holds only images, and text recognition (OCR) found no text in them. Scan it again with more "
        "contrast and at 300 dpi."
    )


def scans_note(extracted: ExtractedDocument, drafts: Sequence[ChunkDraft]) -> list[ChunkDraft]:
    """Mark the chunks whose text, or part of it, was read from a picture: ``metadata["ocr"]``."""
    spans = [
        (start + page.scan.layer_chars, start + len(page.text))
        for start, page in zip(extracted.page_starts, extracted.pages, strict=True)
        if page.scan is not None and page.scan.words
    ]
    if not spans:
        return list(drafts)
    return [
        replace(draft, metadata={**draft.metadata, "ocr": True})
        if any(a < draft.char_end and draft.char_start < b for a, b in spans)
        else draft
        for draft in drafts
    ]
