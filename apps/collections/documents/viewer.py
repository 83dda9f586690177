"""The document viewer: a page as image or text with a passage marked, and the original as a download."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from django.http import HttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import render
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from django.views.decorators.http import require_GET

from apps.collections.chunks.links import chunk_links
from apps.collections.display import selectors
from apps.collections.display.page_parts import chunk_dress
from apps.collections.documents import page_images as page_views
from apps.collections.models import Chunk, Document, Page
from basics.errors import Missing
from blobs.leases import blob_open
from web.downloads import file_redirect, file_response
from web.requests import TenantRequest, allowed

_MARK = re.compile(r"(\d{1,9})-(\d{1,9})", re.ASCII)
_BOX_WIDTH = 1000  # units of the overlay's coordinates across a page

SKIPPED = {
    "too_short": gettext_lazy("Too little text to be searched."),
    "table_of_contents": gettext_lazy(
        "A table of contents: left out of search, because it repeats headings."
    ),
    "intentionally_blank": gettext_lazy("Intentionally blank."),
    "index": gettext_lazy(
        "An index: left out of search, because it lists words without saying anything about them."
    ),
    "header_only": gettext_lazy("Only a running header or footer."),
}


@dataclass(frozen=True, slots=True)
class PageShown:
    """A page as the template needs it; ``skip_reason`` is a sentence, and empty where there is text to show."""

    number: int
    text: str
    skip_reason: str
    note: str


@require_GET
@allowed("collection.read")
def document(request: TenantRequest, tenant_slug: str, pk: int, doc_pk: int) -> HttpResponse:
    """Show one page; ``?chunk=`` marks a passage, ``?mark=START-END`` what is quoted of it, ``?page=`` and ``?view=`` choose."""
    actor = request.actor
    shown = selectors.document_get(actor=actor, pk=doc_pk, collection_pk=pk)
    chosen = _chosen_chunk(request, shown)
    chunk = chosen.chunk if chosen else None
    mark = _chosen_mark(request, chunk)
    page = _chosen_page(request, shown, mark)
    has_image = page is not None and page_views.has_images(shown)
    view = request.GET.get("view", "")
    if view not in ("image", "text") or not has_image:
        view = "image" if has_image else "text"
    number = page.number if page else 0
    context: dict[str, Any] = {
        "collection": shown.collection,
        "document": shown,
        "page": _shown(page),
        "page_count": shown.page_count,
        "view": view,
        "has_image": has_image,
        "segments": _segments(page, mark),
        "chunk": chunk,
        "mark": request.GET["mark"] if mark and "mark" in request.GET else "",
        "chunks": [chunk_dress(c) for c in selectors.page_chunks(actor=actor, page=page)] if page else [],
        "links": chunk_links(actor=actor, chunk=chunk, limit=12) if chunk else [],
        "previous_page": number - 1 if number > 1 else None,
        "next_page": number + 1 if 0 < number < shown.page_count else None,
        "previous_chunk": chosen.previous if chosen else None,
        "next_chunk": chosen.next if chosen else None,
        "can_write": actor.can("document.write"),
        "overlay": _overlay(shown, page, mark) if view == "image" and page and mark else None,
    }
    return render(request, "collections/document.html", context)


def _chosen_chunk(request: TenantRequest, shown: Document) -> selectors.ChunkDetail | None:
    wanted = request.GET.get("chunk", "").removeprefix("c")
    if not wanted:
        return None
    if not wanted.isdecimal():
        raise Missing("chunk")
    detail = selectors.chunk_get(actor=request.actor, pk=int(wanted))
    if detail.chunk.document_id != shown.pk:
        raise Missing("chunk")
    return detail


def _chosen_mark(request: TenantRequest, chunk: Chunk | None) -> tuple[int, int] | None:
    """Return what is marked, in offsets of the document's text: what the address says, else the chosen chunk.

    Raises:
        Missing: the address says something else than two offsets.
    """
    wanted = request.GET.get("mark", "")
    if not wanted:
        return None if chunk is None else (chunk.char_start, chunk.char_end)
    found = _MARK.fullmatch(wanted)
    if found is None or int(found[1]) >= int(found[2]):
        raise Missing("mark")
    return int(found[1]), int(found[2])


def _chosen_page(request: TenantRequest, shown: Document, mark: tuple[int, int] | None) -> Page | None:
    wanted = request.GET.get("page", "")
    if wanted.isdecimal() and shown.page_count:
        number = min(max(1, int(wanted)), shown.page_count)
        return selectors.page_get(actor=request.actor, document=shown, number=number)
    if mark is not None:
        return selectors.page_at(actor=request.actor, document=shown, offset=mark[0])
    return selectors.page_get(actor=request.actor, document=shown, number=1)


def _shown(page: Page | None) -> PageShown | None:
    if page is None:
        return None
    note = str(SKIPPED.get(page.skip_reason, page.skip_reason))
    return PageShown(page.number, page.text, "" if page.text.strip() else note or _("Empty page."), note)


def _segments(page: Page | None, mark: tuple[int, int] | None) -> list[dict[str, Any]]:
    """Cut a page's text at the ends of what is marked; the first mark is where the page is scrolled to."""
    if page is None:
        return []
    parts: list[tuple[str, bool, bool]] = []
    at = 0
    for start, end in page_views.passage_stretches(page, *mark) if mark else ():
        parts += [(page.text[at:start], False, False), (page.text[start:end], True, at == 0)]
        at = end
    parts.append((page.text[at:], False, False))
    return [
        {"text": text, "is_marked": is_marked, "is_first": is_first}
        for text, is_marked, is_first in parts
        if text
    ]


def _overlay(shown: Document, page: Page, mark: tuple[int, int]) -> dict[str, Any] | None:
    """Return the passage's boxes in the coordinates of an SVG as wide as 1000 units, None where there are none."""
    boxes = page_views.passage_boxes(shown, page, *mark)
    if not boxes or not page.width or not page.height:
        return None
    height = _BOX_WIDTH * page.height / page.width
    return {
        "width": str(_BOX_WIDTH),
        "height": f"{height:.1f}",
        "boxes": [
            {
                "x": f"{box.left * _BOX_WIDTH:.1f}",
                "y": f"{box.top * height:.1f}",
                "width": f"{box.width * _BOX_WIDTH:.1f}",
                "height": f"{box.height * height:.1f}",
            }
            for box in boxes
        ],
    }


@require_GET
@allowed("collection.read")
def page_image(request: TenantRequest, tenant_slug: str, pk: int, doc_pk: int, page: int) -> HttpResponse:
    """Return a page of a PDF as an image."""
    shown = selectors.document_get(actor=request.actor, pk=doc_pk, collection_pk=pk)
    if not page_views.has_images(shown) or not 1 <= page <= shown.page_count:
        raise Missing("page")
    response = HttpResponse(page_views.page_image(shown, page).read_bytes(), content_type="image/webp")
    # The address holds the document's id, whose bytes never change; "private" keeps it out of shared caches.
    response["Cache-Control"] = "private, max-age=3600"
    return response


@require_GET
@allowed("collection.read")
def download(request: TenantRequest, tenant_slug: str, pk: int, doc_pk: int) -> HttpResponseBase:
    """Return the original, always as a download: an uploaded HTML page must not run in our origin."""
    shown = selectors.document_get(actor=request.actor, pk=doc_pk, collection_pk=pk)
    elsewhere = file_redirect(shown.file, name=shown.name)
    if elsewhere is not None:
        return elsewhere
    response = file_response(blob_open(shown.file), name=shown.name, media_type="application/octet-stream")
    response["Cache-Control"] = "private, no-store"
    return response
