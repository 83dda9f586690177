"""Follow links between chunks: what a chunk links to, what links to it, and chains of one relation.

A link stays within one document, so whoever may see its one end may see the other.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from django.db import connection

from apps.collections.models import Chunk, ChunkLink
from basics.errors import DomainError
from tenancy.actors import Actor

Direction = Literal["outgoing", "incoming", "both"]
MAX_DEPTH = 100
MAX_LINKS = 500


@dataclass(frozen=True, slots=True)
class LinkedChunk:
    """One link of a chunk as seen from it.

    Attributes:
        chunk: the other end.
        direction: ``outgoing`` or ``incoming``.
        made_by: ``rule`` or ``model``.
        weight: 0 to 1, stronger first.
    """

    chunk: Chunk
    direction: str
    relation: str
    common_topic: str
    made_by: str
    weight: float


@dataclass(frozen=True, slots=True)
class ChainStep:
    """One chunk of a chain; ``relation`` is the link that led to it, "" for the first."""

    chunk: Chunk
    depth: int
    relation: str = ""


def chunk_links(
    *,
    actor: Actor,
    chunk: Chunk,
    direction: Direction = "outgoing",
    relation: str = "",
    limit: int = MAX_LINKS,
) -> list[LinkedChunk]:
    """Return the links of a chunk, strongest first, in one query for each direction.

    Args:
        relation: these alone, such as ``next``, ``same_section``, ``shares_terms``.
    """
    actor.require("collection.read")
    rows = ChunkLink.objects.visible_to(actor).filter(document_id=chunk.document_id)
    if relation:
        rows = rows.filter(relation=relation)
    found: list[LinkedChunk] = []
    if direction in ("outgoing", "both"):
        out = rows.filter(chunk=chunk).select_related("target").order_by("-weight", "target__index")
        found += [_linked(link, link.target, "outgoing") for link in out[:limit]]
    if direction in ("incoming", "both"):
        into = rows.filter(target=chunk).select_related("chunk").order_by("-weight", "chunk__index")
        found += [_linked(link, link.chunk, "incoming") for link in into[:limit]]
    return found


def _linked(link: ChunkLink, other: Chunk, direction: str) -> LinkedChunk:
    return LinkedChunk(other, direction, link.relation, link.common_topic, link.made_by, link.weight)


def chain_walk(
    *, actor: Actor, chunk: Chunk, relations: Sequence[str] = ("next",), depth: int = 10
) -> list[ChainStep]:
    """Walk from a chunk along its strongest links, never to a chunk twice, in two queries.

    Args:
        relations: links that are followed; empty for all.
        depth: steps at most, 1 to 100.

    Returns:
        The chunk itself, then each that was reached, in order.

    Raises:
        DomainError: ``invalid_depth``.
    """
    actor.require("collection.read")
    if not 1 <= depth <= MAX_DEPTH:
        raise DomainError("invalid_depth", f"The depth is {depth}; it must be 1 to {MAX_DEPTH}.")
    with connection.cursor() as cursor:
        cursor.execute(
            """
            WITH RECURSIVE walk (chunk_id, depth, relation, seen) AS (
                SELECT %(start)s::bigint, 0, ''::varchar, ARRAY[%(start)s::bigint]
                UNION ALL
                SELECT l.target_id, w.depth + 1, l.relation, w.seen || l.target_id
                FROM walk w CROSS JOIN LATERAL (
                    SELECT k.target_id, k.relation FROM collections_chunklink k
                    WHERE k.tenant_id = %(tenant)s AND k.chunk_id = w.chunk_id
                      AND (cardinality(%(relations)s::varchar[]) = 0 OR k.relation = ANY (%(relations)s::varchar[]))
                      AND k.target_id <> ALL (w.seen)
                    ORDER BY k.weight DESC, k.target_id LIMIT 1) l
                WHERE w.depth < %(depth)s)
            SELECT chunk_id, depth, relation FROM walk ORDER BY depth
            """,
            {"start": chunk.pk, "tenant": actor.tenant_id, "relations": list(relations), "depth": depth},
        )
        steps = cursor.fetchall()
    rows = Chunk.objects.visible_to(actor).select_related("document")
    chunks = rows.in_bulk([pk for pk, _, _ in steps])
    return [ChainStep(chunks[pk], place, relation) for pk, place, relation in steps if pk in chunks]
