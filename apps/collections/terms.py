"""The lexical side of documents: term weights, identifiers, and the statistics that BM25 needs.

A collection's statistics (chunks, terms, chunks per term) change in the same transaction as the rows they count, under
a lock on the collection's row, so they are exact whatever crashes.
"""

# ruff: noqa: S608 - only constants of this module stand in the text
from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from django.db import connection
from django.db.models import F
from pgvector import SparseVector

from apps.collections.bulk import rows_copy, vectors_register
from apps.collections.ingestion.identifiers import identifier_lexemes
from apps.collections.lexical import K1, SPARSE_DIMS, B, tf_weights, tokenise
from apps.collections.models import Chunk, ChunkTerms, Collection, TermFrequency

# Stored weights assume an average chunk length. While it drifts less than this they stay; the error in a score is a
# fraction of it, and the law of large numbers makes rewriting rarer the larger a collection is.
DRIFT = 0.1

_TERMS_OF_CHUNKS = """
    SELECT (split_part(entry, ':', 1)::int - 1) AS term, count(*) AS chunks
    FROM collections_chunk c JOIN collections_chunkterms t ON t.chunk_id = c.id,
         unnest(string_to_array(trim(BOTH '{}' FROM split_part(t.weights::text, '/', 1)), ',')) AS entry
    WHERE c.document_id = %(document)s AND entry <> ''
    GROUP BY 1
"""
_COUNT_IN = f"""
    INSERT INTO collections_termfrequency (tenant_id, collection_id, term, chunks)
    SELECT %(tenant)s, %(collection)s, s.term, s.chunks FROM ({_TERMS_OF_CHUNKS}) s
    ON CONFLICT ON CONSTRAINT term_once
    DO UPDATE SET chunks = collections_termfrequency.chunks + excluded.chunks
"""
_COUNT_OUT = f"""
    UPDATE collections_termfrequency f SET chunks = f.chunks - s.chunks
    FROM ({_TERMS_OF_CHUNKS}) s
    WHERE f.collection_id = %(collection)s AND f.term = s.term
"""


@dataclass(frozen=True, slots=True)
class ChunkTokens:
    """One chunk, tokenised: everything about it that needs no lock."""

    chunk_id: int
    terms: tuple[str, ...]
    lexemes: tuple[str, ...]


def chunk_tokenise(chunk_id: int, text: str) -> ChunkTokens:
    """Tokenise the indexed text of a chunk."""
    return ChunkTokens(chunk_id, tuple(tokenise(text)), tuple(identifier_lexemes(text)))


def document_index(
    *, collection: Collection, document_id: int, chunks: Sequence[ChunkTokens]
) -> int:
    """Write the lexical rows of a document that has none, and count them in.

    Args:
        collection: its row, locked by the caller.

    Returns:
        How many rows were written.
    """
    terms = sum(len(c.terms) for c in chunks)
    total_terms, total_chunks = collection.term_total + terms, collection.chunk_total + len(chunks)
    average = total_terms / total_chunks if total_chunks else 0.0
    if not collection.average_length or (
        abs(average / collection.average_length - 1) > DRIFT and average > 0
    ):
        weights_rescale(collection=collection, average=average)
    assumed = collection.average_length
    written = rows_copy(
        ChunkTerms._meta.db_table,
        {
            "tenant_id": "int8",
            "chunk_id": "int8",
            "collection_id": "int8",
            "document_id": "int8",
            "length": "int4",
            "weights": "sparsevec",
            "lexemes": "text[]",
        },
        (
            (
                collection.tenant_id,
                c.chunk_id,
                collection.pk,
                document_id,
                len(c.terms),
                SparseVector(tf_weights(c.terms, assumed), SPARSE_DIMS),
                list(c.lexemes),
            )
            for c in chunks
        ),
        convert={"lexemes": "array_to_tsvector(lexemes)"},
    )
    _execute(_COUNT_IN, collection, document_id)
    collection.term_total, collection.chunk_total = total_terms, total_chunks
    collection.save(update_fields=["term_total", "chunk_total", "average_length"])
    return written


def document_unindex(*, collection: Collection, document_id: int) -> int:
    """Take a document out of the lexical index and its statistics.

    Args:
        collection: its row, locked by the caller.

    Returns:
        How many rows went.
    """
    rows = ChunkTerms.objects.filter(
        tenant_id=collection.tenant_id,
        chunk_id__in=Chunk.objects.filter(document_id=document_id).values("pk"),
    )
    lengths = list(rows.values_list("length", flat=True))
    if not lengths:
        return 0
    _execute(_COUNT_OUT, collection, document_id)
    TermFrequency.objects.filter(collection=collection, chunks__lte=0).delete()
    rows._raw_delete(rows.db)
    Collection.objects.filter(pk=collection.pk).update(
        term_total=F("term_total") - sum(lengths), chunk_total=F("chunk_total") - len(lengths)
    )
    collection.refresh_from_db(fields=["term_total", "chunk_total"])
    return len(lengths)


def weights_rescale(*, collection: Collection, average: float) -> None:
    """Rewrite a collection's stored weights for another average chunk length.

    A weight is ``c*(k1+1) / (c+norm)``, so the count ``c`` comes back from it exactly and no text is read.
    """
    old, collection.average_length = collection.average_length, average
    collection.save(update_fields=["average_length"])
    if not old:
        return
    vectors_register()
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT chunk_id, length, weights FROM collections_chunkterms WHERE collection_id = %s",
            [collection.pk],
        )
        rows = cursor.fetchall()
        if not rows:
            return
        stage = [
            (chunk_id, _rescaled(length, vector, old, average)) for chunk_id, length, vector in rows
        ]
        cursor.execute(
            "CREATE TEMPORARY TABLE rescaled (chunk_id int8 PRIMARY KEY, weights sparsevec) ON COMMIT DROP"
        )
    rows_copy("rescaled", {"chunk_id": "int8", "weights": "sparsevec"}, stage)
    with connection.cursor() as cursor:
        cursor.execute(
            "UPDATE collections_chunkterms t SET weights = r.weights FROM rescaled r "
            "WHERE t.chunk_id = r.chunk_id AND t.collection_id = %s",
            [collection.pk],
        )
        cursor.execute("DROP TABLE rescaled")


def _rescaled(length: int, vector: SparseVector, old: float, new: float) -> SparseVector:
    values = np.asarray(vector.values(), dtype=np.float64)
    before = K1 * (1 - B + B * length / old)
    after = K1 * (1 - B + B * length / new)
    # Two terms under one id have weights that add up, perhaps beyond what one term can reach.
    counts = values * before / np.maximum(K1 + 1 - values, 0.05)
    weights = counts * (K1 + 1) / (counts + after)
    return SparseVector(
        dict(zip(vector.indices(), weights.tolist(), strict=True)), vector.dimensions()
    )


def _execute(sql: str, collection: Collection, document_id: int) -> None:
    with connection.cursor() as cursor:
        cursor.execute(
            sql,
            {
                "tenant": collection.tenant_id,
                "collection": collection.pk,
                "document": document_id,
            },
        )
