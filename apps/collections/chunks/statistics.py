"""Figures of the chunks of a collection or a document: counts, sizes, kinds, links, and how much of the text they cover."""

# ruff: noqa: S608 - the statement is put together from Django's own SQL and constants, values are parameters
from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from django.contrib.postgres.fields import ArrayField
from django.db import connection
from django.db.models import Aggregate, Avg, Count, FloatField, Max, Min, Q, Sum
from django.db.models.functions import Length

from apps.collections.chunks.selectors import ChunkFilter, chunk_rows
from apps.collections.models import ChunkKind, ChunkLink, Collection, Document, DocumentStatus
from tenancy.actors import Actor

PERCENTILES = (25, 50, 75, 95)


@dataclass(frozen=True, slots=True)
class LinkCount:
    """How many links there are of one relation and maker."""

    relation: str
    made_by: str
    count: int


@dataclass(frozen=True, slots=True)
class ChunkSizes:
    """Characters per chunk; zeros without chunks.

    Attributes:
        percentiles: percent to characters, for 25, 50, 75 and 95.
    """

    total: int
    min: int
    mean: float
    max: int
    percentiles: dict[str, float]


@dataclass(frozen=True, slots=True)
class Coverage:
    """How much of the documents' text stands in some chunk, in characters.

    Attributes:
        text: all of it.
        skipped: of it on pages that were left out on purpose.
        covered: of it in at least one chunk.
        share: ``covered`` of what was not left out, 0 to 1; what lacks is mostly blank space between chunks. None
            without text.
    """

    text: int
    skipped: int
    covered: int
    share: float | None


@dataclass(frozen=True, slots=True)
class ChunkStatistics:
    """Figures of chunks.

    Attributes:
        documents: ready ones that the actor may see.
        kinds: count of each kind there is.
        with_points: chunks with key points, by who made them.
        links: counts by relation and maker, most first.
    """

    documents: int
    chunks: int
    kinds: dict[str, int]
    sizes: ChunkSizes
    disabled: int
    edited: int
    with_points: dict[str, int]
    links: list[LinkCount]
    coverage: Coverage


class _Percentiles(Aggregate):
    function = "percentile_cont"
    template = (
        "%(function)s(ARRAY["
        + ", ".join(str(p / 100) for p in PERCENTILES)
        + "]) WITHIN GROUP (ORDER BY %(expressions)s)"
    )
    output_field: ClassVar[Any] = ArrayField(FloatField())


def chunk_statistics(
    *, actor: Actor, collection: Collection, document: Document | None = None
) -> ChunkStatistics:
    """Count the chunks of a collection's live documents, or of one document, in four queries."""
    documents = Document.objects.visible_to(actor).filter(collection=collection, status=DocumentStatus.READY)
    documents = documents.filter(pk=document.pk) if document else documents.filter(live_to__isnull=True)
    where = ChunkFilter(document_id=document.pk if document else None)
    rows = chunk_rows(actor=actor, collection=collection, where=where).order_by()
    size = Length("text")
    kinds = {f"kind_{kind}": Count("pk", filter=Q(kind=kind)) for kind in ChunkKind.values}
    points = {
        f"points_{who}": Count("pk", filter=Q(points_by=who) & ~Q(key_points=[])) for who in ("rule", "model")
    }
    found = rows.aggregate(
        count=Count("pk"),
        total=Sum(size),
        least=Min(size),
        mean=Avg(size),
        most=Max(size),
        percentiles=_Percentiles(size),
        disabled=Count("pk", filter=Q(is_disabled=True)),
        edited=Count("pk", filter=Q(is_edited=True)),
        **kinds,
        **points,
    )
    links = (
        ChunkLink.objects.visible_to(actor)
        .filter(document__in=documents)
        .values("relation", "made_by")
        .annotate(count=Count("pk"))
        .order_by("-count", "relation", "made_by")
    )
    at = found["percentiles"] or [0.0] * len(PERCENTILES)
    return ChunkStatistics(
        documents=documents.count(),
        chunks=found["count"],
        kinds={k: found[f"kind_{k}"] for k in ChunkKind.values if found[f"kind_{k}"]},
        sizes=ChunkSizes(
            total=found["total"] or 0,
            min=found["least"] or 0,
            mean=round(found["mean"] or 0.0, 1),
            max=found["most"] or 0,
            percentiles={str(p): round(value, 1) for p, value in zip(PERCENTILES, at, strict=True)},
        ),
        disabled=found["disabled"],
        edited=found["edited"],
        with_points={who: found[f"points_{who}"] for who in ("rule", "model") if found[f"points_{who}"]},
        links=[LinkCount(row["relation"], row["made_by"], row["count"]) for row in links],
        coverage=_coverage(documents),
    )


def _coverage(documents: Any) -> Coverage:
    """Measure the union of the chunks' ranges: neighbours share an overlap, which must not count twice."""
    chosen, values = documents.order_by().values("pk").query.sql_with_params()
    with connection.cursor() as cursor:
        cursor.execute(
            f"""
            WITH chosen (id) AS MATERIALIZED ({chosen})
            SELECT (SELECT coalesce(sum(upper(part) - lower(part)), 0) FROM
                       (SELECT unnest(range_agg(int4range(c.char_start, c.char_end))) AS part
                        FROM collections_chunk c JOIN chosen ON chosen.id = c.document_id
                        WHERE c.tenant_id = own_tenant()
                        GROUP BY c.document_id) parts),
                   (SELECT coalesce(sum(final.char_start + char_length(final.text)), 0) FROM chosen CROSS JOIN LATERAL
                       (SELECT p.char_start, p.text FROM collections_page p WHERE p.tenant_id = own_tenant() AND p.document_id = chosen.id
                        ORDER BY p.number DESC LIMIT 1) final),
                   (SELECT coalesce(sum(char_length(p.text)), 0) FROM collections_page p
                    JOIN chosen ON chosen.id = p.document_id WHERE p.tenant_id = own_tenant() AND p.skip_reason <> '')
            """,
            values,
        )
        covered, text, skipped = map(int, cursor.fetchone())
    counted = text - skipped
    return Coverage(text, skipped, covered, round(covered / counted, 4) if counted > 0 else None)
