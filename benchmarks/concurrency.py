"""A hundred turns at once: how close does the product come to what the model's own time allows, and what do they cost?

Every turn is five model calls of one second each (four searches, then the answer), so a turn takes five seconds at best,
and so do a hundred side by side. As many people ask at the same moment over REST, from four client processes, and each
reads the stream of the answer. The first round finds web server and worker as they start; the median of the warm rounds
after it counts. Processor time is told apart: web, worker and database are the product's; clients and the fake model use
the same cores.

Run: python benchmarks/concurrency.py [--turns 100] [--rounds 3]. Makes a database of its own on the server of
DATABASE_URL, or on an embedded one. Bars (a quiet machine of two cores, 100 turns): 95 % of the turns take at most 5.25 s
of their own time, and the product uses at most 6 s of processor time.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import time
import uuid
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import psutil
from _common import write_result
from _stack import database, load, percentile, product
from turn_cost import Meter, cpu_ms

MODEL = "fake-search4-varied-think1000-words20"
CALLS, CALL_S, CLIENTS = 5, 1.0, 4
TEXT = "The notice period is thirty days. It begins on the first day of the month that follows.\n\n"
QUESTION = "When does the notice period begin?"
P95_S, CPU_S = 5.25, 6.0


def main() -> None:
    """Measure and write results/concurrency.json, or concurrency_1000.json for a thousand turns."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--turns", type=int, default=100)
    parser.add_argument("--rounds", type=int, default=3)
    args = parser.parse_args()
    before = load()
    with database() as url, product(MODEL, GROUNDWORK_WORKERS="2") as (stack, _):
        assert stack.web is not None
        assert stack.worker is not None
        meter, worker = Meter(url, stack.web.pid, stack.worker.pid), psutil.Process(stack.worker.pid)
        conversations = prepare(args.turns)
        keys = [key_of(tenant, actor) for tenant, actor, _ in conversations]
        at_rest, rounds = memory(worker), []
        for _ in range(args.rounds + 1):
            rounds.append(asked(stack.port, meter, conversations, keys))
            print({name: round(value, 2) for name, value in rounds[-1].items()}, flush=True)
            conversations = [(tenant, actor, talk(tenant, actor)) for tenant, actor, _ in conversations]
        after = memory(worker)
    warm = {name: statistics.median(one[name] for one in rounds[1:]) for name in rounds[0]}
    result: dict[str, Any] = {
        "turns": args.turns,
        "model_calls_a_turn": CALLS,
        "model_call_s": CALL_S,
        "worker_processes": 2,
        "clients": CLIENTS,
        "rounds": args.rounds,
        "ideal_s": CALLS * CALL_S,
        **{name: round(value, 2) for name, value in warm.items()},
        "worker_cpu_ms_a_step": round(1000 * warm["worker_cpu_s"] / (args.turns * CALLS), 1),
        "submit_cpu_ms_a_turn": round(1000 * warm["web_cpu_s"] / args.turns, 1),
        "cold": {name: round(value, 2) for name, value in rounds[0].items()},
        "worker_memory_at_rest_mb": at_rest,
        "worker_memory_after_mb": after,
        "load_before": before,
        "load_after": load(),
    }
    for name, value in result.items():
        print(f"{name:40} {value}")
    print(write_result("concurrency" if args.turns == 100 else f"concurrency_{args.turns}", result))
    sys.exit(0 if warm["turn_p95_s"] <= P95_S and warm["product_cpu_s"] <= CPU_S * args.turns / 100 else 1)


