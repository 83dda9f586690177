"""Which indexes of large collections a search may use, and whether its filters name metadata that exists."""

# ruff: noqa: S608 - texts of statements come from apps.collections.search.statement, every value is a parameter

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any

import numpy as np
from django.db import connection

from apps.collections.index.graphs import graph_table
from apps.collections.index.large import HNSW_MIN, POSTINGS_MIN
from apps.collections.index.postings import index_contents, postings_add
from apps.collections.models import Collection, SearchIndex
from apps.collections.search.filters import ATTRIBUTE, SearchFilter
from apps.collections.search.statement import (
    Postings,
    allowed_sql,
    condition_sql,
    live,
    permitted,
    postings_sql,
)
from apps.collections.search.types import Graph
from apps.collections.storage.bulk import binary_cursor
from basics.errors import Invalid
from basics.texts import gettext as _
from tenancy.actors import Actor

_CANDIDATES = 100  # the leg takes half of them
_CANDIDATES_OF_PART = 500  # when the budget has left common terms out
_FILTERED_SCAN = 20_000  # a filter that leaves fewer chunks than this is answered by a scan of these
_SHOWN_KEYS = 50
# Relaxed order with a scan that goes on until enough rows pass the conditions; measured recall@10 is 1.0 at ef 200.
# Sorting is put off because the planner, which takes tenant and collection for independent, thinks a large collection
# small and would rather compare all its vectors: whether a graph is used was decided before.
HNSW_SETTINGS = {
    "hnsw.iterative_scan": "relaxed_order",
    "hnsw.ef_search": "200",
    "hnsw.max_scan_tuples": "40000",
    "enable_sort": "off",
}
# For a statement that only reads indexes (``Sql.is_bounded``): its plan is the same for every question and takes longer to
# make than to run, less the graph. Where something is scanned, Postgres chooses by the values.
PLANNED_ONCE = {"plan_cache_mode": "force_generic_plan"}
# What a search must know of its collections: one statement, whatever their number.
_KNOWN = """
    SELECT c.lexical_forms, i.kind, i.id, c.id, i.space_id, i.last_chunk, i.edited,
           CASE WHEN i.space_id IS NULL
                THEN EXISTS (SELECT FROM collections_chunkterms t WHERE t.tenant_id = %(tenant)s
                             AND t.collection_id = i.collection_id AND t.chunk_id > i.last_chunk)
                ELSE EXISTS (SELECT FROM collections_embedding e WHERE e.tenant_id = %(tenant)s
                             AND e.collection_id = i.collection_id AND e.space_id = i.space_id
                             AND e.chunk_id > i.last_chunk) END
    FROM collections_collection c LEFT JOIN collections_searchindex i
      ON i.tenant_id = %(tenant)s AND i.collection_id = c.id AND i.collection_id = ANY (%(large)s::bigint[])
         AND i.status = 'ready'
    WHERE c.tenant_id = %(tenant)s AND c.id = ANY (%(scope)s::bigint[])
"""


@dataclass(frozen=True, slots=True)
class Known:
    """What the rows of a search's collections say at this moment.

    Attributes:
        forms: in which terms are written in any of them, each once.
        indexes: that are ready: kind, id, collection, space, last chunk covered, edited chunks, whether the collection
            has later chunks.
    """

    forms: list[str]
    indexes: list[tuple[str, int, int, int | None, int, list[int], bool]]


@dataclass(frozen=True, slots=True)
class Indexes:
    """Indexes that are ready.

    Attributes:
        graphs: by (collection, space).
        postings: of collections whose terms have an index.
    """

    graphs: dict[tuple[int, int], Graph] = field(default_factory=dict)
    postings: list[Postings] = field(default_factory=list)


def is_large(collection: Collection) -> bool:
    """Say whether a collection may have an index of its own."""
    return bool(collection.chunk_total >= min(HNSW_MIN, POSTINGS_MIN))


def scope_known(actor: Actor, scope: Sequence[Collection], *, has_terms: bool) -> Known:
    """Read what changes behind the collections that the caller has read; small ones may cost no statement.

    Args:
        has_terms: read the forms of terms: a document may have brought one since.
    """
    large = [c.pk for c in scope if is_large(c)]
    if not large and not has_terms:
        return Known(list(dict.fromkeys(form for c in scope for form in c.lexical_forms)), [])
    with connection.cursor() as cursor:
        values: dict[str, Any] = {
            "tenant": actor.tenant_id,
            "large": large,
            "scope": [c.pk for c in scope],
        }
        cursor.execute(_KNOWN, values)
        rows = cursor.fetchall()
    forms = dict.fromkeys(form for row in rows for form in row[0])
    return Known(list(forms), [row[1:] for row in rows if row[1] is not None])


