"""What does a search read? Its own statements, explained while they run, in a workspace of 100,000 chunks.

The chunks of ``search.py`` (ten collections of 10,000); the first collection gets its indexes by the product's own job.
Questions go through ``search_run``, and each of its statements is run once more by EXPLAIN (ANALYZE) where it stands, with
the settings it has there (the postings of words alone pass by: they come over a binary cursor, and with the index that
``Postings`` names). Told are counts: scans by kind and index, rows that scans touched per table, rows and bytes that
came back, and what the same candidates would bring as whole rows. No times.

Run: python benchmarks/search_plan.py [--questions 20] [--chunks 10000]. It makes and drops a database of its own (beside
DATABASE_URL's, or embedded).
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "platform"), str(Path(__file__).parent)]

from _common import data_dir, write_result  # noqa: E402
from _stack import database  # noqa: E402

_SCANS = ("Seq Scan", "Index Scan", "Index Only Scan", "Bitmap Heap Scan", "Bitmap Index Scan")


class Explainer:
    """Explains every statement over collections that passes through Django, and counts."""

    def __init__(self) -> None:
        self.scans: Counter[str] = Counter()
        self.touched: Counter[str] = Counter()
        self.statements: list[str] = []
        self._is_busy = False

    def __call__(self, execute: Any, sql: str, params: Any, many: bool, context: dict[str, Any]) -> Any:
        from django.db import connection

        if not self._is_busy and "collections_chunk" in sql and sql.lstrip()[:4] in ("WITH", "SELE"):
            self._is_busy = True
            try:
                with connection.cursor() as cursor:
                    cursor.execute("EXPLAIN (ANALYZE, TIMING OFF, FORMAT JSON) " + sql, params)
                    self.read(cursor.fetchone()[0])
            finally:
                self._is_busy = False
            self.statements.append(sql)
        return execute(sql, params, many, context)

    def read(self, told: Any) -> None:
        plan = (json.loads(told) if isinstance(told, str) else told)[0]["Plan"]
        for node in nodes(plan):
            if node["Node Type"] not in _SCANS or not node["Actual Loops"]:
                continue
            name = node.get("Index Name") or node.get("Relation Name") or ""
            own = "graph of the collection" if "_vector_idx" in name else name
            self.scans[f"{node['Node Type']} {own}"] += 1
            if table := node.get("Relation Name"):
                rows = node["Actual Rows"] + node.get("Rows Removed by Filter", 0)
                self.touched[table] += round(rows * node["Actual Loops"])


def nodes(plan: dict[str, Any]) -> Iterator[dict[str, Any]]:
    yield plan
    for child in plan.get("Plans", ()):
        yield from nodes(child)


def size(rows: list[Any]) -> int:
    """Return the bytes of the values as PostgreSQL writes them in text."""
    return sum(len(str(value).encode()) for row in rows for value in row if value is not None)


def run(questions: int) -> dict[str, Any]:
    import numpy as np
    import search
    from django.db import connection

    from apps.collections.index import large as indexes
    from apps.collections.models import Chunk, Collection, SearchIndex
    from apps.collections.search import ranking as search_ranking
    from apps.collections.search import rows as search_rows
    from apps.collections.search import run as search_module
    from jobs.context import JobContext
    from jobs.models import Job
    from tenancy.scope import tenant_scope

    tenant, actor, _ = search.tenant_of("benchmark-plan", is_fresh=False)
    rng = np.random.default_rng(7)
    words = ["".join(chr(97 + i // 26**p % 26) for p in range(4)) + "o" for i in range(30_000)]
    with tenant_scope(tenant.pk):
        search.latency_load(tenant, actor, rng, words)
        one = Collection.objects.order_by("pk").first()
        job = Job.objects.create(tenant=tenant, kind=indexes.BUILD_KIND, status="running", worker="benchmark")
        indexes.indexes_build(JobContext(job), collection_id=one.pk)
        search.analyse()
        one = Collection.objects.select_related("space").get(pk=one.pk)
        explained = Explainer()
        ranked: list[list[Any]] = []
        execute = search_ranking.rows_execute

        def kept(*args: Any, **more: Any) -> list[Any]:
            found = execute(*args, **more)
            ranked.append(found)
            return found

        search_ranking.rows_execute = search_module.rows_execute = kept  # type: ignore[attr-defined]
        shown = whole = 0
        asked = [search.question(rng, words) for _ in range(questions)]
        with connection.execute_wrapper(explained):
            for text in asked:
                hits = search_module.search_run(
                    tenant=tenant, actor=actor, collections=[one], query=text
                ).hits
                shown += size(
                    [[getattr(hit, name) for name in ("text", "headings", "metadata")] for hit in hits]
                )
        for candidates in ranked:
            with connection.cursor() as cursor:
                ids = [row.chunk_id for row in candidates]
                cursor.execute(search_rows._PLAIN, {"tenant": tenant.pk, "chunks": ids})
                whole += size(cursor.fetchall())
        return {
            "chunks_in_workspace": Chunk.objects.count(),
            "chunks_in_collection": Chunk.objects.filter(collection=one).count(),
            "indexes": sorted(SearchIndex.objects.filter(status="ready").values_list("kind", flat=True)),
            "questions": questions,
            "statements_per_question": len(explained.statements) / questions,
            "candidates_per_question": sum(map(len, ranked)) / questions,
            "candidate_bytes_per_question": round(
                size([row for found in ranked for row in found]) / questions
            ),
            "shown_bytes_per_question": round(shown / questions),
            "whole_rows_of_candidates_bytes_per_question": round(whole / questions),
            "scans_per_question": {name: n / questions for name, n in sorted(explained.scans.items())},
            "rows_touched_per_question": {n: round(c / questions, 1) for n, c in explained.touched.items()},
        }


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--questions", type=int, default=20)
    parser.add_argument("--chunks", type=int, default=10_000, help="in each of ten collections")
    options = parser.parse_args()
    os.environ.setdefault("GROUNDWORK_DATA_DIR", str(data_dir()))
    with database():
        import search

        search.PER_COLLECTION = options.chunks
        result = run(options.questions)
    print(json.dumps(result, indent=1))
    large = [name for name in result["scans_per_question"] if name.startswith("Seq Scan")]
    print(f"sequential scans: {', '.join(large) or 'none'}")
    write_result("search_plan", result)
    return 0


if __name__ == "__main__":
    sys.exit(main())
