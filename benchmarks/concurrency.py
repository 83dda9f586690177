"""A hundred turns at once: how close does the product come to what the model's own time allows?

Every turn is five model calls of one second each (four searches, then the answer), so a turn takes five seconds at best,
and so do a hundred side by side. They are submitted through the product's service, from as many people, to a worker of
two processes. Throughput counts from the first submission to the last turn's end.

Run: python benchmarks/concurrency.py [--turns 100]. Makes a database of its own on the server of DATABASE_URL, or on an
embedded one. Bar (a quiet machine of two cores): at least 90 % of the ideal.
"""

from __future__ import annotations

import argparse
import sys
import time
import uuid

import psutil
from _common import write_result
from _stack import database, load, percentile, product

MODEL = "fake-search4-think1000-words20"
CALLS, CALL_S = 5, 1.0
TEXT = "The notice period is thirty days. It begins on the first day of the month that follows.\n\n"


def main() -> None:
    """Measure and write results/concurrency.json."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--turns", type=int, default=100)
    args = parser.parse_args()
    before = load()
    with database(), product(MODEL, GROUNDWORK_WORKERS="2") as (stack, _):
        assert stack.worker is not None
        worker = psutil.Process(stack.worker.pid)
        conversations = prepare(args.turns)
        warm_up(conversations)
        at_rest, busy_s = memory(worker), cpu_s(worker)
        lengths, wall_s, submit_s = run(conversations)
        busy_s = cpu_s(worker) - busy_s
        under_load = memory(worker)
    ideal_s = CALLS * CALL_S
    result = {
        "turns": args.turns,
        "model_calls_a_turn": CALLS,
        "model_call_s": CALL_S,
        "worker_processes": 2,
        "wall_s": round(wall_s, 2),
        "submit_s": round(submit_s, 2),
        "ideal_s": ideal_s,
        "throughput_of_ideal": round(ideal_s / wall_s, 3),
        "throughput_of_ideal_without_submission": round(ideal_s / (wall_s - submit_s), 3),
        "turn_p50_s": round(percentile(lengths, 0.5), 2),
        "turn_p95_s": round(percentile(lengths, 0.95), 2),
        "worker_cpu_s": round(busy_s, 2),
        "worker_cpu_ms_a_step": round(1000 * busy_s / (args.turns * CALLS), 1),
        "worker_memory_at_rest_mb": at_rest,
        "worker_memory_after_mb": under_load,
        "load_before": before,
        "load_after": load(),
    }
    for name, value in result.items():
        print(f"{name:40} {value}")
    print(write_result("concurrency", result))
    sys.exit(0 if result["throughput_of_ideal"] >= 0.9 else 1)


def prepare(count: int) -> list[tuple]:
    """Make one document, and as many people as turns, each with a conversation."""
    from apps.collections.collection.services import collection_create
    from apps.collections.documents.services import document_upload
    from apps.collections.models import Document
    from apps.conversations.turns.conversations import conversation_create
    from tenancy.models import Role
    from tenancy.scope import tenant_scope
    from tests.factories import actor_of, make_member, make_tenant

    tenant = make_tenant("benchmark")
    people = [actor_of(make_member(tenant, Role.MEMBER)) for _ in range(count + 4)]
    with tenant_scope(tenant.pk):
        collection = collection_create(tenant=tenant, actor=people[0], name="Notices")
        document_upload(
            tenant=tenant,
            actor=people[0],
            collection=collection,
            name="notice.txt",
            chunks=[(TEXT * 100).encode()],
        )
        while not Document.objects.filter(status="ready").exists():
            time.sleep(0.1)
        model = f"compatible/{MODEL}"
        return [
            (tenant, actor, conversation_create(tenant=tenant, actor=actor, model=model)) for actor in people
        ]


def warm_up(conversations: list[tuple]) -> None:
    """Let both processes load what a first turn loads."""
    run([conversations.pop() for _ in range(4)])


def run(conversations: list[tuple]) -> tuple[list[float], float, float]:
    """Submit a turn to each; return lengths of the turns, the wall time of all, and what submission took."""
    from apps.conversations.turns.services import turn_submit
    from runs.models import Run
    from tenancy.scope import tenant_scope

    tenant, pks = conversations[0][0], []
    began = time.time()
    with tenant_scope(tenant.pk):
        for _, actor, conversation in conversations:
            turn = turn_submit(
                tenant=tenant,
                actor=actor,
                conversation=conversation,
                text="When does the notice period begin?",
                client_id=uuid.uuid4(),
            )
            pks.append(turn.run_id)
        submitted = time.time()
        runs = Run.objects.filter(pk__in=pks)
        while runs.filter(status__in=("queued", "running")).exists():
            time.sleep(0.25)
        ended = list(runs)
    assert {run.status for run in ended} == {"completed"}, [run.error_message for run in ended]
    lengths = [(run.finished_at - run.created_at).total_seconds() for run in ended]
    last = max(run.finished_at.timestamp() for run in ended)
    return lengths, last - began, submitted - began


def memory(worker: psutil.Process) -> dict[str, float]:
    """Return the worker's memory over all its processes in megabytes: PSS counts shared pages once."""
    own = [worker, *worker.children(recursive=True)]
    infos = [process.memory_full_info() for process in own]
    return {
        "processes": len(own),
        "pss": round(sum(info.pss for info in infos) / 1e6, 1),
        "rss": round(sum(info.rss for info in infos) / 1e6, 1),
    }


def cpu_s(worker: psutil.Process) -> float:
    """Return the CPU seconds the worker's processes have used."""
    own = [worker, *worker.children(recursive=True)]
    return sum(sum(process.cpu_times()[:2]) for process in own)


if __name__ == "__main__":
    main()
