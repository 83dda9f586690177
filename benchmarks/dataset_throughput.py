"""How close does a generation job come to what the provider's own time allows, and what does the worker burn for it?

A local server answers each call after one second and refuses one in twenty for its rate (429, Retry-After 1 s). One
worker carries a job with 50 rows at once; a row takes six calls, one of them with a real search. Ideal is the number of
answered calls x 1 s / 50: refusals and their waits are ours to hide. CPU is that of the worker and all its processes,
as a share of one core.

Run: python benchmarks/dataset_throughput.py [--rows 400]. Makes a database of its own.
Bar (a quiet machine of two cores): wall at most 1.15 x ideal, CPU under 25 %.
"""

from __future__ import annotations

import argparse
import os
import random
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import psutil
from _common import write_result
from _stack import database, load

NAME = "fake-think1000-rows"
CALL_S, CONCURRENCY, REFUSED = 1.0, 50, 0.05
WALL_BAR, CPU_BAR = 1.15, 0.25
DOCUMENTS = 20


def main() -> int:
    """Measure and write results/dataset_throughput.json."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=400)
    args = parser.parse_args()
    before = load()
    with database():
        result = run(args.rows)
    result |= {"load_before": before, "load_after": load()}
    for name, value in result.items():
        print(f"{name:32} {value}")
    print(write_result("dataset_throughput", result))
    is_good = result["wall_of_ideal"] <= WALL_BAR and result["worker_cpu_of_a_core"] < CPU_BAR
    return 0 if is_good else 1


def run(rows: int) -> dict[str, Any]:
    """Carry a job and return its times."""
    from apps.datasets.models import PaidCall
    from tenancy.scope import tenant_scope
    from tests.cast import make_cast
    from tests.datasets.support import FakeModel, start
    from tests.fake_provider import running
    from tests.servers import Stack

    chance = random.Random(7)

    class Busy(FakeModel):
        refused = 0

        def __call__(self, body: dict[str, Any]) -> Any:
            if chance.random() < REFUSED:
                self.refused += 1
                return 429
            return super().__call__(body)

    model, cast = Busy(), make_cast()
    with running() as (url, server), tempfile.TemporaryDirectory() as logs:
        server.replies[NAME], server.retry_after = model, "1"
        os.environ["GROUNDWORK_COMPATIBLE_BASE_URL"] = url
        os.environ["GROUNDWORK_COMPATIBLE_MODELS"] = NAME
        stack = Stack(
            Path(logs),
            DJANGO_SETTINGS_MODULE=os.environ["DJANGO_SETTINGS_MODULE"],
            DATABASE_URL=os.environ["DATABASE_URL"],
            GROUNDWORK_JOB_LEASE_S="30",
            GROUNDWORK_WORKERS="2",
        )
        try:
            stack.start_web()
            stack.start_worker()
            assert stack.worker is not None
            worker = psutil.Process(stack.worker.pid)
            with tenant_scope(cast.tenant.pk):
                collection = ingested(cast, rows)
                who = {
                    "cast": cast,
                    "collection": collection,
                    "model": f"compatible/{NAME}",
                    "types": {"factual": 1},
                    "concurrency": CONCURRENCY,
                }
                _end(start(**who, name="Warm up", rows=4, seed=1))
                model.asked.clear()
                model.refused = 0
                cpu, began = cpu_s(worker), time.monotonic()
                job = _end(start(**who, rows=rows))
                wall, cpu = time.monotonic() - began, cpu_s(worker) - cpu
                committed = PaidCall.objects.filter(job=job).count()
        finally:
            stack.stop()
    ideal = len(model.asked) * CALL_S / CONCURRENCY
    return {
        "rows": rows,
        "kept": job.kept,
        "state": job.state,
        "calls_answered": len(model.asked),
        "calls_committed": committed,
        "calls_refused": model.refused,
        "concurrency": CONCURRENCY,
        "ideal_s": round(ideal, 2),
        "wall_s": round(wall, 2),
        "wall_of_ideal": round(wall / ideal, 3),
        "worker_cpu_s": round(cpu, 2),
        "worker_cpu_of_a_core": round(cpu / wall, 3),
        "worker_cpu_ms_a_call": round(1000 * cpu / max(1, len(model.asked)), 2),
    }


def ingested(cast: Any, rows: int) -> Any:
    """Return a collection with a few more passages than rows, read by the worker."""
    from apps.collections.collection.services import collection_create
    from apps.collections.documents.services import document_upload
    from apps.collections.models import Chunk, Document

    actor = cast.actor("member")
    collection = collection_create(
        tenant=cast.tenant, actor=actor, name="Notices", chunk_size=300, chunk_overlap=0
    )
    each = rows // DOCUMENTS + 2
    for number in range(DOCUMENTS):
        text = "\n\n".join(
            f"# Notice {number * each + n}\n\nNotice {number * each + n} sets a duty of {n} percent on goods of the heading "
            f"{number:02}{n:03}. {'It is paid at the border by whoever enters the goods. ' * 4}"
            for n in range(each)
        )
        document_upload(
            tenant=cast.tenant,
            actor=actor,
            collection=collection,
            name=f"notices-{number}.md",
            chunks=[text.encode()],
        )
    while Document.objects.exclude(status__in=("ready", "failed")).exists():
        time.sleep(0.2)
    assert Chunk.objects.filter(collection=collection).count() >= rows, "too few passages"
    return collection


def _end(job: Any) -> Any:
    while job.state in ("queued", "running"):
        time.sleep(0.05)
        job.refresh_from_db()
    assert job.state == "completed", job.reason
    return job


def cpu_s(worker: psutil.Process) -> float:
    """Return the CPU time of the worker and everything below it in seconds."""
    total = 0.0
    for process in (worker, *worker.children(recursive=True)):
        times = process.cpu_times()
        total += times.user + times.system
    return total


if __name__ == "__main__":
    sys.exit(main())
