"""How a search came to its hits: what each leg found, what was dropped, and what was passed over before ranking."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from django.db import connection

from apps.collections.ingestion.lexical import query_terms
from apps.collections.models import Collection, Document
from apps.collections.search.filters import SearchFilter
from apps.collections.search.indexed import Indexes
from apps.collections.search.statement import condition_sql, live, permitted
from apps.collections.search.types import (
    Candidate,
    Hidden,
    QueryVector,
    Ranked,
    SearchHit,
    SearchResult,
    Trace,
)
from tenancy.actors import Actor


def trace_of(
    actor: Actor,
    scope: Sequence[Collection],
    asked: str,
    result: SearchResult,
    found: Sequence[Ranked],
    ranked: Sequence[SearchHit],
    conditions: Sequence[SearchFilter],
    vectors: Sequence[QueryVector],
    indexes: Indexes,
) -> Trace:
    """Build the trace of a search.

    Args:
        asked: the question as it came.
        found: every candidate, in their order after the fusion.
        ranked: the candidates that were to be returned or reranked, in their final order.
    """
    places = {hit.chunk_id: place for place, hit in enumerate(ranked, 1)}
    returned = {hit.chunk_id for hit in result.hits}
    is_reranked = any(hit.rerank_score is not None for hit in ranked)
    kinds = {
        "vector": "hnsw" if any(v.indexed for v in vectors) else "scan",
        "lexical": "postings" if indexes.postings else "scan",
        "exact": "gin",
    }
    documents = Document.objects.filter(tenant_id=actor.tenant_id, pk__in={row.document_id for row in found})
    names = dict(documents.values_list("pk", "name"))
    forms = dict.fromkeys(form for collection in scope for form in collection.lexical_forms)
    return Trace(
        query=asked,
        searched=result.query,
        terms=query_terms(result.query, forms),
        identifiers=result.identifiers,
        legs={
            leg: {
                "ran": leg in result.legs,
                "index": kinds[leg],
                "candidates": sum(getattr(row, f"{leg}_rank") is not None for row in found),
            }
            for leg in kinds
        },
        candidates=[
            _candidate(row, number, names, places, returned, is_reranked=is_reranked)
            for number, row in enumerate(found, 1)
            if row.document_id in names
        ],
        hidden=_hidden(actor, [c.pk for c in scope], conditions, result),
        timings_ms={
            "embed": round(result.embed_ms, 2),
            "database": round(result.database_ms, 2),
            **{name: round(value, 2) for name, value in result.extra_ms.items()},
        },
        reranker=result.reranker,
    )


def _candidate(
    row: Ranked,
    fused_rank: int,
    names: Mapping[int, str],
    places: dict[int, int],
    returned: set[int],
    *,
    is_reranked: bool,
) -> Candidate:
    place = places.get(row.chunk_id)
    dropped = "reranked_below_k" if is_reranked and place is not None else "beyond_k"
    return Candidate(
        chunk_id=row.chunk_id,
        document_id=row.document_id,
        document_name=names[row.document_id],
        fused_rank=fused_rank,
        score=row.score,
        vector_rank=row.vector_rank,
        lexical_rank=row.lexical_rank,
        exact_rank=row.exact_rank,
        distance=row.distance,
        bm25=row.bm25,
        rerank_rank=place if is_reranked else None,
        outcome="returned" if row.chunk_id in returned else dropped,
    )


def _hidden(
    actor: Actor, scope: Sequence[int], conditions: Sequence[SearchFilter], result: SearchResult
) -> Hidden:
    """Count the documents that were passed over, each under the first reason that holds.

    How many are limited to others is told to those alone who may manage documents: a count is knowledge too.
    """
    values: dict[str, Any] = {"tenant": actor.tenant_id, "scope": list(scope)}
    document = [
        condition_sql(condition, number, values)
        for number, condition in enumerate(conditions)
        if condition.on == "document"
    ]
    matches = " AND ".join(f"({sql})" for sql in document) or "true"
    with connection.cursor() as cursor:
        cursor.execute(
            f"""
            SELECT count(*) FILTER (WHERE reason = 'permission'), count(*) FILTER (WHERE reason = 'ready'),
                   count(*) FILTER (WHERE reason = 'live'), count(*) FILTER (WHERE reason = 'filter'),
                   (SELECT count(*) FROM collections_chunk c WHERE c.tenant_id = %(tenant)s
                    AND c.collection_id = ANY (%(scope)s) AND c.is_disabled)
            FROM (SELECT CASE WHEN NOT ({permitted(actor, values)}) THEN 'permission'
                              WHEN d.status <> 'ready' THEN 'ready'
                              WHEN NOT ({live(result.as_of, values)}) THEN 'live'
                              WHEN ({matches}) IS NOT TRUE THEN 'filter' END AS reason
                  FROM collections_document d
                  WHERE d.tenant_id = %(tenant)s AND d.collection_id = ANY (%(scope)s)) s
            """,  # noqa: S608 - conditions are built of constants, their values are parameters
            values,
        )
        restricted, not_ready, not_live, filtered, disabled = cursor.fetchone()
    return Hidden(
        not_ready=not_ready,
        not_live=not_live,
        not_permitted=restricted if actor.can("document.write") else 0,
        filtered=filtered,
        chunks_disabled=disabled,
    )
