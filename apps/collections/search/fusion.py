"""How the legs of a search are weighed against each other, as SQL over the candidates of each: by what they measure.

A passage gets from each leg how far it stands above the least of the leg's candidates, in their standard deviations, and
the sum is its score. Ranks would say the same of a passage far ahead of all others and of the first of fifty alike. These
texts know no table: ``benchmarks/lexical.py`` gives them lists that it has made itself.
"""

# ruff: noqa: S608 - texts of this module's callers and its own constants; values are parameters there
from __future__ import annotations

from collections.abc import Sequence

from apps.collections.search.types import DEPTH, LEAST_SPREAD

NO_LEG = (
    "SELECT 0::bigint AS chunk_id, 0::bigint AS document_id, '' AS leg, 0::bigint AS rank, 0::float8 AS measure, "
    "0.0 AS strength WHERE false"
)
"""What stands for the legs of a search that has none."""


def vector_votes(found: str, vote: str = "1.0") -> str:
    """Return the leg of the nearest chunks.

    Args:
        found: a query with ``chunk_id, document_id, measure``, the measure being a distance; more rows than count do no
            harm.
        vote: how much a row counts, an expression over ``nearest``.
    """
    # Every chunk has a distance: no place of the list is empty.
    above = _above("-measure", places="count(*) OVER ()", least="-max(measure) OVER ()")
    return f"""(SELECT chunk_id, document_id, 'vector' AS leg, row_number() OVER (ORDER BY measure, chunk_id) AS rank,
                    measure, {vote} * {above} AS strength
             FROM (SELECT * FROM ({found}) found ORDER BY measure, chunk_id LIMIT {DEPTH}) nearest)"""


def lexical_votes(found: str) -> str:
    """Return the leg of the words.

    Args:
        found: a query with ``chunk_id, document_id, negative``, the BM25 score below zero.
    """
    # A chunk without a word of the question measures 0; of the others at most the list's last is known.
    least = f"CASE WHEN count(*) OVER () < {DEPTH} THEN 0 ELSE -max(negative) OVER () END"
    return f"""(SELECT chunk_id, document_id, 'lexical' AS leg,
                    row_number() OVER (ORDER BY negative, chunk_id) AS rank, -negative AS measure,
                    {_above("-negative", places=str(DEPTH), least=least)} AS strength
             FROM (SELECT * FROM ({found}) found WHERE negative < 0
                   ORDER BY negative, chunk_id LIMIT {DEPTH}) best)"""


def exact_votes(found: str) -> str:
    """Return the leg of the identifiers.

    Args:
        found: a query with ``chunk_id, document_id, score``.
    """
    # Behind those that hold it stand as many as any leg names that do not: what few hold says more.
    above = _above("score", places=f"(count(*) OVER () + {DEPTH})", least="0")
    return f"""(SELECT chunk_id, document_id, 'exact' AS leg, row_number() OVER (ORDER BY score DESC, chunk_id) AS rank,
                    score AS measure, {above} AS strength
             FROM (SELECT * FROM ({found}) held ORDER BY score DESC, chunk_id LIMIT {DEPTH}) named)"""


def fused_sql(legs: Sequence[str]) -> str:
    """Return the query that adds the legs up: a row per chunk, best first, with what each leg said of it."""
    return f"""
        SELECT chunk_id, min(document_id) AS document_id, sum(strength)::float8 AS score,
               min(rank) FILTER (WHERE leg = 'vector') AS vector_rank,
               min(rank) FILTER (WHERE leg = 'lexical') AS lexical_rank,
               min(rank) FILTER (WHERE leg = 'exact') AS exact_rank,
               min(measure) FILTER (WHERE leg = 'vector') AS distance,
               max(measure) FILTER (WHERE leg = 'lexical') AS bm25
        FROM ({" UNION ALL ".join(legs)}) hits GROUP BY chunk_id ORDER BY score DESC, chunk_id"""


def _above(measure: str, *, places: str, least: str) -> str:
    """Return how far a candidate stands above the least of its leg, in standard deviations: what a leg says of it.

    Args:
        measure: of the candidate; more is better.
        places: how many the standard deviation is of; those without a candidate measure nothing.
        least: what a passage measures at most that the leg does not name.
    """
    mean = f"sum({measure}) OVER () / {places}"
    variance = f"sum(({measure}) ^ 2) OVER () / {places} - ({mean}) ^ 2"
    # Rounding may leave a little less than nothing.
    return f"({measure} - ({least})) / greatest(sqrt(greatest({variance}, 0)), {LEAST_SPREAD})"
