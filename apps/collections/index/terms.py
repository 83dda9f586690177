"""The lexical side of documents: term weights, identifiers, and the statistics that BM25 needs.

A collection's statistics (chunks, terms, chunks per term) change in the same transaction as the rows they count, under
a lock on the collection's row, so they are exact whatever crashes.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
from django.db import connection
from django.db.models import BinaryField, Count, F, Func, QuerySet, Sum
from pgvector import SparseVector

from apps.collections.index.term_weights import weights_pack
from apps.collections.ingestion.codes import EVERYWHERE, CodeKinds, plain
from apps.collections.ingestion.identifiers import identifier_lexemes
from apps.collections.ingestion.lexical import K1, B, form_of, tokenise_as
from apps.collections.models import Chunk, ChunkTerms, Collection, SearchIndex, TermFrequency
from apps.collections.storage.bulk import binary_cursor, packed_copy, rows_copy, vectors_register
from apps.collections.storage.packing import int4, int8, row_start, sparsevec_read, text_array

# Stored weights assume an average chunk length. While it drifts less than this they stay; the error in a score is a
# fraction of it, and the law of large numbers makes rewriting rarer the larger a collection is.
DRIFT = 0.1

# Most terms of a document are known: counting up what is there and then inserting the rest costs a third of an upsert.
# Nobody else changes the rows meanwhile, as the collection is locked.
_COUNT_IN = """
    WITH s AS MATERIALIZED (SELECT * FROM unnest(%(terms)s::int[], %(chunks)s::int[]) AS s (term, chunks)),
    known AS (
        UPDATE collections_termfrequency f SET chunks = f.chunks + s.chunks FROM s
        WHERE f.tenant_id = %(tenant)s AND f.collection_id = %(collection)s AND f.term = s.term
        RETURNING f.term)
    INSERT INTO collections_termfrequency (tenant_id, collection_id, term, chunks)
    SELECT %(tenant)s, %(collection)s, s.term, s.chunks FROM s
    WHERE s.term NOT IN (SELECT term FROM known) ORDER BY s.term
"""
_COUNT_OUT = """
    UPDATE collections_termfrequency f SET chunks = f.chunks - s.chunks
    FROM unnest(%(terms)s::int[], %(chunks)s::int[]) AS s (term, chunks)
    WHERE f.tenant_id = %(tenant)s AND f.collection_id = %(collection)s AND f.term = s.term
