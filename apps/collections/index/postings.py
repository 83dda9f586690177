"""Postings of a large collection: for each term the chunks that have it, packed, and added up outside the database.

Sums over packed arrays cost a search 2 ms where the database needed 50 to unnest and group the same postings (60,000
chunks, 8 terms). They only choose candidates: the statement of the search then weighs these exactly, under the
conditions of every leg, together with the chunks that are behind the index or were edited since it was built.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt
from django.db import transaction
from django.db.models import Func, Value

from apps.collections.models import Chunk, Collection, Posting, SearchIndex
from apps.collections.storage.bulk import binary_cursor, packed_copy
from apps.collections.storage.packing import int4, int8, raw, row_start, sparsevec_read

BLOCK = 50_000  # chunks that a build holds at once
_FETCHED = 2_000
_CACHE_BYTES = 64 * 1024 * 1024
Places = npt.NDArray[np.uint32]


@dataclass(frozen=True, slots=True)
class Contents:
    """What the places in an index stand for; never changes once the index is built.

    Attributes:
        chunks: ids, rising.
        documents: id of the document of each.
    """

    chunks: npt.NDArray[np.int64]
    documents: npt.NDArray[np.int64]

    @property
    def size(self) -> int:
        """Give the bytes held."""
        return int(self.chunks.nbytes + self.documents.nbytes)


def postings_build(row: SearchIndex, check: Callable[[], None]) -> None:
    """Fill an index that is being built, a block of chunks after the other.

    Args:
        row: covers the chunks up to its ``last_chunk``.
        check: called between blocks; what it raises ends the build.
    """
    chunks: list[npt.NDArray[np.int64]] = []
    documents: list[npt.NDArray[np.int64]] = []
    with transaction.atomic():
        start = 0
        for number, block in enumerate(_blocks(row)):
            check()
            ids, owners, terms, places, weights = block
            _block_write(row, number, terms, places + np.uint32(start), weights)
            chunks.append(ids)
            documents.append(owners)
            start += len(ids)
        row.chunk_ids = np.concatenate([*chunks, np.empty(0, np.int64)]).tobytes()
        row.document_ids = np.concatenate([*documents, np.empty(0, np.int64)]).tobytes()
        row.save(update_fields=["chunk_ids", "document_ids"])


def _blocks(row: SearchIndex) -> Iterator[tuple[Any, Any, Any, Any, Any]]:
    """Yield chunk ids, document ids, and for each entry its term, its chunk's place in the block, its weight."""
    with binary_cursor(f"postings_{row.pk}") as cursor:
        cursor.execute(
            "SELECT chunk_id, document_id, sparsevec_send(weights) FROM collections_chunkterms "
            "WHERE tenant_id = %s AND collection_id = %s AND chunk_id <= %s ORDER BY chunk_id",
            [row.tenant_id, row.collection_id, row.last_chunk],
        )
        while True:
            rows: list[Any] = []
            while len(rows) < BLOCK and (some := cursor.fetchmany(_FETCHED)):
                rows += some
            if not rows:
                return
            entries = [sparsevec_read(entry[2]) for entry in rows]
            lengths = [len(indices) for indices, _ in entries]
            yield (
                np.array([entry[0] for entry in rows], np.int64),
                np.array([entry[1] for entry in rows], np.int64),
                np.concatenate([indices for indices, _ in entries]),
                np.repeat(np.arange(len(rows), dtype=np.uint32), lengths),
                np.concatenate([values for _, values in entries]),
            )


def _block_write(
    row: SearchIndex,
    number: int,
    terms: npt.NDArray[np.int32],
    places: Places,
    weights: npt.NDArray[np.float32],
) -> None:
    order = np.argsort(terms, kind="stable")
    terms, places, weights = terms[order], places[order], weights[order]
    edges = [0, *(np.flatnonzero(terms[1:] != terms[:-1]) + 1).tolist(), len(terms)]
    fixed = row_start(7) + int8(row.tenant_id) + int8(row.pk)
    packed_copy(
        Posting._meta.db_table,
        {
            "tenant_id": "int8",
            "index_id": "int8",
            "term": "int4",
            "block": "int4",
            "size": "int4",
            "places": "bytea",
            "weights": "bytea",
        },
        (
            fixed
            + int4(int(terms[a]))
            + int4(number)
            + int4(b - a)
            + raw(places[a:b].tobytes())
            + raw(weights[a:b].tobytes())
            for a, b in pairwise(edges)
            if a < b
        ),
    )


