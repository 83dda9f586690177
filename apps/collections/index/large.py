"""Indexes for collections that outgrow a scan: an HNSW graph over the vectors, postings of the terms.

Both cover the chunks up to a mark (``SearchIndex.last_chunk``); search scans what came later. So nothing has to be kept
current while documents come: inserting into an HNSW graph runs at 300 rows a second, beside it at 50,000. When the
tail has grown, a new index is built beside the old one, and then takes its place. Vectors that are deleted go from the
graph at once (``apps.collections.index.graphs``); postings of deleted passages are passed over at the end of a search,
and left out of the next index.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Protocol

import psycopg
from django.conf import settings
from django.db import connection, transaction
from django.db.models import Max, QuerySet
from django.utils import timezone

from apps.collections.index.graphs import graph_build, graph_exists, graphs_drop
from apps.collections.index.postings import index_forget, postings_build
from apps.collections.index.spaces import spaces_written
from apps.collections.models import Collection, Embedding, EmbeddingSpace, SearchIndex, SearchIndexStatus
from jobs.context import JobCancelled
from jobs.services import job_enqueue
from tenancy.actors import system_actor
from tenancy.database.base import as_login_role
from tenancy.database.direct import direct_connection
from tenancy.scope import platform_scope, tenant_scope

HNSW_MIN = 5_000  # chunks in a collection; below it a scan is fast, and exact

POSTINGS_MIN = 5_000

TAIL = 0.2  # share of a collection that may lie behind an index before it is built anew
BUILD_KIND = "collections.index_build"
_LOCKS = 0x1D5  # the class of advisory locks of builds
_LOCK_POLL_S = 0.5
Kind = SearchIndex.Kind


class BuildContext(Protocol):
    """What a build needs of ``jobs.context.JobContext``."""

    job_id: int

    def check(self) -> None:
        """Raise when the job must stop."""


def indexes_consider(collection: Collection) -> bool:
    """Enqueue the building of a collection's indexes if they are due, in the current transaction; return whether.

    Called whenever a document has gone live; it costs nothing while the collection is small.
    """
    if collection.chunk_total < min(HNSW_MIN, POSTINGS_MIN):
        return False
    if not _due(collection):
        return False
    _build_enqueue(collection)
    return True


def _build_enqueue(collection: Collection) -> None:
    job_enqueue(
        tenant=collection.tenant,
        actor=system_actor(collection.tenant_id),
        kind=BUILD_KIND,
        payload={"collection": collection.pk},
        dedupe_key=f"index:{collection.pk}",
        topic=f"collection:{collection.pk}",
    )


def _due(collection: Collection) -> list[tuple[str, EmbeddingSpace | None]]:
    """Return the indexes that lack, or whose tail has grown too long."""
    wanted: list[tuple[str, EmbeddingSpace | None]] = []
    ready = {
        (row.kind, row.space_id): row for row in _rows(collection).filter(status=SearchIndexStatus.READY)
    }
    if collection.chunk_total >= HNSW_MIN and not settings.CITUS:  # the copies would have to be spread too
        wanted += [(Kind.GRAPH.value, space) for space in spaces_written(collection)]
    if collection.chunk_total >= POSTINGS_MIN:
        wanted.append((Kind.POSTINGS.value, None))
    return [
        (kind, space)
        for kind, space in wanted
        if _is_stale(collection, ready.get((kind, space.pk if space else None)))
    ]


def _rows(collection: Collection) -> QuerySet[SearchIndex]:
    rows: QuerySet[SearchIndex] = SearchIndex.objects.filter(collection=collection)
    return rows.defer("chunk_ids", "document_ids")


def _is_stale(collection: Collection, index: SearchIndex | None) -> bool:
    if index is None:
        return True
    unknown = max(abs(collection.chunk_total - index.chunk_count), len(index.edited))
    return unknown > TAIL * max(1, index.chunk_count)


def indexes_build(ctx: BuildContext, *, collection_id: int) -> None:
    """Build what a collection lacks, one index after the other; safe to run again after a crash.

    Raises:
        JobCancelled: the collection is gone.
    """
    collection = Collection.objects.select_related("space", "tenant").filter(pk=collection_id).first()
    if collection is None:
        raise JobCancelled(f"collection {collection_id} is gone")
    with _alone(collection, ctx.check):
        _build_due(ctx, collection)


@contextmanager
def _alone(collection: Collection, check: Callable[[], None]) -> Iterator[None]:
    """Let one build of a collection run at a time: its own job's, or that of a move to another embedding model.

    Asked for again and again instead of waited for: a waiting statement holds a snapshot, for which the other's
    ``CREATE INDEX CONCURRENTLY`` would wait in turn.
    """
    key = [_LOCKS, collection.pk % 2**31]
    check()
    with connection.wrap_database_errors, direct_connection() as line:  # its end gives the lock back
        while not _locked(line, key):
            time.sleep(_LOCK_POLL_S)
            check()
        yield


def _locked(line: psycopg.Connection[Any], key: list[int]) -> bool:
    row: Any = line.execute("SELECT pg_try_advisory_lock(%s, %s)", key).fetchone()
    return bool(row[0])


def _build_due(ctx: BuildContext, collection: Collection) -> None:
    _leftovers_drop(collection, ctx.check)
    for kind, space in _due(collection):
        ctx.check()
        row = _row_create(collection, kind, space, ctx.job_id)
        if kind == Kind.GRAPH and space is not None:
            graph_build(row, space, ctx.check)
        else:
            postings_build(row, ctx.check)
        _take_over(row, ctx.check)
    _earlier_drop(collection)


def _row_create(collection: Collection, kind: str, space: EmbeddingSpace | None, job_id: int) -> SearchIndex:
    with transaction.atomic():
        # Who edits a chunk holds this lock too: an edit is committed before the build reads, or it sees this row.
        Collection.objects.select_for_update(no_key=True).get(pk=collection.pk)
        last, count = _mark(collection, space)
        row: SearchIndex = SearchIndex.objects.create(
            tenant_id=collection.tenant_id,
            collection=collection,
            space=space,
            kind=kind,
            last_chunk=last,
            chunk_count=count,
            job_id=job_id,
        )
    return row


def _mark(collection: Collection, space: EmbeddingSpace | None) -> tuple[int, int]:
    rows = Embedding.objects.filter(collection=collection, space=space or collection.space)
    found = rows.aggregate(last=Max("chunk_id"))
    return found["last"] or 0, rows.count()


def _take_over(row: SearchIndex, check: Callable[[], None]) -> None:
    """Let search use a finished index, and drop the one before it; a kill between leaves it retired, for the next build."""
    with transaction.atomic():
        old = list(
            SearchIndex.objects.defer("chunk_ids", "document_ids")
            .select_for_update()
            .filter(
                collection_id=row.collection_id,
                kind=row.kind,
                space_id=row.space_id,
                status=SearchIndexStatus.READY,
            )
        )
        for one in old:
            one.status = SearchIndexStatus.RETIRED
            one.save(update_fields=["status"])
        row.status, row.built_at = SearchIndexStatus.READY, timezone.now()
        row.save(update_fields=["status", "built_at"])
    for one in old:
        index_drop(one, check)


def _leftovers_drop(collection: Collection, check: Callable[[], None]) -> None:
    """Remove what a killed build left; no other build of this collection runs (``_alone``)."""
    for row in _rows(collection).exclude(status=SearchIndexStatus.READY).exclude(kind=Kind.HNSW):
        index_drop(row, check)
    _graphs_drop(collection.pk, check)  # of rows that are gone


def index_drop(row: SearchIndex, check: Callable[[], None]) -> None:
    """Drop an index with its row; search must not use it any more."""
    SearchIndex.objects.filter(
        pk=row.pk
    ).delete()  # postings go with it, and no trigger writes into a graph any more
    if row.kind == Kind.GRAPH:
        _graphs_drop(row.collection_id, check)
    index_forget(row.pk)


def _graphs_drop(collection_id: int, check: Callable[[], None]) -> None:
    kept = set(SearchIndex.objects.filter(collection_id=collection_id).values_list("pk", flat=True))
    graphs_drop(collection_id=collection_id, kept=kept, check=check)


def _earlier_drop(collection: Collection) -> None:
    """Drop the graphs that a version before built on the table of all vectors."""
    earlier = _rows(collection).filter(kind=Kind.HNSW)
    if earlier.exists():
        _indexes_drop(collection.pk)
        earlier.delete()


def _indexes_drop(collection_id: int) -> None:
    with as_login_role(), connection.cursor() as cursor:
        cursor.execute(
            "SELECT indexname FROM pg_indexes WHERE schemaname = 'public' AND indexname LIKE %s",
            [f"ann\\_c{int(collection_id)}\\_%"],
        )
        for (name,) in cursor.fetchall():
            cursor.execute(f"DROP INDEX CONCURRENTLY IF EXISTS {name}")


def indexes_unused_drop(ctx: BuildContext, *, collection_id: int) -> None:
    """Drop the graphs of embedding spaces in which a collection writes no vectors any more."""
    collection = Collection.objects.select_related("space").filter(pk=collection_id).first()
    if collection is None:
        return
    with _alone(collection, ctx.check):
        kept = [space.pk for space in spaces_written(collection)]
        for row in _rows(collection).filter(kind=Kind.GRAPH).exclude(space_id__in=kept):
            index_drop(row, ctx.check)


def indexes_drop(*, collection_id: int) -> None:
    """Drop the graphs of a collection that was deleted (its rows are gone already); after the commit."""
    graphs_drop(collection_id=collection_id)
    _indexes_drop(collection_id)


def graphs_sweep() -> int:
    """Have the graphs that a version before built on the table of all vectors replaced; until then searches scan."""
    with platform_scope():
        earlier = Collection.objects.filter(tenant__is_active=True, indexes__kind=Kind.HNSW)
        found = list(earlier.distinct().select_related("tenant"))
    for collection in found:
        with tenant_scope(collection.tenant_id):
            _build_enqueue(collection)
    return len(found)


def indexes_restore() -> None:
    """Build the graphs that rows say are ready and the database lacks: after a restore, which has rows alone."""
    with platform_scope():
        rows = list(
            SearchIndex.objects.defer("chunk_ids", "document_ids")
            .filter(kind=Kind.GRAPH, status=SearchIndexStatus.READY, space__isnull=False)
            .select_related("space")
        )
        for row in rows:
            if row.space is not None and not graph_exists(row):
                graph_build(row, row.space, lambda: None)