"""


@dataclass(frozen=True, slots=True)
class ChunkTokens:
    """One chunk, tokenised: everything about it that needs no lock.

    Attributes:
        form: of its terms, as ``lexical.form_of`` names it.
    """

    chunk_id: int
    terms: tuple[str, ...]
    lexemes: tuple[str, ...]
    form: str


def chunk_tokenise(
    chunk_id: int, text: str, form: str = form_of("english"), cover: str = "", kinds: CodeKinds = EVERYWHERE
) -> ChunkTokens:
    """Tokenise the indexed text of a chunk into terms of this form, with codes of these kinds.

    Args:
        cover: of its document. It makes no identifiers: one that stands in every passage would identify none.
    """
    about = (term for term in tokenise_as(cover, form) if not term.startswith("="))
    return ChunkTokens(chunk_id, (*tokenise_as(text, form), *about), lexemes_of(text, kinds), form)


def lexemes_of(text: str, kinds: CodeKinds) -> tuple[str, ...]:
    """List what a chunk is found by exactly: its identifiers as they are written, and its codes in one form."""
    return (*identifier_lexemes(plain(text)), *kinds.lexemes(text))


@dataclass(frozen=True, slots=True)
class Rows:
    """Lexical rows of a document under way, which the statistics do not count yet.

    Attributes:
        chunks: how many.
        terms: terms of their texts, repeats included.
        found: ids of the terms, each once, rising.
        times: for each of ``found`` the chunks that have it.
    """

    chunks: int = 0
    terms: int = 0
    found: npt.NDArray[Any] = field(default_factory=lambda: np.empty(0, np.int64))
    times: npt.NDArray[Any] = field(default_factory=lambda: np.empty(0, np.int64))


def document_index(
    *, collection: Collection, document_id: int, chunks: Sequence[ChunkTokens], earlier: Rows | None = None
) -> int:
    """Write the lexical rows that a document lacks, and count all it has in.

    Args:
        collection: its row, locked by the caller.
        chunks: those without a row.
        earlier: what ``rows_write`` has written, as ``rows_found`` read it; None for nothing.

    Returns:
        How many rows it has.
    """
    before = earlier or Rows()
    written, found = _rows_write(collection, document_id, chunks, before.chunks, before.terms)
    _count(_COUNT_IN, collection, found, before)
    collection.term_total += before.terms + sum(len(c.terms) for c in chunks)
    collection.chunk_total += before.chunks + len(chunks)
    collection.save(update_fields=["term_total", "chunk_total", "average_length"])
    return before.chunks + written


def rows_write(
    *, collection: Collection, document_id: int, chunks: Sequence[ChunkTokens], before: tuple[int, int]
) -> None:
    """Write lexical rows of a part of a document that is not searched yet, and leave the statistics as they are.

    Args:
        collection: its row, locked by the caller.
        before: chunks of the document that have their rows, and the terms of those.
    """
    _rows_write(collection, document_id, chunks, *before)
    collection.save(update_fields=["average_length"])


def _rows_write(
    collection: Collection,
    document_id: int,
    chunks: Sequence[ChunkTokens],
    chunks_before: int,
    terms_before: int,
) -> tuple[int, npt.NDArray[np.int64]]:
    total_terms = collection.term_total + terms_before + sum(len(c.terms) for c in chunks)
    total_chunks = collection.chunk_total + chunks_before + len(chunks)
    average = total_terms / total_chunks if total_chunks else 0.0
    if not collection.average_length or (
        abs(average / collection.average_length - 1) > DRIFT and average > 0
    ):
        weights_rescale(collection=collection, average=average)
    return _write(collection, document_id, chunks)


def has_rows(document_id: int) -> bool:
    """Tell whether a document has lexical rows: only they concern the collection's statistics."""
    rows: QuerySet[ChunkTerms] = ChunkTerms.objects.filter(chunk__document_id=document_id)
    return rows.exists()


def rows_size(*, collection: Collection, document_id: int) -> tuple[int, int]:
    """Return how many lexical rows a document has, and how many terms their texts."""
    found = _rows(collection, document_id).aggregate(chunks=Count("pk"), terms=Sum("length"))
    return found["chunks"], found["terms"] or 0


def rows_found(*, collection: Collection, document_id: int) -> Rows:
    """Read the lexical rows of a document under way, for ``document_index``; nobody else changes them."""
    rows = _rows(collection, document_id)
    chunks, terms = rows_size(collection=collection, document_id=document_id)
    found, times = np.unique(_terms_of(rows), return_counts=True)
    return Rows(chunks, terms, found.astype(np.int64), times)


def chunk_reindex(
    *, collection: Collection, document_id: int, chunk: ChunkTokens, is_counted: bool = True
) -> None:
    """Replace the lexical row of one chunk and what the statistics say about it.

    The average length that weights assume stays: one chunk moves it by nothing that counts.

    Args:
        collection: its row, locked by the caller.
        is_counted: False for a chunk of a retired version, which the statistics have forgotten.
    """
    rows = ChunkTerms.objects.filter(tenant_id=collection.tenant_id, chunk_id=chunk.chunk_id)
    before = rows.values_list("length", flat=True).first() or 0
    if is_counted:
        _count(_COUNT_OUT, collection, _terms_of(rows))
    rows._raw_delete(rows.db)
    _, found = _write(collection, document_id, [chunk])
    if is_counted:
        _count(_COUNT_IN, collection, found)
        TermFrequency.objects.filter(collection=collection, chunks__lte=0).delete()
        collection.term_total += len(chunk.terms) - before
        collection.save(update_fields=["term_total"])


