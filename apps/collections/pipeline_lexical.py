"""The lexical rows of a long document, written slice by slice before it is opened to search."""

from __future__ import annotations

from apps.collections import terms
from apps.collections.models import Chunk, Collection, Document
from apps.collections.pipeline_rows import chunk_indexed_text
from apps.collections.pipeline_stage import IngestContext, Meter, stage_writing

INDEX_BATCH = 500  # chunks of one transaction


def rows_index(
    ctx: IngestContext, document: Document, collection: Collection
) -> list[terms.ChunkTokens]:
    """Write the lexical rows of all chunks but the last batch, uncounted; return the tokens of that one.

    The statistics learn of all at once, in the transaction that opens the document: until then nothing of it weighs.
    """
    chunks = Chunk.objects.filter(document=document).order_by("index")
    meter = Meter(ctx, document)
    done, known = terms.rows_size(collection=collection, document_id=document.pk)
    while True:
        batch = list(chunks.filter(index__gte=done)[:INDEX_BATCH])
        tokens = [
            terms.chunk_tokenise(chunk.pk, chunk_indexed_text(chunk), collection.language)
            for chunk in batch
        ]
        meter(done, document.chunk_count)
        if done + len(batch) >= document.chunk_count or not batch:
            return tokens
        with stage_writing(ctx, document, is_indexing=True) as (row, locked):
            terms.rows_write(
                collection=locked, document_id=row.pk, chunks=tokens, before=(done, known)
            )
            done += len(batch)
            known += sum(len(one.terms) for one in tokens)
            row.lexical_count = row.progress_current = done
            row.progress_total = row.chunk_count
            row.save(
                update_fields=["lexical_count", "progress_current", "progress_total", "updated_at"]
            )
        ctx.give_way()
