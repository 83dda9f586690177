"""pgvector used plainly, for search_scale.py: one table with all vectors, one HNSW index, the collection as a filter.

It is what a first version of such a product writes: defaults of pgvector, text beside the vector, no words, no walls. Two
ways are asked: as pgvector comes, where the filter may leave fewer than ten, and with ``hnsw.iterative_scan``.
"""

from __future__ import annotations

import time
from typing import Any

import numpy as np
import psycopg
from pgvector.psycopg import register_vector

from tenancy.database.direct import direct_connection

TABLE = "benchmark_plain"
WAYS = {"plain": "off", "iterative": "relaxed_order"}


def plain(slug: str, scopes: dict[str, int], questions: np.ndarray) -> dict[str, Any]:
    """Copy what was loaded into a plain table, index it, and ask for the ten nearest.

    Args:
        slug: how the workspaces of the benchmark begin.
        scopes: collections by their label.
        questions: their vectors, one a row.

    Returns:
        Rows loaded per second with the index that grows by them, and for each way and collection the times of a
        statement in milliseconds, the processor time apart, and recall@10 of an exact scan.
    """
    with direct_connection() as line:
        register_vector(line)
        line.execute(f"DROP TABLE IF EXISTS {TABLE}")
        line.execute(
            f"CREATE TABLE {TABLE} (id bigint PRIMARY KEY, collection bigint, vector vector(384), text text)"
        )
        line.execute(f"CREATE INDEX ON {TABLE} USING hnsw (vector vector_cosine_ops)")
        line.execute(f"CREATE INDEX ON {TABLE} (collection)")
        try:
            began = time.perf_counter()
            line.execute(
                f"""INSERT INTO {TABLE} SELECT e.chunk_id, e.collection_id, e.vector::vector(384), c.text
                    FROM collections_embedding e JOIN collections_chunk c ON c.id = e.chunk_id
                    JOIN tenancy_tenant t ON t.id = e.tenant_id WHERE starts_with(t.slug, %s)""",
                [slug],
            )
            seconds = time.perf_counter() - began
            line.execute(f"VACUUM ANALYZE {TABLE}")
            row: Any = line.execute(f"SELECT count(*) FROM {TABLE}").fetchone()
            asked = {
                way: {label: _asked(line, value, pk, questions) for label, pk in scopes.items()}
                for way, value in WAYS.items()
            }
            return {"rows": row[0], "loaded_per_second": round(row[0] / seconds), **asked}
        finally:
            line.execute(f"DROP TABLE {TABLE}")


def _asked(line: psycopg.Connection[Any], way: str, collection: int, questions: np.ndarray) -> dict[str, Any]:
    rows = line.execute(f"SELECT id, vector FROM {TABLE} WHERE collection = %s", [collection]).fetchall()
    ids, stored = np.array([r[0] for r in rows]), np.array([r[1].to_numpy() for r in rows])
    line.execute(f"SET hnsw.iterative_scan = {way}")
    times, shares = [], []
    for number, question in enumerate([questions[0], *questions]):
        began = time.perf_counter()
        found = line.execute(
            f"SELECT id, text FROM {TABLE} WHERE collection = %s ORDER BY vector <=> %s LIMIT 10",
            [collection, question],
        ).fetchall()
        if number:
            times.append((time.perf_counter() - began) * 1000)
            best = ids[np.argsort(-(stored @ question))[:10]]
            shares.append(len({r[0] for r in found} & set(best.tolist())) / len(best))
    return {
        "p50_ms": round(float(np.percentile(times, 50)), 1),
        "p95_ms": round(float(np.percentile(times, 95)), 1),
        "recall_at_10": round(float(np.mean(shares)), 4),
    }
