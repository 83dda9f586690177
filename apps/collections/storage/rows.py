"""Between what readers and chunker make and the rows that keep it: pages and chunks, written and read back."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from psycopg.types.json import Jsonb

from apps.collections.ingestion.frames import page_from_json, page_to_json
from apps.collections.ingestion.types import ChunkDraft, ExtractedDocument, PageText
from apps.collections.models import Chunk, ChunkKind, Document, Page
from apps.collections.storage.bulk import packed_copy, rows_copy
from apps.collections.storage.packing import int4, int8, jsonb, row_start, text

PAGE_CHARS = 4_000_000  # in one transaction
_EMPTY_LIST, _EMPTY_OBJECT = jsonb("[]"), jsonb("{}")


def pages_write(row: Document, extracted: ExtractedDocument, part: slice = slice(None)) -> None:
    """Insert pages that a document does not have yet.

    Args:
        part: which of them.
    """

    rows_copy(
        Page._meta.db_table,
        {
            "tenant_id": "int8",
            "document_id": "int8",
            "number": "int4",
            "text": "text",
            "char_start": "int4",
            "skip_reason": "text",
            "width": "float8",
            "height": "float8",
            "layout": "jsonb",
        },
        (
            (
                row.tenant_id,
                row.pk,
                page.number,
                page.text,
                start,
                str(page.junk or ""),
                page.width,
                page.height,
                Jsonb(page_layout(page)),
            )
            for page, start in zip(extracted.pages[part], extracted.page_starts[part], strict=True)
        ),
    )


def page_layout(page: PageText) -> dict[str, Any]:
    """Return what a page's row keeps beside its text, as the reader's wire format has it."""
    wire = page_to_json(page)
    kept = {"headings": wire["headings"], "regions": wire["regions"]}
    return kept | {name: wire[name] for name in ("code", "scan", "marks") if wire[name]}


def page_parts(extracted: ExtractedDocument) -> list[slice]:
    """Cut the pages into parts that are written in a moment each: nobody waits long for a row that is locked."""
    parts, start, chars = [], 0, 0
    for place, page in enumerate(extracted.pages):
        if chars and chars + len(page.text) > PAGE_CHARS:
            parts.append(slice(start, place))
            start, chars = place, 0
        chars += len(page.text)
    return [*parts, slice(start, None)]


def extracted_load(document: Document) -> ExtractedDocument:
    """Rebuild what the reader returned from the stored pages."""
    return ExtractedDocument(
        media_type=document.media_type,
        pages=tuple(
            page_from_json(
                {
                    "number": page.number,
                    "text": page.text,
                    "width": page.width,
                    "height": page.height,
                    "headings": page.layout["headings"],
                    "regions": page.layout["regions"],
                    "junk": page.skip_reason,
                    "code": page.layout.get("code"),
                    "scan": page.layout.get("scan"),
                    "marks": page.layout.get("marks"),
                }
            )
            for page in Page.objects.filter(document=document).order_by("number")
        ),
        is_paged=document.is_paged,
        title=document.title,
    )


def chunks_write(row: Document, drafts: Sequence[ChunkDraft]) -> None:
    """Insert chunks that a document does not have yet."""
    fixed = row_start(15) + int8(row.tenant_id) + int8(row.collection_id) + int8(row.pk)
    jsons = _Jsons()
    packed_copy(
        Chunk._meta.db_table,
        {
            "tenant_id": "int8",
            "collection_id": "int8",
            "document_id": "int8",
            "index": "int4",
            "kind": "text",
            "text": "text",
            "char_start": "int4",
            "char_end": "int4",
            "page_start": "int4",
            "page_end": "int4",
            "headings": "jsonb",
            "metadata": "jsonb",
            "qualified_name": "text",
            "line_start": "int4",
            "line_end": "int4",
        },
        (
            b"".join(
                (
                    fixed,
                    int4(draft.index),
                    text(ChunkKind.DOC.value if draft.kind in ("text", "code") else draft.kind),
                    text(draft.text),
                    int4(draft.char_start),
                    int4(draft.char_end),
                    int4(draft.page_start if row.is_paged else None),
                    int4(draft.page_end if row.is_paged else None),
                    jsons.field(list(draft.headings)),
                    jsons.field(dict(draft.metadata)),
                    text(str(draft.metadata.get("qualified_name", ""))[:500]),
                    int4(draft.metadata.get("line_start")),
                    int4(draft.metadata.get("line_end")),
                )
            )
            for draft in drafts
        ),
    )


class _Jsons:
    """Makes jsonb fields; what is empty or equals the value before it (headings mostly do) is made once."""

    def __init__(self) -> None:
        self._last: Any = None
        self._made = b""

    def field(self, value: Any) -> bytes:
        if not value:
            return _EMPTY_LIST if isinstance(value, list) else _EMPTY_OBJECT
        if isinstance(value, dict):
            return jsonb(json.dumps(value))
        if value != self._last:
            self._last, self._made = value, jsonb(json.dumps(value))
        return self._made


def chunk_embedded_text(chunk: Chunk, cover: str) -> str:
    """Return what search embeds of a chunk: what it is a passage of, so that equal words of two documents part, and itself.

    Args:
        cover: of its document.
    """
    text = chunk_indexed_text(chunk)
    return f"{cover}\n{text}" if cover else text


def chunk_indexed_text(chunk: Chunk) -> str:
    """Return what search weighs of a chunk: headings, repeated table header, text.

    Once somebody has edited it, the text is what they wrote: the rows and running lines that the reader found are of
    the old one.
    """
    metadata = chunk.metadata
    if chunk.is_edited:
        metadata = {k: v for k, v in metadata.items() if k not in ("table_rows", "furniture")}
    return ChunkDraft(
        index=chunk.index,
        text=chunk.text,
        char_start=chunk.char_start,
        char_end=chunk.char_end,
        page_start=chunk.page_start or 0,
        page_end=chunk.page_end or 0,
        headings=tuple(chunk.headings),
        metadata=metadata,
    ).indexed_text
