"""The summarise stage: key points of each chunk and links between chunks, by a model where one is set, else by rule."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from django.db import connection
from psycopg.types.json import Jsonb

from apps.collections.ingestion.linking import Link, LinkableChunk, passage_links, passage_points
from apps.collections.models import Chunk, ChunkKind, ChunkLink, Document, LinkOrigin
from apps.collections.storage.bulk import rows_copy

WINDOW = 1000  # chunks, about a second of work
_REACH = 3  # the nearest chunks that a rule links to


def passage_of(chunk: Chunk) -> LinkableChunk:
    """Return what the rules need of a chunk."""
    lead = chunk.metadata.get("docstring") or chunk.metadata.get("table_caption") or ""
    return LinkableChunk(
        text=chunk.text,
        headings=tuple(chunk.headings),
        is_table=chunk.kind == ChunkKind.TABLE,
        lead=str(lead).strip().split("\n\n")[0],
    )


def points_by_rule(chunks: Sequence[Chunk]) -> list[list[str]]:
    """Return the key points of chunks by rule."""
    return passage_points([passage_of(chunk) for chunk in chunks])


def links_by_rule(chunks: Sequence[Chunk]) -> list[Link]:
    """Return the links between the chunks of one document by rule, by their places in ``chunks``."""
    return passage_links([passage_of(chunk) for chunk in chunks])


@dataclass(frozen=True, slots=True)
class Summaries:
    """What the rules found in a window of a document.

    Attributes:
        chunks: of the window; the first ``known`` stand before it, and have their points and links.
        points: of the chunks from ``known`` on.
        links: by places in ``chunks``, each with one end in the window at least.
    """

    chunks: Sequence[Chunk]
    known: int
    points: Sequence[list[str]]
    links: Sequence[Link]


def summaries_make(chunks: Sequence[Chunk], known: int = 0) -> Summaries:
    """Find points and links by rule; outside of a transaction.

    Args:
        chunks: of one document, rising.
        known: how many of the first have theirs already.
    """
    links = [
        link
        for link in links_by_rule(chunks)
        if max(link.source, link.target) >= known
        and (
            link.relation not in ("next", "previous")
            or abs(chunks[link.source].index - chunks[link.target].index) == 1
        )
    ]
    return Summaries(chunks, known, points_by_rule(chunks)[known:], links)


def summary_windows(document: Document) -> Iterator[tuple[list[Chunk], int]]:
    """Cut the chunks of a document that have no points yet into windows, as ``summaries_make`` takes them.

    Links by rule reach back to the nearest chunks before a window and to those that open the sections around it; rare
    terms are looked for in one window. So a document of any length takes little memory and many short steps.
    """
    own = Chunk.objects.filter(document=document).order_by("index")
    start = own.filter(points_by="").values_list("index", flat=True).first()
    while start is not None:
        window = list(own.filter(index__gte=start)[:WINDOW])
        if not window:
            return
        lead: list[Chunk] = []
        if start:
            lead = list(own.filter(index__gte=start - _REACH, index__lt=start))
            path = list(window[0].headings)
            openers = [
                own.filter(headings=path[:depth], index__lt=lead[0].index).first()
                for depth in range(1, len(path) + 1)
            ]
            lead = sorted([*filter(None, openers), *lead], key=lambda chunk: chunk.index)
        yield [*lead, *window], len(lead)
        start = window[-1].index + 1


def summaries_write(row: Document, made: Summaries) -> None:
    """Write the points and links of a window; at a document's first one replace all its links. In a transaction."""
    if not made.known:
        ChunkLink.objects.filter(document=row).delete()
    links_insert(row, made.chunks, made.links, made_by=LinkOrigin.RULE)
    points_update(
        ((chunk.pk, found) for chunk, found in zip(made.chunks[made.known :], made.points, strict=True)),
        made_by=LinkOrigin.RULE,
    )


def links_insert(
    row: Document, chunks: Sequence[Chunk], links: Iterable[Link], *, made_by: LinkOrigin
) -> int:
    """Insert links between chunks, which ``links`` names by their places in ``chunks``."""
    return rows_copy(
        ChunkLink._meta.db_table,
        {
            "tenant_id": "int8",
            "document_id": "int8",
            "chunk_id": "int8",
            "target_id": "int8",
            "relation": "text",
            "common_topic": "text",
            "made_by": "text",
            "weight": "float8",
        },
        (
            (
                row.tenant_id,
                row.pk,
                chunks[link.source].pk,
                chunks[link.target].pk,
                link.relation,
                link.common_topic[:200],
                made_by.value,
                link.weight,
            )
            for link in links
        ),
        suffix="ON CONFLICT DO NOTHING",
    )


def points_update(points: Iterable[tuple[int, list[str]]], *, made_by: LinkOrigin) -> None:
    """Write the key points of chunks, given by their ids, in the caller's transaction."""
    with connection.cursor() as cursor:
        cursor.execute("CREATE TEMPORARY TABLE points (chunk_id int8 PRIMARY KEY, said jsonb) ON COMMIT DROP")
    rows_copy(
        "points",
        {"chunk_id": "int8", "said": "jsonb"},
        ((chunk_id, Jsonb(found)) for chunk_id, found in points),
    )
    with connection.cursor() as cursor:
        cursor.execute(
            "UPDATE collections_chunk c SET key_points = p.said, points_by = %s "
            "FROM pg_temp.points p WHERE c.tenant_id = own_tenant() AND c.id = p.chunk_id",
            [made_by.value],
        )
        cursor.execute("DROP TABLE points")
