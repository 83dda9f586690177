"""What do prepared statements save? The same turns and the same searches with them and without, in one run.

Turns: 60 of five model calls (four searches, then the answer), with a model that thinks 0 ms, by web server and worker as
people run them; one round warms up, then each side has its rounds in turn. Searches: through ``search_run`` in this process,
in a collection that is scanned and in one with indexes of its own. Told are CPU milliseconds of Postgres (the server with
all its processes), worker and this process, and their ratio. Both sides have to find the same passages.

Run: python benchmarks/prepared.py [--turns 60] [--rounds 3] [--chunks 5000] [--questions 100]. It makes and drops databases
of its own, beside DATABASE_URL's or embedded; Postgres must run on this machine.
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
import time
from typing import Any

import psutil
from _common import data_dir, write_result
from _stack import database, load, product

MODEL = "fake-search4-varied-think0-words20"
SETTING = "GROUNDWORK_PREPARE_STATEMENTS"
SIDES = {"text": "0", "prepared": "1"}


def server() -> psutil.Process:
    """Return Postgres' first process."""
    from django.db import connection

    connection.ensure_connection()
    one = psutil.Process(connection.connection.info.backend_pid)
    return one.parent() or one


def used_ms(process: psutil.Process) -> float:
    """Return the CPU milliseconds of a process and all that came of it, ended ones as well."""
    total = 0.0
    for one in (process, *process.children(recursive=True)):
        times = one.cpu_times()
        total += times.user + times.system + times.children_user + times.children_system
    return 1000 * total


def private_mb(process: psutil.Process) -> float:
    """Return the memory that Postgres' processes share with nobody, in megabytes per process."""
    children = process.children()
    return sum(one.memory_full_info().uss for one in children) / 1e6 / max(1, len(children))


def turns_measure(turns: int, rounds: int) -> dict[str, dict[str, float]]:
    """Return the medians over rounds of each side: CPU per turn, and private memory per process of Postgres."""
    import concurrency

    concurrency.MODEL = MODEL

    found: dict[str, dict[str, list[float]]] = {
        side: {"postgres": [], "worker": [], "backend_mb": []} for side in SIDES
    }
    conversations: list[Any] = []
    for number in range(rounds):
        for side in list(SIDES) if number % 2 == 0 else list(SIDES)[::-1]:
            with product(MODEL, GROUNDWORK_WORKERS="2", **{SETTING: SIDES[side]}) as (stack, _):
                assert stack.worker is not None
                worker = psutil.Process(stack.worker.pid)
                if not conversations:
                    conversations = concurrency.prepare(turns)
                concurrency.run(conversations)
                before = {"postgres": used_ms(server()), "worker": used_ms(worker)}
                concurrency.run(conversations)
                found[side]["postgres"].append((used_ms(server()) - before["postgres"]) / len(conversations))
                found[side]["worker"].append((used_ms(worker) - before["worker"]) / len(conversations))
                found[side]["backend_mb"].append(private_mb(server()))
    return {s: {k: round(statistics.median(v), 2) for k, v in of.items()} for s, of in found.items()}


def searches_measure(chunks: int, questions: int, rounds: int) -> dict[str, Any]:
    """Return the medians over rounds of each side, per search, in a collection without and one with indexes."""
    import numpy as np
    import search
    from django.conf import settings

    from apps.collections.index import large as indexes
    from apps.collections.models import Collection
    from apps.collections.search.run import search_run
    from jobs.context import JobContext
    from jobs.models import Job
    from tenancy.scope import tenant_scope

    search.PER_COLLECTION, search.COLLECTIONS = chunks, 2
    tenant, actor, _ = search.tenant_of("benchmark-prepared", is_fresh=False)
    rng = np.random.default_rng(7)
    words = ["".join(chr(97 + i // 26**p % 26) for p in range(4)) + "o" for i in range(30_000)]
    result: dict[str, Any] = {}
    with tenant_scope(tenant.pk):
        search.latency_load(tenant, actor, rng, words)
        scanned, indexed = Collection.objects.order_by("pk")[:2]
        job = Job.objects.create(tenant=tenant, kind=indexes.BUILD_KIND, status="running", worker="benchmark")
        indexes.indexes_build(JobContext(job), collection_id=indexed.pk)
        search.analyse()
        asked = [search.question(rng, words) for _ in range(questions)]
        for name, pk in (("scanned", scanned.pk), ("indexed", indexed.pk)):
            one = Collection.objects.select_related("space").get(pk=pk)
            spent: dict[str, dict[str, list[float]]] = {s: {"postgres": [], "process": []} for s in SIDES}
            answers: dict[str, Any] = {}
            for number in range(rounds + 1):
                for side, is_on in SIDES.items():
                    settings.PREPARE_STATEMENTS = is_on == "1"
                    postgres, process = used_ms(server()), time.process_time()
                    answers[side] = [
                        [
                            hit.chunk_id
                            for hit in search_run(
                                tenant=tenant, actor=actor, collections=[one], query=text
                            ).hits
                        ]
                        for text in asked
                    ]
                    if number:  # the first one warms up
                        spent[side]["postgres"].append((used_ms(server()) - postgres) / questions)
                        spent[side]["process"].append(1000 * (time.process_time() - process) / questions)
            assert answers["text"] == answers["prepared"], "the sides differ in what they find"
            result[name] = {
                s: {k: round(statistics.median(v), 2) for k, v in of.items()} for s, of in spent.items()
            }
    return result


def shares(sides: dict[str, dict[str, float]]) -> dict[str, float]:
    """Return prepared by text, of each figure."""
    return {name: round(value / sides["text"][name], 3) for name, value in sides["prepared"].items()}


def main() -> None:
    """Measure and write results/prepared.json."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--turns", type=int, default=60)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--chunks", type=int, default=5_000)
    parser.add_argument("--questions", type=int, default=100)
    parser.add_argument("--only", choices=("turns", "searches"))
    args = parser.parse_args()
    os.environ.setdefault("GROUNDWORK_DATA_DIR", str(data_dir()))
    result: dict[str, Any] = {"turns": args.turns, "chunks": args.chunks, "load_before": load()}
    with database():
        if args.only != "searches":
            sides = turns_measure(args.turns, args.rounds)
            result["turn_cpu_ms"] = sides | {"share": shares(sides)}
        if args.only != "turns":
            for name, sides in searches_measure(args.chunks, args.questions, args.rounds).items():
                result[f"search_{name}_cpu_ms"] = sides | {"share": shares(sides)}
    result["load_after"] = load()
    for name, value in result.items():
        print(f"{name:24} {value}")
    if not args.only:
        print(write_result("prepared", result))
    saved = [v["share"]["postgres"] for k, v in result.items() if k.endswith("cpu_ms")]
    sys.exit(0 if all(share < 1 for share in saved) else 1)


if __name__ == "__main__":
    main()
