"""Measure code mode: start, warm run, calls, throughput, shared cases, and clean ends of processes.

Run: PYTHONPATH=.:platform python -m benchmarks.sandbox [--exits 200]. Writes benchmarks/results/sandbox.json.
"""

from __future__ import annotations

import argparse
import ast
import asyncio
import json
import logging
import os
import resource
import statistics
import subprocess
import sys
import time
from collections import Counter
from typing import Any

from benchmarks._common import ROOT, write_result
from toolloop.code_mode import CodeLimits, CodeMode
from toolloop.code_mode.default import sandbox_close
from toolloop.code_mode.jail.reading import program_read
from toolloop.tools import tool

PROGRAM = """\
users = [get_user(i) for i in (1, 2, 3)]
names = []
for user in users:
    if user["id"] > 1:
        names.append(user["name"].upper())
total = sum(user["id"] for user in users)
best = max(users, key=lambda user: user["id"])
summary = {"names": names, "total": total}
print(f"{best['name']}: {total}")
summary
"""
EXIT = """\
import asyncio, sys
from toolloop.code_mode import CodeMode
from toolloop.tools import tool

@tool
async def get_user(user_id: int) -> dict:
    "Return a user."
    return {"id": user_id}

result = asyncio.run(CodeMode([get_user]).execute("print(get_user(1)['id'])"))
assert result.output == "1\\n", result
"""


@tool
async def get_user(user_id: int) -> dict[str, Any]:
    """Return a user."""
    return {"id": user_id, "name": f"user{user_id}"}


def spread(values: list[float]) -> dict[str, float]:
    """Return p50, p95 and the least of milliseconds."""
    values = sorted(values)
    return {
        "p50": round(statistics.median(values), 3),
        "p95": round(values[int(len(values) * 0.95)], 3),
        "min": round(values[0], 3),
        "n": len(values),
    }


async def timed(work: Any) -> float:
    """Return the milliseconds an awaitable takes."""
    begun = time.perf_counter()
    result = await work
    assert result.success, result.to_text()
    return (time.perf_counter() - begun) * 1000


async def latency() -> dict[str, Any]:
    """Measure single programs, cold and warm."""
    mode = CodeMode([get_user])
    cold = []
    for _ in range(8):
        cold.append(await timed(mode.execute(PROGRAM)))
        await sandbox_close()
    await mode.execute(PROGRAM)
    warm = [await timed(mode.execute(PROGRAM)) for _ in range(400)]
    lowered = "import heapq, statistics\nfrom operator import itemgetter\n" + PROGRAM.replace(
        'max(users, key=lambda user: user["id"])', "heapq.nlargest(1, users, key=itemgetter('id'))[0]"
    )
    brought = [await timed(mode.execute(lowered)) for _ in range(200)]
    calls = CodeMode([get_user], limits=CodeLimits(tool_calls=50))
    many = "for i in range(50): get_user(i)"
    per_call = [await timed(calls.execute(many)) / 50 for _ in range(20)]
    reads = []
    for _ in range(300):
        begun = time.perf_counter()
        program_read(PROGRAM, ["get_user"])
        reads.append((time.perf_counter() - begun) * 1000)
    return {
        "cold_ms": spread(cold),
        "warm_ms": spread(warm),
        "warm_with_brought_modules_ms": spread(brought),
        "per_tool_call_ms": spread(per_call),
        "read_and_check_ms": spread(reads),
    }


async def throughput() -> dict[str, float]:
    """Return programs a second by concurrency."""
    mode = CodeMode([get_user])
    found = {}
    for width in (1, 2, 8):
        begun, count = time.perf_counter(), 240

        async def lane(programs: int) -> None:
            for _ in range(programs):
                await timed(mode.execute(PROGRAM))

        await asyncio.gather(*(lane(count // width) for _ in range(width)))
        found[str(width)] = round(count / (time.perf_counter() - begun), 1)
    return found


async def shared_cases() -> dict[str, Any]:
    """Run the shared cases, where they are present."""
    from tests.toolloop.code_mode.support import CASES, run_case
    from tests.toolloop.code_mode.test_shared_cases import ENDINGS, Refusing, danger, echo, ping

    if not (CASES / "compat.json").is_file():
        return {"skipped": "the shared cases are absent"}
    compat = json.loads((CASES / "compat.json").read_text())
    passed, refused = [], []
    for case in compat:
        result = await run_case(case["code"], awaited=case["async"])
        fits = result.output == case["stdout"] and result.value == ast.literal_eval(case["value"])
        if result.success and fits:
            passed.append(case["id"])
        elif not result.calls and result.line:
            refused.append(case["id"])
    offered = {"ping": ping, "echo": echo, "danger": danger}
    hostile = json.loads((CASES / "hostile.json").read_text())
    endings: Counter[str] = Counter()
    slowest, lag, contained = 0.0, 0.0, 0

    async def beat() -> None:
        nonlocal lag
        while True:
            begun = time.perf_counter()
            await asyncio.sleep(0.01)
            lag = max(lag, time.perf_counter() - begun - 0.01)

    watch = asyncio.create_task(beat())
    for case in hostile:
        mode = CodeMode([offered[name] for name in case["tools"]], limits=CodeLimits(run_s=2.0, turn_s=2.0))
        begun = time.perf_counter()
        result = await mode.execute(case["code"], journal=Refusing())
        slowest = max(slowest, time.perf_counter() - begun)
        endings[str(result.ending)] += 1
        contained += bool(ENDINGS[str(result.ending)] & set(case["expect"]))
    watch.cancel()
    return {
        "compat": {"cases": len(compat), "passed": len(passed), "refused_before_any_tool": refused},
        "hostile": {
            "cases": len(hostile),
            "contained": contained,
            "endings": dict(endings),
            "slowest_s": round(slowest, 2),
            "event_loop_lag_ms": round(lag * 1000, 1),
            "host_rss_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024,
        },
    }


def exits(count: int) -> dict[str, Any]:
    """Start processes that run one program and end; count how they end."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "platform")}
    codes: Counter[int] = Counter()
    begun = time.perf_counter()
    for _ in range(count):
        done = subprocess.run(
            [sys.executable, "-c", EXIT], env=environment, capture_output=True, timeout=60, check=False
        )
        codes[done.returncode] += 1
    return {
        "processes": count,
        "clean": codes[0],
        "other_codes": {str(code): n for code, n in codes.items() if code},
        "seconds_each": round((time.perf_counter() - begun) / max(1, count), 3),
    }


async def measure() -> dict[str, Any]:
    """Measure everything that needs one process only."""
    found = {"latency": await latency(), "throughput_per_s": await throughput()}
    found.update(await shared_cases())
    await sandbox_close()
    return found


def main() -> None:
    """Measure and write the result."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--exits", type=int, default=200)
    options = parser.parse_args()
    logging.disable(logging.CRITICAL)
    load = os.getloadavg()[0] if hasattr(os, "getloadavg") else None
    result = {"load_at_start": load, **asyncio.run(measure()), "exits": exits(options.exits)}
    print(json.dumps(result, indent=1))
    print(write_result("sandbox", result))


if __name__ == "__main__":
    main()
