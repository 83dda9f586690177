"""What does a turn cost: processor seconds, rows and commits of streamed answers, and of turns that call tools.

Streamed: answers of 20 words a second for five seconds, all at once, each with a reader. Burst: turns of five model calls
that answer at once (four searches, then the answer). Processor time is read for the web server, the worker's processes and
the database apart; rows and commits are what the database has counted. Each kind runs in several rounds; the first, which
warms both processes up, isn't counted, and of the others the median is taken.

Run: python benchmarks/turn_cost.py [--turns 30] [--rounds 3]. Starts an embedded database of its own. No bar: the figures
are compared with an earlier run's.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import statistics
import time
from typing import Any

import psutil
import psycopg
from _common import write_result
from _portal import CLOCK, Portal, person
from _stack import database, load, percentile, product
from streams import submit

GAP_MS, WORDS = 50, 100
STREAMED = f"fake-clock-words{WORDS}-gap{GAP_MS}"
BURST = "fake-search4-varied-words20"  # as a model asks: the vector of a question that comes again is kept for a while
TEXT = "The notice period is thirty days. It begins on the first day of the month that follows.\n\n"


def main() -> None:
    """Measure and write results/turn_cost.json."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--turns", type=int, default=30)
    parser.add_argument("--rounds", type=int, default=3)
    args = parser.parse_args()
    before = load()
    models = f"{STREAMED},{BURST}"
    with database() as url, product(models, GROUNDWORK_WORKERS="2") as (stack, _):
        assert stack.web is not None
        assert stack.worker is not None
        meter = Meter(url, stack.web.pid, stack.worker.pid)
        tenant, actor, user = person("cost")
        portal = Portal(stack.port, tenant.slug, user)
        document(tenant, actor)
        rounds: dict[str, list[dict[str, Any]]] = {"streamed": [], "burst": []}
        for number in range(args.rounds + 1):
            streamed = meter.during(
                lambda: asyncio.run(watched(portal, tenant, actor, args.turns)), args.turns
            )
            burst = meter.during(
                lambda: ended(tenant, submit(tenant, actor, f"compatible/{BURST}", args.turns)), args.turns
            )
            if number:
                rounds["streamed"].append(streamed)
                rounds["burst"].append(burst)
    result = {
        "turns": args.turns,
        "rounds": args.rounds,
        **{
            f"{kind}_{name}": round(statistics.median(one[name] for one in measured), 2)
            for kind, measured in rounds.items()
            for name in measured[0]
        },
        "load_before": before,
        "load_after": load(),
    }
    for name, value in result.items():
        print(f"{name:40} {value}")
    print(write_result("turn_cost", result))


class Meter:
    """Reads what web server, worker and database have used."""

    def __init__(self, url: str, web: int, worker: int) -> None:
        self._url, self._web, self._worker = url, psutil.Process(web), psutil.Process(worker)
        with psycopg.connect(url) as line:
            (backend,) = line.execute("SELECT pg_backend_pid()").fetchone() or (0,)
            self._postmaster = psutil.Process(backend).parent()

    def during(self, work: Any, turns: int) -> dict[str, float]:
        """Return what a turn has cost of each, in processor milliseconds, rows and commits."""
        before, began = self._read(), time.time()
        extra = work() or {}
        time.sleep(1.5)  # what ends the turns, and the database's counters, which follow within a second
        after = self._read()
        return {
            **{name: (after[name] - before[name]) / turns for name in after},
            "cpu_ms": sum(after[n] - before[n] for n in after if n.endswith("cpu_ms")) / turns,
            "wall_s": time.time() - began - 1.5,
            **extra,
        }

    def _read(self) -> dict[str, float]:
        name = os.environ["DATABASE_URL"].rpartition("/")[2].partition("?")[0]
        with psycopg.connect(self._url) as line:
            row = line.execute(
                "SELECT xact_commit, tup_inserted, tup_updated FROM pg_stat_database WHERE datname = %s",
                [name],
            ).fetchone()
        assert row is not None
        return {
            "web_cpu_ms": cpu_ms(self._web),
            "worker_cpu_ms": cpu_ms(self._worker),
            "database_cpu_ms": cpu_ms(self._postmaster),
            "commits": row[0],
            "rows_inserted": row[1],
            "rows_updated": row[2],
        }


def cpu_ms(process: psutil.Process) -> float:
    """Return the processor time of a process, its children, and those that it has outlived."""
    own = process.cpu_times()
    used = sum(own[:4])
    for child in process.children(recursive=True):
        try:
            times = child.cpu_times()
        except psutil.NoSuchProcess:
            continue
        used += sum(times[:2])
    return 1000 * float(used)


async def watched(portal: Portal, tenant: Any, actor: Any, count: int) -> dict[str, float]:
    """Ask, read each answer's stream to its end, and return how late words came to the reader."""
    latencies: list[float] = []

    async def follow(conversation: int, run: int) -> None:
        newest = 0.0
        async for at, piece in portal.stream(conversation, run):
            said = max((float(word) for word in CLOCK.findall(piece)), default=0.0)
            if said > newest:
                newest = said
                latencies.append(at - said)
            if b"event: end" in piece:
                return

    # Each reader comes when its question has been asked, as in the portal, and stays to the end of the answer.
    async with asyncio.TaskGroup() as readers:
        opened = []
        for _ in range(count):
            opened += await asyncio.to_thread(submit, tenant, actor, f"compatible/{STREAMED}", 1)
            readers.create_task(follow(*opened[-1]))
    await asyncio.to_thread(ended, tenant, opened)
    return {
        "word_to_reader_p50_ms": 1000 * percentile(latencies, 0.5),
        "word_to_reader_p95_ms": 1000 * percentile(latencies, 0.95),
    }


def ended(tenant: Any, opened: list[tuple[int, int]]) -> None:
    """Wait until all runs have ended, and each with an answer."""
    from runs.models import Run
    from tenancy.scope import tenant_scope

    with tenant_scope(tenant.pk):
        runs = Run.objects.filter(pk__in=[run for _, run in opened])
        while runs.filter(status__in=("queued", "running")).exists():
            time.sleep(0.25)
        assert {run.status for run in runs} == {"completed"}, [run.error_message for run in runs]


def document(tenant: Any, actor: Any) -> None:
    """Give the searches something to find."""
    from apps.collections.collection.services import collection_create
    from apps.collections.documents.services import document_upload
    from apps.collections.models import Document
    from tenancy.scope import tenant_scope

    with tenant_scope(tenant.pk):
        collection = collection_create(tenant=tenant, actor=actor, name="Notices")
        document_upload(
            tenant=tenant,
            actor=actor,
            collection=collection,
            name="notice.txt",
            chunks=[(TEXT * 100).encode()],
        )
        while not Document.objects.filter(status="ready").exists():
            time.sleep(0.1)


if __name__ == "__main__":
    main()
