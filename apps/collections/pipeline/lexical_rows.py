"""The lexical rows of a document, and the form of their terms; of a long one written slice by slice, before it is opened."""

from __future__ import annotations

from apps.collections.index import terms
from apps.collections.index.codes import code_kinds, late_note
from apps.collections.ingestion.lexical import form_for
from apps.collections.models import Chunk, Collection, Document
from apps.collections.pipeline.stage import IngestContext, Meter, collection_now, stage_writing
from apps.collections.storage.rows import chunk_indexed_text
from toolloop.language_detection import language_or_script

INDEX_BATCH = 500  # chunks of one transaction
_SAMPLES = 10  # places of a document at which its language is told
_SAMPLE_CHARS = 2_000  # that are looked at, all together


def form_choose(row: Document, collection: Collection) -> None:
    """Tell the language of a document by its chunks, and choose the form of its terms; the caller saves both.

    Code says nothing about it: its words are English or nobody's.
    """
    chunks = Chunk.objects.filter(document=row, qualified_name="")
    count = row.chunk_count
    places = {count * number // _SAMPLES for number in range(_SAMPLES)}
    texts = chunks.filter(index__in=places).order_by("index").values_list("text", flat=True)
    share = _SAMPLE_CHARS // max(1, len(texts))
    sample = "\n".join(text[:share] for text in texts)
    row.language = language_or_script(sample)
    row.lexical_form = form_for(row.language, collection.language)


def rows_index(
    ctx: IngestContext, document: Document, collection: Collection
) -> tuple[list[terms.ChunkTokens], str]:
    """Write the lexical rows of all chunks but the last batch, uncounted; return the tokens of that one.

    Returns them with the form in which all rows hold their codes, "" when it has changed meanwhile.

    The form of the terms is chosen before the first row, for all of them, and stands in ``document``; the caller saves
    it. The statistics learn of all at once, in the transaction that opens the document: until then nothing of it weighs.
    """
    done, known = terms.rows_size(collection=collection, document_id=document.pk)
    if not done:
        form_choose(document, collection)
    chunks = Chunk.objects.filter(document=document).order_by("index")
    meter = Meter(ctx, document)
    kinds = code_kinds(document.tenant_id)
    form = kinds.form if not done or document.code_form == kinds.form else ""
    while True:
        batch = list(chunks.filter(index__gte=done)[:INDEX_BATCH])
        tokens = [
            terms.chunk_tokenise(
                chunk.pk, chunk_indexed_text(chunk), document.lexical_form, document.cover, kinds
            )
            for chunk in batch
        ]
        meter(done, document.chunk_count)
        if done + len(batch) >= document.chunk_count or not batch:
            late_note(document.tenant_id, kinds)
            return tokens, form
        with stage_writing(ctx, document, is_indexing=True) as row:
            terms.rows_write(
                collection=collection_now(row), document_id=row.pk, chunks=tokens, before=(done, known)
            )
            done += len(batch)
            known += sum(len(one.terms) for one in tokens)
            row.code_form = form
            row.lexical_count = row.progress_current = done
            row.progress_total = row.chunk_count
            row.language, row.lexical_form = document.language, document.lexical_form
            row.save(
                update_fields=[
                    "lexical_count",
                    "code_form",
                    "language",
                    "lexical_form",
                    "progress_current",
                    "progress_total",
                    "updated_at",
                ]
            )
        ctx.give_way()