def _write(
    collection: Collection, document_id: int, chunks: Sequence[ChunkTokens]
) -> tuple[int, npt.NDArray[np.int64]]:
    """Insert the rows of chunks; return how many, and the ids of the terms of each, repeated from chunk to chunk."""
    forms_note(collection, [chunk.form for chunk in chunks])
    weighed = weights_pack([chunk.terms for chunk in chunks], collection.average_length)
    fixed = row_start(7) + int8(collection.tenant_id)
    owners = int8(collection.pk) + int8(document_id)
    written = packed_copy(
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
            fixed
            + int8(chunk.chunk_id)
            + owners
            + int4(len(chunk.terms))
            + weights
            + text_array(chunk.lexemes)
            for chunk, weights in zip(chunks, weighed.packed, strict=True)
        ),
        convert={"lexemes": "array_to_tsvector(lexemes)"},
    )
    return written, weighed.terms


def forms_note(collection: Collection, forms: Iterable[str]) -> None:
    """Have questions asked in these forms too, in the transaction that writes rows of them.

    Args:
        collection: its row, locked by the caller.
    """
    if more := sorted(set(forms).difference(collection.lexical_forms)):
        collection.lexical_forms = [*collection.lexical_forms, *more]
        collection.save(update_fields=["lexical_forms"])


def terms_replace(*, collection: Collection, chunks: Sequence[ChunkTokens], is_counted: bool = True) -> None:
    """Give rows that are there the terms of another form, and the statistics with them; their lexemes stay.

    Args:
        collection: its row, locked by the caller.
        chunks: chunks without a row are passed over.
        is_counted: False for chunks of a retired version.
    """
    rows = ChunkTerms.objects.filter(
        tenant_id=collection.tenant_id, chunk_id__in=[chunk.chunk_id for chunk in chunks]
    )
    before = dict(rows.values_list("chunk_id", "length"))
    chunks = [chunk for chunk in chunks if chunk.chunk_id in before]
    if not chunks:
        return
    forms_note(collection, [chunk.form for chunk in chunks])
    weighed = weights_pack([chunk.terms for chunk in chunks], collection.average_length)
    if is_counted:
        _count(_COUNT_OUT, collection, _terms_of(rows))
    with connection.cursor() as cursor:
        cursor.execute(
            "CREATE TEMPORARY TABLE again (chunk_id int8 PRIMARY KEY, length int4, weights sparsevec) ON COMMIT DROP"
        )
    packed_copy(
        "again",
        {"chunk_id": "int8", "length": "int4", "weights": "sparsevec"},
        (
            row_start(3) + int8(chunk.chunk_id) + int4(len(chunk.terms)) + weights
            for chunk, weights in zip(chunks, weighed.packed, strict=True)
        ),
    )
    with connection.cursor() as cursor:
        cursor.execute(
            "UPDATE collections_chunkterms t SET weights = a.weights, length = a.length FROM pg_temp.again a "
            "WHERE t.chunk_id = a.chunk_id AND t.tenant_id = %s",
            [collection.tenant_id],
        )
        cursor.execute("DROP TABLE again")
    if is_counted:
        _count(_COUNT_IN, collection, weighed.terms)
        TermFrequency.objects.filter(collection=collection, chunks__lte=0).delete()
        collection.term_total += sum(len(chunk.terms) for chunk in chunks) - sum(before.values())
        collection.save(update_fields=["term_total"])


def _count(sql: str, collection: Collection, terms: npt.NDArray[Any], more: Rows | None = None) -> None:
    """Count terms in or out, given once for each chunk they stand in, and those of ``more``."""
    found, chunks = np.unique(terms, return_counts=True)
    if more is not None and more.chunks:
        found, places = np.unique(np.concatenate([found, more.found]), return_inverse=True)
        chunks = np.bincount(places, np.concatenate([chunks, more.times])).astype(np.int64)
    values: dict[str, Any] = {
        "tenant": collection.tenant_id,
        "collection": collection.pk,
        # As text: adapting lists costs ten times as much.
        "terms": f"{{{','.join(map(str, found.tolist()))}}}",
        "chunks": f"{{{','.join(map(str, chunks.tolist()))}}}",
    }
    with connection.cursor() as cursor:
        cursor.execute(sql, values)


