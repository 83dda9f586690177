"""What do large collections cost others? Plans, locks, memory and inserts beside 10 indexed collections and beside many.

The same small collection, and the same indexed one, are searched by the product's own statement, first beside 10
collections with graphs, then beside 1,000 in an installation of 10,000 workspaces. The graphs are built by the product's own
job (of few vectors each: what is measured is how many there are). Then 200 connections search collections of their own at
once, and keep their transactions open.

Told are: milliseconds of planning, locks that a search or an insert holds, CPU of the server process per search and per
insert of 500 vectors and per delete of as many, and the memory that it has for itself after all of these. The sides
are 10 and many in one run, so the machine's speed is the same; figures of time are the least of several rounds.

Run: python benchmarks/neighbours.py [--graphs 1000] [--tenants 10000]. It makes and drops a database of its own (beside
DATABASE_URL's, or embedded). Exit status 1 when a figure of many is more than 1.2 times that of 10.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import sys
import time
from functools import partial
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "platform"), str(Path(__file__).parent)]

from _common import data_dir, write_result  # noqa: E402
from _stack import database, load  # noqa: E402

FEW, CONNECTIONS, BOUND = 10, 200, 1.2
CHUNKS, WRITTEN, DIMENSIONS = 30, 500, 384
SEARCHES, ROUNDS = 200, 5


class Question:
    """A search of one collection by the nearest vectors, as the product asks it."""

    def __init__(self, tenant: Any, collection: Any, rng: Any, graph: Any = None) -> None:
        from pgvector import HalfVector

        from apps.collections.search.statement import search_sql
        from apps.collections.search.types import QueryVector
        from tenancy.actors import system_actor

        scanned, indexed = ([], [graph]) if graph else ([collection.pk], [])
        text = HalfVector(rng.normal(size=DIMENSIONS)).to_text()
        self.vectors = [QueryVector(collection.space_id, DIMENSIONS, text, scanned, indexed)]
        self.statement = partial(
            search_sql, actor=system_actor(tenant.pk), scope=[collection.pk], terms=[], postings=[],
            lexemes=[], conditions=[], as_of=None, limit=50,
        )  # fmt: skip

    def ask(self) -> list[Any]:
        from apps.collections.search.ranking import ranked_rows

        return ranked_rows(self.statement, self.vectors)

    def sql(self) -> tuple[str, dict[str, Any]]:
        from apps.collections.search.statement import statement_of

        sql = self.statement(vectors=self.vectors)
        return statement_of(sql), sql.parameters


def tenants_make(count: int, *, first: int = 0) -> list[Any]:
    from tenancy.models import Tenant
    from tenancy.scope import platform_scope

    with platform_scope():
        rows = [Tenant(slug=f"neighbour-{n}", name=f"Neighbour {n}") for n in range(first, count)]
        return list(Tenant.objects.bulk_create(rows, batch_size=1000))


def filled(tenant: Any, rng: Any, *, is_indexed: bool, name: str) -> tuple[Any, Any]:
    """Make a collection with chunks and vectors, and build its graph if asked for; return both."""
    from django.db import transaction
    from django.utils import timezone

    from apps.collections.collection import services
    from apps.collections.index import large as indexes
    from apps.collections.index.graphs import graph_table
    from apps.collections.index.spaces import vectors_write
    from apps.collections.ingestion.types import ChunkDraft
    from apps.collections.models import Chunk, Document, SearchIndex
    from apps.collections.search.types import Graph
    from apps.collections.storage.rows import chunks_write
    from jobs.context import JobContext
    from jobs.models import Job
    from tenancy.actors import system_actor

    collection = services.collection_create(tenant=tenant, actor=system_actor(tenant.pk), name=name)
    with transaction.atomic():
        document = Document.objects.create(
            tenant=tenant, collection=collection, name="a.md", path="a.md", file="", sha256="0" * 64, size=1,
            media_type="text/markdown", status="ready", chunk_count=CHUNKS, live_from=timezone.now(),
        )  # fmt: skip
        drafts = [
            ChunkDraft(index=n, text=f"Passage {n}", char_start=0, char_end=9, page_start=1, page_end=1)
            for n in range(CHUNKS + (0 if is_indexed else WRITTEN))
        ]
        chunks_write(document, drafts)
        pks = list(Chunk.objects.filter(document=document).order_by("pk").values_list("pk", flat=True))
        vectors_write(
            tenant_id=tenant.pk, collection_id=collection.pk, space_id=collection.space_id,
            chunk_ids=pks[:CHUNKS], document_ids=[document.pk] * CHUNKS,
            vectors=rng.normal(size=(CHUNKS, DIMENSIONS)).astype("float32"),
        )  # fmt: skip
        collection.chunk_total = CHUNKS
        collection.save(update_fields=["chunk_total"])
    if not is_indexed:
        return collection, pks[CHUNKS:]
    job = Job.objects.create(tenant=tenant, kind=indexes.BUILD_KIND, status="running", worker="benchmark")
    indexes.indexes_build(JobContext(job), collection_id=collection.pk)
    row = SearchIndex.objects.get(collection=collection, kind="graph", status="ready")
    return collection, Graph(collection.pk, graph_table(collection.pk, row.pk), row.last_chunk)


def one(sql: str, *values: Any) -> Any:
    from django.db import connection

    with connection.cursor() as cursor:
        cursor.execute(sql, values)
        return cursor.fetchone()[0]


def locks() -> int:
    return int(one("SELECT count(*) FROM pg_locks WHERE pid = pg_backend_pid()"))


def planning_ms(question: Question) -> float:
    from django.db import connection

    statement, parameters = question.sql()
    found = []
    for _ in range(30):
        with connection.cursor() as cursor:
            cursor.execute("EXPLAIN (SUMMARY, FORMAT JSON) " + statement, parameters)
            found.append(cursor.fetchone()[0][0]["Planning Time"])
    return float(min(found))


def used_ms(pid: int) -> float:
    """Return the milliseconds that a process was on a processor."""
    return int(Path(f"/proc/{pid}/schedstat").read_text().split()[0]) / 1e6


def own_mb(pid: int) -> float:
    """Return the memory that a process has for itself, without the buffers that Postgres' processes share."""
    line = next(
        line for line in Path(f"/proc/{pid}/status").read_text().splitlines() if line.startswith("RssAnon")
    )
    return int(line.split()[1]) / 1000


