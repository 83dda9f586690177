"""Between what readers and chunker make and the rows that keep it: pages and chunks, written and read back."""

from __future__ import annotations

from psycopg.types.json import Jsonb

from apps.collections.bulk import rows_copy
from apps.collections.ingestion.frames import page_from_json, page_to_json
from apps.collections.ingestion.types import ChunkDraft, ExtractedDocument, PageText
from apps.collections.models import Chunk, Document, Page


def pages_write(row: Document, extracted: ExtractedDocument) -> None:
    """Insert the pages of a document that has none."""

    def layout(page: PageText) -> Jsonb:
        wire = page_to_json(page)
        return Jsonb({"headings": wire["headings"], "regions": wire["regions"]})

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
                layout(page),
            )
            for page, start in zip(extracted.pages, extracted.page_starts, strict=True)
        ),
    )


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
                }
            )
            for page in Page.objects.filter(document=document).order_by("number")
        ),
        is_paged=document.is_paged,
        title=document.title,
    )


def chunks_write(row: Document, drafts: list[ChunkDraft]) -> None:
    """Insert the chunks of a document that has none."""
    rows_copy(
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
        },
        (
            (
                row.tenant_id,
                row.collection_id,
                row.pk,
                draft.index,
                draft.kind,
                draft.text,
                draft.char_start,
                draft.char_end,
                draft.page_start if row.is_paged else None,
                draft.page_end if row.is_paged else None,
                Jsonb(list(draft.headings)),
                Jsonb(dict(draft.metadata)),
            )
            for draft in drafts
        ),
    )


def chunk_indexed_text(chunk: Chunk) -> str:
    """Return the text of a chunk that search embeds and weighs: headings, repeated table header, text."""
    return ChunkDraft(
        index=chunk.index,
        text=chunk.text,
        char_start=chunk.char_start,
        char_end=chunk.char_end,
        page_start=chunk.page_start or 0,
        page_end=chunk.page_end or 0,
        headings=tuple(chunk.headings),
        metadata=chunk.metadata,
    ).indexed_text