def _terms_of(rows: QuerySet[ChunkTerms]) -> npt.NDArray[Any]:
    """Return the terms of stored rows, once for each chunk they stand in."""
    sent = Func("weights", function="sparsevec_send", output_field=BinaryField())
    sql, parameters = rows.annotate(sent=sent).values_list("sent").query.sql_with_params()
    with binary_cursor() as cursor:
        cursor.execute(sql, parameters)
        return np.concatenate([np.empty(0, np.int32), *(sparsevec_read(row[0])[0] for row in cursor)])


def document_uncount(*, collection: Collection, document_id: int) -> int:
    """Take a document out of the statistics of the lexical index and keep its rows, as an earlier version needs it.

    Args:
        collection: its row, locked by the caller.

    Returns:
        How many rows it has.
    """
    lengths = list(_rows(collection, document_id).values_list("length", flat=True))
    if lengths:
        _count(_COUNT_OUT, collection, _terms_of(_rows(collection, document_id)))
        TermFrequency.objects.filter(collection=collection, chunks__lte=0).delete()
        Collection.objects.filter(pk=collection.pk).update(
            term_total=F("term_total") - sum(lengths), chunk_total=F("chunk_total") - len(lengths)
        )
        collection.refresh_from_db(fields=["term_total", "chunk_total"])
    return len(lengths)


def document_unindex(*, collection: Collection, document_id: int, is_counted: bool = True) -> int:
    """Take a document out of the lexical index and its statistics.

    Args:
        collection: its row, locked by the caller.
        is_counted: False for a retired version, which the statistics have forgotten already.

    Returns:
        How many rows went.
    """
    if is_counted:
        document_uncount(collection=collection, document_id=document_id)
    rows = _rows(collection, document_id)
    gone: int = rows._raw_delete(rows.db)
    return gone


def _rows(collection: Collection, document_id: int) -> QuerySet[ChunkTerms]:
    rows: QuerySet[ChunkTerms] = ChunkTerms.objects.filter(
        tenant_id=collection.tenant_id,
        chunk_id__in=Chunk.objects.filter(document_id=document_id).values("pk"),
    )
    return rows


def weights_rescale(*, collection: Collection, average: float) -> None:
    """Rewrite a collection's stored weights for another average chunk length.

    A weight is ``c*(k1+1) / (c+norm)``, so the count ``c`` comes back from it exactly and no text is read.
    """
    # Postings hold weights of their own: search scans until they are built again.
    SearchIndex.objects.filter(collection=collection, kind=SearchIndex.Kind.POSTINGS).delete()
    old, collection.average_length = collection.average_length, average
    collection.save(update_fields=["average_length"])
    if not old:
        return
    vectors_register()
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT chunk_id, length, weights FROM collections_chunkterms WHERE tenant_id = own_tenant() AND collection_id = %s",
            [collection.pk],
        )
        rows = cursor.fetchall()
        if not rows:
            return
        stage = [(chunk_id, _rescaled(length, vector, old, average)) for chunk_id, length, vector in rows]
        cursor.execute(
            "CREATE TEMPORARY TABLE rescaled (chunk_id int8 PRIMARY KEY, weights sparsevec) ON COMMIT DROP"
        )
    rows_copy("rescaled", {"chunk_id": "int8", "weights": "sparsevec"}, stage)
    with connection.cursor() as cursor:
        cursor.execute(
            "UPDATE collections_chunkterms t SET weights = r.weights FROM pg_temp.rescaled r "
            "WHERE t.tenant_id = own_tenant() AND t.chunk_id = r.chunk_id AND t.collection_id = %s",
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
    return SparseVector(dict(zip(vector.indices(), weights.tolist(), strict=True)), vector.dimensions())
