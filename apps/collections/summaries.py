"""The summarise stage: key points of each chunk and links between chunks, by a model where one is set, else by rule."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from django.db import connection
from psycopg.types.json import Jsonb

from apps.collections.bulk import rows_copy
from apps.collections.ingestion.linking import Link, Passage, passage_links, passage_points
from apps.collections.models import Chunk, ChunkKind, ChunkLink, Document, LinkOrigin


def passage_of(chunk: Chunk) -> Passage:
    """Return what the rules need of a chunk."""
    lead = chunk.metadata.get("docstring") or chunk.metadata.get("table_caption") or ""
    return Passage(
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


def summaries_write(row: Document, chunks: Sequence[Chunk]) -> None:
    """Replace the links of a document and the points of its chunks by those of the rules, in the caller's transaction."""
    points = points_by_rule(chunks)
    ChunkLink.objects.filter(document=row).delete()
    links_insert(row, chunks, links_by_rule(chunks), made_by=LinkOrigin.RULE)
    points_update(
        ((chunk.pk, found) for chunk, found in zip(chunks, points, strict=True)),
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
        cursor.execute(
            "CREATE TEMPORARY TABLE points (chunk_id int8 PRIMARY KEY, said jsonb) ON COMMIT DROP"
        )
    rows_copy(
        "points",
        {"chunk_id": "int8", "said": "jsonb"},
        ((chunk_id, Jsonb(found)) for chunk_id, found in points),
    )
    with connection.cursor() as cursor:
        cursor.execute(
            "UPDATE collections_chunk c SET key_points = p.said, points_by = %s "
            "FROM points p WHERE c.id = p.chunk_id",
            [made_by.value],
        )
        cursor.execute("DROP TABLE points")
