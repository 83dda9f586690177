"""How much does a search slow down while a backup of the same database is written?

Blocks of searches (``search_run``, the embedding of the question included) in a collection of a tenth of all chunks, in
turns: one with nothing beside, one while ``manage.py backup create`` writes all rows to a new place. A block beside ends when its backup does, or after 20 seconds, which end the backup.
Told are medians of the pairs' ratios: wall time, and processor time of this process and of its database session. Wall time
is what a person waits, but on a busy machine it moves with whatever else runs, so blocks alternate, and the ratio of each
pair is told as well. The bar is a slowdown of 10 %; it isn't looked at if others keep the machine busy.

Run: python -m benchmarks.backup_beside [--chunks 100000] [--rounds 5]. It makes and drops a database of its own.
A million chunks take about 5 GB of disk and half an hour to load.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "platform"), str(Path(__file__).parent)]

from _common import data_dir, write_result  # noqa: E402
from _stack import database, load  # noqa: E402
from creep import BUSY  # noqa: E402

QUIET_S, MOST_S, BAR = 8.0, 20.0, 1.10


class Searches:
    """Searches of one collection, each with what it took."""

    def __init__(self, tenant: Any, actor: Any, collection: Any, questions: list[str]) -> None:
        import psutil
        from django.db import connection

        self._who = {"tenant": tenant, "actor": actor, "collections": [collection]}
        self._questions, self._at = questions, 0
        with connection.cursor() as cursor:
            cursor.execute("SELECT pg_backend_pid()")
            self._session = psutil.Process(cursor.fetchone()[0])

    def _cpu_s(self) -> float:
        spent = self._session.cpu_times()
        return time.process_time() + spent.user + spent.system

    def block(self, goes_on: Any) -> dict[str, Any]:
        """Search for as long as asked; return the milliseconds of each search and the processor time of one."""
        from apps.collections.search import search_run

        times, spent = [], self._cpu_s()
        while goes_on():
            began = time.perf_counter()
            search_run(query=self._questions[self._at % len(self._questions)], **self._who)
            times.append((time.perf_counter() - began) * 1000)
            self._at += 1
        return {"ms": times, "cpu_ms": (self._cpu_s() - spent) * 1000 / max(1, len(times))}


def backup(folder: str) -> subprocess.Popen[bytes]:
    """Begin a backup."""
    command = [sys.executable, "manage.py", "backup", "create", folder]
    return subprocess.Popen(command, cwd=ROOT, stdout=subprocess.DEVNULL)


def is_reading(process: subprocess.Popen[bytes], line: Any) -> bool:
    """Tell whether a backup reads rows, or has ended."""
    query = "SELECT count(*) FROM pg_stat_activity WHERE query LIKE 'COPY (SELECT%'"
    return bool(line.execute(query).fetchone()[0]) or process.poll() is not None


def beside(searches: Searches) -> tuple[dict[str, Any], float]:
    """Search while a backup is written; return what the searches took, and the seconds of reading that were seen."""
    import psycopg

    with tempfile.TemporaryDirectory(prefix="groundwork-backup-") as folder:
        process = backup(folder)
        # A session of its own: within a transaction, what others do is seen as it was at the first look.
        with psycopg.connect(os.environ["DATABASE_URL"], autocommit=True) as line:
            while not is_reading(process, line):
                time.sleep(0.05)
        began = time.monotonic()
        told = searches.block(lambda: process.poll() is None and time.monotonic() - began < MOST_S)
        seconds = time.monotonic() - began
        is_cut = process.poll() is None
        process.terminate()
        if process.wait() and not is_cut:
            raise SystemExit("the backup failed")
    return told, seconds


def run(chunks: int, rounds: int) -> dict[str, Any]:
    import numpy as np
    import search
    from django.db import connection

    from apps.collections.index import large as indexes
    from apps.collections.models import Collection
    from jobs.context import JobContext
    from jobs.models import Job
    from tenancy.scope import tenant_scope

    search.PER_COLLECTION = chunks // search.COLLECTIONS
    tenant, actor, _ = search.tenant_of("benchmark-backup", is_fresh=False)
    rng = np.random.default_rng(7)
    words = ["".join(chr(97 + i // 26**p % 26) for p in range(4)) + "o" for i in range(30_000)]
    with tenant_scope(tenant.pk):
        began = time.monotonic()
        search.latency_load(tenant, actor, rng, words)
        one = Collection.objects.order_by("pk").first()
        job = Job.objects.create(tenant=tenant, kind=indexes.BUILD_KIND, status="running", worker="benchmark")
        indexes.indexes_build(JobContext(job), collection_id=one.pk)
        search.analyse()
        loaded_s = time.monotonic() - began
        one = Collection.objects.select_related("space").get(pk=one.pk)
        searches = Searches(tenant, actor, one, [search.question(rng, words) for _ in range(500)])
        for _ in range(2):  # caches and prepared statements
            until = time.monotonic() + 1
            searches.block(lambda until=until: time.monotonic() < until)
        blocks: dict[str, list[Any]] = {"quiet": [], "beside": []}
        for _ in range(rounds):
            until = time.monotonic() + QUIET_S
            blocks["quiet"].append(searches.block(lambda until=until: time.monotonic() < until))
            told, seconds = beside(searches)
            blocks["beside"].append({**told, "seconds": seconds})
            print({kind: median_of(every[-1:]) for kind, every in blocks.items()}, flush=True)
        with connection.cursor() as cursor:
            cursor.execute("SELECT pg_database_size(current_database())")
            size = cursor.fetchone()[0]
    result: dict[str, Any] = {
        "chunks": chunks,
        "rounds": rounds,
        "database_mb": size >> 20,
        "load_s": round(loaded_s),
        "seconds_beside": round(statistics.median(one["seconds"] for one in blocks["beside"]), 1),
    }
    for kind, every in blocks.items():
        result[f"{kind}_searches"] = sum(len(one["ms"]) for one in every)
        result[f"{kind}_ms"] = median_of(every)
    pairs = list(zip(blocks["quiet"], blocks["beside"], strict=True))
    walls = [round(median_of([b]) / median_of([a]), 3) for a, b in pairs]
    cpus = [round(b["cpu_ms"] / a["cpu_ms"], 3) for a, b in pairs]
    result |= {"beside_wall_ratios": walls, "beside_cpu_ratios": cpus}
    return result | {"beside_wall": statistics.median(walls), "beside_cpu": statistics.median(cpus)}


def median_of(blocks: list[Any]) -> float:
    """Return the median of all searches of some blocks, in milliseconds."""
    return round(statistics.median(taken for one in blocks for taken in one["ms"]), 1)


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--chunks", type=int, default=100_000)
    parser.add_argument("--rounds", type=int, default=5)
    given = parser.parse_args()
    os.environ.setdefault("GROUNDWORK_DATA_DIR", str(data_dir()))
    before = load()
    with database():
        result = run(given.chunks, given.rounds) | {"load": load()}
    for name, value in result.items():
        print(f"{name:24} {value}")
    write_result("backup_beside", result)
    if before[0] > BUSY * (os.cpu_count() or 1):
        print("Others keep this machine busy: the ratios say nothing about the bar.")
        return 0
    return 0 if result["beside_wall"] <= BAR else 1


if __name__ == "__main__":
    raise SystemExit(main())