def measured(small: tuple[Any, Any], large: tuple[Any, Any], tenant: Any, rng: Any) -> dict[str, float]:
    """Return the figures of this moment, on a connection of their own."""
    from django.db import connection, transaction

    from apps.collections.index.spaces import vectors_write
    from apps.collections.models import Document, Embedding

    collection, spare = small
    questions = {
        "small": Question(tenant, collection, rng),
        "indexed": Question(tenant, large[0], rng, large[1]),
    }
    document = Document.objects.get(collection=collection).pk
    vectors = rng.normal(size=(WRITTEN, DIMENSIONS)).astype("float32")
    write = partial(
        vectors_write, tenant_id=tenant.pk, collection_id=collection.pk, space_id=collection.space_id,
        chunk_ids=spare, document_ids=[document] * WRITTEN, vectors=vectors,
    )  # fmt: skip
    written = Embedding.objects.filter(tenant=tenant, collection=collection, chunk_id__in=spare)
    connection.close()
    found: dict[str, float] = {}
    for name, question in questions.items():
        with transaction.atomic():
            assert len(question.ask()) == CHUNKS
            found[f"locks_{name}"] = locks()
        found[f"planning_ms_{name}"] = planning_ms(question)
    with transaction.atomic():
        write()
        found["locks_insert"] = locks()
        transaction.set_rollback(True)
    process = int(one("SELECT pg_backend_pid()"))
    least: dict[str, list[float]] = {"search_small": [], "search_indexed": [], "insert": [], "delete": []}
    for _ in range(ROUNDS):
        for name, question in questions.items():
            began = used_ms(process)
            for _ in range(SEARCHES):
                question.ask()
            least[f"search_{name}"].append((used_ms(process) - began) / SEARCHES)
        spent = {"insert": 0.0, "delete": 0.0}
        for _ in range(20):
            with transaction.atomic():
                began = used_ms(process)
                write()
                middle = used_ms(process)
                written._raw_delete(written.db)
                spent["insert"] += middle - began
                spent["delete"] += used_ms(process) - middle
                transaction.set_rollback(True)
        for name, value in spent.items():
            least[name].append(value / 20)
    found |= {f"cpu_ms_{name}": min(values) for name, values in least.items()}
    found["memory_mb"] = own_mb(process)
    return found


