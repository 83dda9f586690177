"""Many open answers: how long does a word take from the model to the reader, and what does a stream cost that says nothing?

Load: 200 open conversations of one web server and one worker process, whose answers together say 20 words a second; the
model writes the time into each word, and the latency is the time at which the portal's stream has brought it, minus that:
network, recorder (which gathers words for 80 ms), database, notification, rendering. Idle: 1,000 streams of answers that
wait; memory and processor time of the web process, before and with them. Stop: from the request to stop until the model's
server saw its connection closed.

Run: python benchmarks/streams.py [--open 200] [--idle 1000] [--seconds 60]. Makes a database of its own on the server of
DATABASE_URL, or on an embedded one. Bars (a quiet machine of two cores): latency p95 under 150 ms; 1,000 idle streams under 150 MB
more and 5 % of a processor; stop under 1 s.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import os
import resource
import sys
import time
import uuid

import psutil
from _common import write_result
from _portal import CLOCK, Portal, person
from _stack import database, load, percentile, product

RATE = 20.0  # words a second, of all answers together
OPENING_S = 0.05  # between two openings of a stream: signing in is measured elsewhere
LONG = 1_000  # words of an answer: none ends while it is watched


def main() -> None:
    """Measure and write results/streams.json."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--open", type=int, default=200)
    parser.add_argument("--idle", type=int, default=1_000)
    parser.add_argument("--seconds", type=float, default=60)
    args = parser.parse_args()
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    before = load()
    gap_ms = round(1000 * args.open / RATE)
    model = f"fake-clock-words{LONG}-gap{gap_ms}"
    # One worker of two processes; as many slots as it takes for every answer to have one.
    slots = str(-(-args.open // 2) + 8)
    with database(), product(model, GROUNDWORK_WORKERS="2", GROUNDWORK_LOOP_SLOTS=slots) as (stack, _):
        tenant, actor, user = person("streams")
        portal = Portal(stack.port, tenant.slug, user)
        opened = submit(tenant, actor, f"compatible/{model}", args.open)
        latencies = asyncio.run(watch(portal, opened, args.seconds, gap_ms / 1000))
        stop_s = stop(tenant, actor, opened)
        assert stack.worker is not None
        assert stack.web is not None
        stack.worker.terminate()
        stack.worker.wait(30)
        waiting = submit(tenant, actor, f"compatible/{model}", 100)
        idle = asyncio.run(idle_cost(portal, waiting, args.idle, psutil.Process(stack.web.pid)))
    result = {
        "open_conversations": args.open,
        "updates_a_second": round(len(latencies) / args.seconds, 1),
        "updates_measured": len(latencies),
        "latency_p50_ms": round(1000 * percentile(latencies, 0.5), 1),
        "latency_p95_ms": round(1000 * percentile(latencies, 0.95), 1),
        "latency_p99_ms": round(1000 * percentile(latencies, 0.99), 1),
        "stop_to_closed_provider_s": stop_s,
        **idle,
        "load_before": before,
        "load_after": load(),
    }
    for name, value in result.items():
        print(f"{name:32} {value}")
    print(write_result("streams", result))
    passed = (
        result["latency_p95_ms"] < 150
        and result["idle_memory_mb"] < 150
        and result["idle_cpu_percent"] < 5
        and stop_s < 1
    )
    sys.exit(0 if passed else 1)


def submit(tenant, actor, model: str, count: int) -> list[tuple[int, int]]:
    """Ask in as many new conversations; returns (conversation, run) of each."""
    from apps.conversations.turns.conversations import conversation_create
    from apps.conversations.turns.services import turn_submit
    from tenancy.scope import tenant_scope

    made = []
    with tenant_scope(tenant.pk):
        for _ in range(count):
            conversation = conversation_create(tenant=tenant, actor=actor, model=model)
            turn = turn_submit(
                tenant=tenant,
                actor=actor,
                conversation=conversation,
                text="Tell me the time.",
                client_id=uuid.uuid4(),
            )
            made.append((conversation.pk, turn.run_id))
    return made


async def watch(portal: Portal, opened: list[tuple[int, int]], seconds: float, gap_s: float) -> list[float]:
    """Follow all answers; return the latency of each word that came in the measured time, in seconds."""
    latencies: list[float] = []
    speaking: set[int] = set()
    measuring = asyncio.Event()

    async def follow(conversation: int, run: int) -> None:
        newest = 0.0
        async for at, piece in portal.stream(conversation, run):
            said = max((float(word) for word in CLOCK.findall(piece)), default=0.0)
            if said <= newest:
                continue
            newest = said
            speaking.add(run)
            if measuring.is_set():
                latencies.append(at - said)

    tasks = []
    for one in opened:
        tasks.append(asyncio.create_task(follow(*one)))
        await asyncio.sleep(OPENING_S)
    deadline = time.monotonic() + 120
    while len(speaking) < len(opened):
        if time.monotonic() > deadline:
            raise RuntimeError(f"{len(speaking)} of {len(opened)} answers have begun")
        for task in tasks:
            if task.done():
                task.result()
        await asyncio.sleep(0.2)
    await asyncio.sleep(gap_s)  # the rush of first words is over
    measuring.set()
    await asyncio.sleep(seconds)
    await ended(tasks)
    return latencies


def stop(tenant, actor, opened: list[tuple[int, int]]) -> float:
    """Stop one answer while the others go on; return the seconds until its model's connection was closed."""
    import httpx2

    from runs.models import Run
    from runs.services import run_stop
    from tenancy.scope import tenant_scope

    log = os.environ["GROUNDWORK_COMPATIBLE_BASE_URL"].removesuffix("/v1") + "/log"

    def closed() -> int:
        return sum(bool(entry["closed_at"]) for entry in httpx2.get(log).json())

    already = closed()
    with tenant_scope(tenant.pk):
        run = Run.objects.get(pk=opened[0][1])
        began = time.time()
        run_stop(tenant=tenant, actor=actor, run=run)
        while closed() == already:
            if time.time() - began > 60:
                raise RuntimeError("the model's stream was not closed")
            time.sleep(0.02)
        seconds = max(e["closed_at"] for e in httpx2.get(log).json() if e["closed_at"]) - began
        for _, pk in opened[1:]:
            run_stop(tenant=tenant, actor=actor, run=Run.objects.get(pk=pk))
        while Run.objects.filter(status="running").exists():
            time.sleep(0.1)
    return round(seconds, 3)


async def idle_cost(
    portal: Portal, waiting: list[tuple[int, int]], count: int, web: psutil.Process
) -> dict[str, float]:
    """Open streams of answers that nobody works on; return what they cost the web process."""
    rss_before = web.memory_info().rss / 1e6
    began: set[int] = set()
    all_began = asyncio.Event()

    async def follow(number: int) -> None:
        async for _ in portal.stream(*waiting[number % len(waiting)]):
            began.add(number)
            if len(began) == count:
                all_began.set()

    tasks = []
    for number in range(count):
        tasks.append(asyncio.create_task(follow(number)))
        await asyncio.sleep(OPENING_S)
    async with asyncio.timeout(120):
        await all_began.wait()
    await asyncio.sleep(5)
    used, at = sum(web.cpu_times()[:2]), time.monotonic()
    await asyncio.sleep(35)  # two heartbeats of each
    percent = 100 * (sum(web.cpu_times()[:2]) - used) / (time.monotonic() - at)
    rss = web.memory_info().rss / 1e6
    await ended(tasks)
    return {
        "idle_streams": count,
        "idle_memory_mb": round(rss - rss_before, 1),
        "web_memory_before_mb": round(rss_before, 1),
        "web_memory_with_mb": round(rss, 1),
        "idle_cpu_percent": round(percent, 2),
    }


async def ended(tasks: list[asyncio.Task]) -> None:
    """Close all streams."""
    for task in tasks:
        task.cancel()
    for task in tasks:
        with contextlib.suppress(asyncio.CancelledError):
            await task


if __name__ == "__main__":
    main()