def indexes_for(
    actor: Actor,
    scope: Sequence[Collection],
    known: Known,
    conditions: Sequence[SearchFilter],
    as_of: datetime | None,
) -> Indexes:
    """Return the indexes to use of those that are ready."""
    on_chunks = any(condition.on == "chunk" for condition in conditions)
    found = Indexes()
    for kind, pk, collection_id, space_id, last_chunk, edited, is_behind in known.indexes:
        if kind == SearchIndex.Kind.GRAPH and space_id is not None:
            table = graph_table(collection_id, pk)
            found.graphs[collection_id, space_id] = Graph(collection_id, table, last_chunk, is_behind)
        elif kind == SearchIndex.Kind.POSTINGS and not on_chunks:
            found.postings.append(Postings(collection_id, pk, last_chunk, is_behind, edited))
    # A graph is walked until enough of what it meets passes the filter: hopeless when next to nothing does.
    if found.graphs and (conditions or as_of):
        large = [c.pk for c in scope if is_large(c)]
        if _is_selective(actor, large, conditions, as_of):
            found.graphs.clear()
    return found


def candidates_find(
    actor: Actor,
    scope: Sequence[int],
    terms: Sequence[int],
    postings: Sequence[Postings],
    conditions: Sequence[SearchFilter],
    as_of: datetime | None,
) -> list[Postings]:
    """Return postings with the chunks they propose for the question's terms, among those that may be found.

    An index that went meanwhile is left out: its collection is scanned.
    """
    if not postings or not terms:
        return list(postings)
    sql = postings_sql(
        actor=actor, scope=scope, terms=terms, postings=postings, conditions=conditions, as_of=as_of
    )
    with binary_cursor(is_planned_once=True) as cursor:
        cursor.execute(f"WITH {', '.join(sql.ctes)} {sql.legs[0]}", sql.parameters)
        rows = cursor.fetchall()
        documents = disabled = None
        if rows and not rows[0][4]:
            sql = allowed_sql(actor=actor, scope=scope, conditions=conditions, as_of=as_of)
            cursor.execute(f"WITH {', '.join(sql.ctes)} {sql.legs[0]}", sql.parameters)
            allowed, switched_off = cursor.fetchone() or ([], [])
            documents, disabled = np.array(allowed, np.int64), np.array(switched_off, np.int64)
    found: list[Postings] = []
    for one in postings:
        contents = index_contents(one.index_id)
        if contents is None:
            continue
        own = [row for row in rows if row[0] == one.index_id]
        candidates = postings_add(
            contents,
            [(row[1], row[2], row[3]) for row in own],
            limit=_CANDIDATES_OF_PART if own and own[0][5] else _CANDIDATES,
            documents=documents,
            disabled=disabled,
        )
        found.append(replace(one, candidates=candidates))
    return found


def _is_selective(
    actor: Actor, collections: Sequence[int], conditions: Sequence[SearchFilter], as_of: datetime | None
) -> bool:
    if any(condition.on == "chunk" for condition in conditions):
        return True
    values: dict[str, Any] = {"tenant": actor.tenant_id, "scope": list(collections)}
    clauses = "".join(
        f" AND ({condition_sql(condition, number, values)})" for number, condition in enumerate(conditions)
    )
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT coalesce(sum(d.chunk_count), 0) FROM collections_document d WHERE d.tenant_id = %(tenant)s "
            f"AND d.collection_id = ANY (%(scope)s) AND d.status = 'ready' AND {live(as_of, values)} "
            f"AND {permitted(actor, values)}{clauses}",
            values,
        )
        return bool(cursor.fetchone()[0] < _FILTERED_SCAN)


def attributes_check(scope: Sequence[Collection], conditions: Sequence[SearchFilter]) -> None:
    """Refuse a filter on metadata that no document of the scope has: a typing error must not look like "nothing found".

    Raises:
        Invalid: ``filter_unknown``.
    """
    keys = sorted({condition.key for condition in conditions if condition.key})
    if not keys:
        return
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT DISTINCT key FROM collections_document d, jsonb_object_keys(d.attributes) AS key "
            "WHERE d.tenant_id = %s AND d.collection_id = ANY (%s) ORDER BY key",
            [scope[0].tenant_id, [c.pk for c in scope]],
        )
        known = [row[0] for row in cursor.fetchall()]
    unknown = [key for key in keys if key not in known]
    if unknown:
        names = [ATTRIBUTE + key for key in known[:_SHOWN_KEYS]]
        message = (
            _("No document here has metadata called “%(name)s”. Known: %(known)s.")
            if names
            else _("No document here has metadata called “%(name)s”. Known: none yet.")
        )
        raise Invalid(
            "filter_unknown",
            message % {"name": unknown[0], "known": ", ".join(names)},
            data={"fields": names},
        )