def crowd(indexed: list[tuple[Any, Any, Any]], rng: Any) -> dict[str, Any]:
    """Search by many connections whose transactions stay open; return how many locks there are then."""
    from django.db import connection

    from tenancy.database.direct import direct_params
    from tenancy.scope import tenant_scope

    lines = []
    with contextlib.ExitStack() as stack:
        import psycopg

        for n in range(CONNECTIONS):
            tenant, collection, graph = indexed[n % len(indexed)]
            line = stack.enter_context(psycopg.connect(**direct_params()))
            line.execute("SET ROLE groundwork_rw")
            line.execute("SELECT set_config('app.tenant_id', %s, false)", [str(tenant.pk)])
            statement, parameters = Question(tenant, collection, rng, graph).sql()
            assert len(line.execute(statement, parameters).fetchall()) == CHUNKS
            lines.append(line)
        with tenant_scope(indexed[0][0].pk), connection.cursor() as cursor:
            cursor.execute("SELECT count(*), count(*) FILTER (WHERE NOT fastpath) FROM pg_locks")
            every, shared = cursor.fetchone()
        room = int(
            one(
                "SELECT current_setting('max_locks_per_transaction')::int * current_setting('max_connections')::int"
            )
        )
    return {"connections": len(lines), "locks": every, "in_the_lock_table": shared, "room": room}


def run(graphs: int, tenants: int) -> dict[str, Any]:
    import numpy as np

    from apps.collections.index import large as indexes
    from tenancy.scope import tenant_scope

    indexes.HNSW_MIN, indexes.POSTINGS_MIN = CHUNKS, 10**9
    rng = np.random.default_rng(7)
    everyone = tenants_make(FEW)
    indexed: list[tuple[Any, Any, Any]] = []

    def fill(count: int) -> None:
        while len(indexed) < count:
            tenant = everyone[len(indexed) * len(everyone) // max(count, 1) % len(everyone)]
            with tenant_scope(tenant.pk):
                indexed.append((tenant, *filled(tenant, rng, is_indexed=True, name=f"Large {len(indexed)}")))

    own = everyone[0]
    fill(FEW)
    with tenant_scope(own.pk):
        small = filled(own, rng, is_indexed=False, name="Small")
        sides = {"few": measured(small, indexed[0][1:], own, rng)}
    everyone += tenants_make(tenants, first=FEW)
    began = time.perf_counter()
    fill(graphs)
    seconds = time.perf_counter() - began
    with tenant_scope(own.pk):
        sides["many"] = measured(small, indexed[0][1:], own, rng)
    return {
        "graphs": graphs,
        "tenants": tenants,
        "chunks_per_collection": CHUNKS,
        "seconds_per_build": round(seconds / (graphs - FEW), 3),
        **{name: {k: round(v, 3) for k, v in side.items()} for name, side in sides.items()},
        "ratio": {name: round(sides["many"][name] / value, 3) for name, value in sides["few"].items()},
        "crowd": crowd(indexed, rng),
    }


def main() -> int:
    """Measure and write results/neighbours.json."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--graphs", type=int, default=1000)
    parser.add_argument("--tenants", type=int, default=10_000)
    args = parser.parse_args()
    os.environ.setdefault("GROUNDWORK_DATA_DIR", str(data_dir()))
    before = load()
    with database():
        result = {"load_before": before, **run(args.graphs, args.tenants), "load_after": load()}
        for name, value in result.items():
            print(f"{name:24} {value}", flush=True)
        if (args.graphs, args.tenants) == (1000, 10_000):
            write_result("neighbours", result)
    return 0 if max(result["ratio"].values()) <= BOUND else 1


if __name__ == "__main__":
    sys.exit(main())