def postings_note_edit(*, collection: Collection, chunk_id: int) -> None:
    """Let search weigh a chunk apart from now on, as its terms are not those that an index knows.

    Args:
        collection: its row, locked by the caller; a build takes that lock before it reads.
    """
    SearchIndex.objects.filter(
        tenant_id=collection.tenant_id,
        collection=collection,
        kind=SearchIndex.Kind.POSTINGS,
        last_chunk__gte=chunk_id,
    ).exclude(edited__contains=[chunk_id]).update(
        edited=Func("edited", Value(chunk_id), function="array_append")
    )


def postings_note_late(*, collection: Collection, document_id: int) -> None:
    """Let search weigh those chunks of a document apart that an index covers by their ids and cannot have read.

    A long document's rows come slice by slice, and another document may have had the index built meanwhile.

    Args:
        collection: its row, locked by the caller; a build takes that lock before it reads.
    """
    indexes = SearchIndex.objects.defer("chunk_ids", "document_ids").filter(
        tenant_id=collection.tenant_id, collection=collection, kind=SearchIndex.Kind.POSTINGS
    )
    for index in indexes:
        late = Chunk.objects.filter(document_id=document_id, pk__lte=index.last_chunk)
        ids = sorted({*index.edited, *late.values_list("pk", flat=True)})
        if len(ids) > len(index.edited):
            SearchIndex.objects.filter(pk=index.pk).update(edited=ids)


_contents: OrderedDict[int, Contents] = OrderedDict()
_contents_lock = threading.Lock()


def index_contents(index_id: int) -> Contents | None:
    """Return what the places of an index stand for, kept in this process; None when the index is gone."""
    with _contents_lock:
        found = _contents.get(index_id)
        if found is not None:
            _contents.move_to_end(index_id)
            return found
    with binary_cursor() as cursor:
        cursor.execute(
            "SELECT chunk_ids, document_ids FROM collections_searchindex WHERE tenant_id = own_tenant() AND id = %s",
            [index_id],
        )
        row = cursor.fetchone()
    if row is None:
        return None
    found = Contents(np.frombuffer(row[0], np.int64), np.frombuffer(row[1], np.int64))
    with _contents_lock:
        _contents[index_id] = found
        while len(_contents) > 1 and sum(c.size for c in _contents.values()) > _CACHE_BYTES:
            _contents.popitem(last=False)
    return found


def postings_add(
    contents: Contents,
    postings: Sequence[tuple[float, bytes, bytes]],
    *,
    limit: int,
    documents: npt.NDArray[np.int64] | None = None,
    disabled: npt.NDArray[np.int64] | None = None,
) -> list[int]:
    """Return the chunks with the largest sums, in no particular order; at a draw those with the smaller ids.

    Args:
        postings: weight of the term in the question, packed places, packed weights.
        limit: how many at most.
        documents: the only ones that may be found; None for all.
        disabled: chunks that may not be found; None for none.
    """
    sums = np.zeros(len(contents.chunks), np.float32)
    for weight, places, weights in postings:
        # numpy takes longer to use other integers than its own as an index.
        at = np.frombuffer(places, np.uint32).astype(np.intp)
        np.add.at(sums, at, np.frombuffer(weights, np.float32) * np.float32(weight))
    if documents is not None:
        sums[~np.isin(contents.documents, documents)] = 0
    if disabled is not None and len(disabled):
        sums[np.isin(contents.chunks, disabled)] = 0
    edge = _edge(sums, limit) if limit < len(sums) else np.float32(0)
    if edge > 0:
        above = np.flatnonzero(sums > edge)
        found = np.concatenate([above, np.flatnonzero(sums == edge)[: limit - len(above)]])
    else:
        found = np.flatnonzero(sums)
    ids: list[int] = contents.chunks[found].tolist()
    return ids


def _edge(sums: npt.NDArray[np.float32], limit: int) -> np.float32:
    """Return the smallest of the largest sums, of which there are more than ``limit``.

    Each sixteenth tells about where it is, so that a few hundred are put in order and not 60,000, which takes six times
    as long. Where those are not enough, all are.
    """
    some, enough = sums[::16], limit // 4
    if 0 < enough <= len(some):
        likely = sums[sums >= np.partition(some, -enough)[-enough]]
        if len(likely) >= limit:
            sums = likely
    edge: np.float32 = np.partition(sums, -limit)[-limit]
    return edge


def index_forget(index_id: int) -> None:
    """Drop what this process keeps of an index."""
    with _contents_lock:
        _contents.pop(index_id, None)


__all__ = [
    "Contents",
    "index_contents",
    "index_forget",
    "postings_add",
    "postings_build",
    "postings_note_edit",
]