def asked(port: int, meter: Meter, conversations: Sequence[Any], keys: Sequence[str]) -> dict[str, float]:
    """Have everybody ask at once and read the answer; return what the round took, in seconds."""
    from runs.models import Run
    from tenancy.scope import tenant_scope

    people = [
        {"key": key, "conversation": conversation.pk}
        for key, (_, _, conversation) in zip(keys, conversations, strict=True)
    ]
    clients = []
    for number in range(CLIENTS):
        command = [sys.executable, str(Path(__file__).with_name("_turn_clients.py"))]
        client = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        assert client.stdin is not None
        assert client.stdout is not None
        client.stdin.write(
            json.dumps({"port": port, "text": QUESTION, "people": people[number::CLIENTS]}) + "\n"
        )
        client.stdin.flush()
        client.stdout.readline()
        clients.append(client)
    told: dict[str, Any] = {"clients_cpu_s": 0.0}
    seen: list[dict[str, Any]] = []
    model = _model()

    def work() -> None:
        for client in clients:
            assert client.stdin is not None
            client.stdin.write("\n")
            client.stdin.flush()
        for client in clients:
            out, _ = client.communicate()
            if client.returncode:
                raise SystemExit("a client failed")
            found = json.loads(out)
            seen.extend(found["people"])
            told["clients_cpu_s"] += found["cpu_s"]

    before = cpu_ms(model)
    cost = meter.during(work, 1)
    told["model_cpu_s"] = (cpu_ms(model) - before) / 1000
    with tenant_scope(conversations[0][0].pk):
        runs = list(Run.objects.filter(pk__in=[one["run"] for one in seen]))
    assert {run.status for run in runs} == {"completed"}, [run.error_message for run in runs]
    own = [(run.finished_at - run.created_at).total_seconds() for run in runs]
    ends = [one["end_s"] for one in seen]
    return {
        "turn_p50_s": percentile(own, 0.5),
        "turn_p95_s": percentile(own, 0.95),
        "reader_p50_s": percentile(ends, 0.5),
        "reader_p95_s": percentile(ends, 0.95),
        "submit_p50_s": percentile([one["submit_s"] for one in seen], 0.5),
        "submit_p95_s": percentile([one["submit_s"] for one in seen], 0.95),
        "wall_s": max(ends),
        "throughput_of_ideal": CALLS * CALL_S / max(ends),
        **{f"{name}_cpu_s": cost[f"{name}_cpu_ms"] / 1000 for name in ("web", "worker", "database")},
        "product_cpu_s": cost["cpu_ms"] / 1000,
        **told,
    }


def _model() -> psutil.Process:
    """Return the process of the fake model."""
    for child in psutil.Process(os.getpid()).children():
        if "tests.fake_provider" in child.cmdline():
            return child
    raise RuntimeError("the fake model doesn't run")


def key_of(tenant: Any, actor: Any) -> str:
    """Return a person's own API key."""
    from tenancy.permissions import KEY_SCOPES, ROLE_ACTIONS
    from tenancy.scope import tenant_scope
    from tenancy.services import api_key_create

    scopes = sorted(KEY_SCOPES & ROLE_ACTIONS["owner"])
    with tenant_scope(tenant.pk):
        return api_key_create(tenant=tenant, actor=actor, name="benchmark", scopes=scopes)[1]


def talk(tenant: Any, actor: Any) -> Any:
    """Return a new conversation of a person."""
    from apps.conversations.turns.conversations import conversation_create
    from tenancy.scope import tenant_scope

    with tenant_scope(tenant.pk):
        return conversation_create(tenant=tenant, actor=actor, model=f"compatible/{MODEL}")


def prepare(count: int) -> list[tuple]:
    """Make one document, and as many people as turns, each with a conversation."""
    from apps.collections.collection.services import collection_create
    from apps.collections.documents.services import document_upload
    from apps.collections.models import Document
    from tenancy.models import Role
    from tenancy.scope import tenant_scope
    from tests.factories import actor_of, make_member, make_tenant

    tenant = make_tenant("benchmark")
    people = [actor_of(make_member(tenant, Role.OWNER)) for _ in range(count)]  # who may have keys
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
    return [(tenant, actor, talk(tenant, actor)) for actor in people]


def run(conversations: Sequence[Any]) -> None:
    """Ask in each through the service, and wait until all have their answers."""
    from apps.conversations.turns.services import turn_submit
    from runs.models import Run
    from tenancy.scope import tenant_scope

    tenant = conversations[0][0]
    with tenant_scope(tenant.pk):
        pks = [
            turn_submit(
                tenant=tenant, actor=actor, conversation=conversation, text=QUESTION, client_id=uuid.uuid4()
            ).run_id
            for _, actor, conversation in conversations
        ]
        runs = Run.objects.filter(pk__in=pks)
        while runs.filter(status__in=("queued", "running")).exists():
            time.sleep(0.25)
        assert {run.status for run in runs} == {"completed"}, [run.error_message for run in runs]


def memory(worker: psutil.Process) -> dict[str, float]:
    """Return the worker's memory over all its processes in megabytes: PSS counts shared pages once."""
    own = [worker, *worker.children(recursive=True)]
    infos = [process.memory_full_info() for process in own]
    return {
        "processes": len(own),
        "pss": round(sum(info.pss for info in infos) / 1e6, 1),
        "rss": round(sum(info.rss for info in infos) / 1e6, 1),
    }


if __name__ == "__main__":
    main()
