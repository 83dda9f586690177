"""The ledger of a document: what its row claims, against what the tables hold."""

from __future__ import annotations

from dataclasses import dataclass

from apps.collections.models import Chunk, ChunkTerms, Document, DocumentStatus, Embedding, Page


@dataclass(frozen=True, slots=True)
class Ledger:
    """Rows counted from the tables.

    Attributes:
        pages: all pages of the document.
        skipped: pages left out of the chunks.
        chunks: its chunks.
        vectors: of them with a vector in the collection's space.
        lexical: of them with term weights.
    """

    pages: int
    skipped: int
    chunks: int
    vectors: int
    lexical: int

    @property
    def is_balanced(self) -> bool:
        """Tell whether every chunk has its vector and its lexical row, and there is at least one."""
        return 0 < self.chunks == self.vectors == self.lexical


def ledger_count(document: Document, space_id: int) -> Ledger:
    """Count a document's rows."""
    pages = Page.objects.filter(document=document)
    return Ledger(
        pages=pages.count(),
        skipped=pages.exclude(skip_reason="").count(),
        chunks=Chunk.objects.filter(document=document).count(),
        vectors=Embedding.objects.filter(chunk__document=document, space_id=space_id).count(),
        lexical=ChunkTerms.objects.filter(chunk__document=document).count(),
    )


def ledger_agrees(document: Document, ledger: Ledger) -> bool:
    """Tell whether a document's row claims what the tables hold."""
    claimed = (
        document.page_count,
        document.skipped_pages,
        document.chunk_count,
        document.vector_count,
        document.lexical_count,
    )
    found = (ledger.pages, ledger.skipped, ledger.chunks, ledger.vectors, ledger.lexical)
    return claimed == found and (document.status != DocumentStatus.READY or ledger.is_balanced)
