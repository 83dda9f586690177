"""Does a page answer while every route that streams or waits is open fifty times?

One route after another (the table of tests/web/waiting.py), against a web server as an operator runs it, with its real
pool of database connections and nobody who works: what is waited for does not come. While the fifty wait, a page of the
portal is asked for again and again, one at a time. The first of these requests may share the processors with the end of
the fifty openings, as it would in life, and counts.

Run: python benchmarks/waiting_routes.py [--pages 10] [--route NAME]. Makes a database of its own on the server of
DATABASE_URL, or on an embedded one. Bar (a quiet machine of two cores): every page answers 200, within 1 s.
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
import tempfile
import time
from pathlib import Path

from _common import write_result
from _stack import database, load


def main() -> None:
    """Measure and write results/waiting_routes.json."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pages", type=int, default=10)
    parser.add_argument("--route", default="")
    args = parser.parse_args()
    os.environ["DJANGO_SETTINGS_MODULE"] = "tests.web.waiting_server"
    before = load()
    with database():
        rows = measured(args.pages, args.route)
    head = f"{'route':34} {'open':>4} {'opened in':>10} {'page p50':>9} {'slowest':>9}  statuses"
    print(head)
    for row in rows:
        print(
            f"{row['route']:34} {row['open']:4} {row['opened_s']:8.2f} s {row['p50_ms']:6.0f} ms {row['slowest_ms']:6.0f} ms  "
            f"{row['statuses']} {row['problem']}"
        )
    passed = all(row["statuses"] == [200] and row["slowest_ms"] < 1000 for row in rows)
    result = {
        "routes": rows,
        "slowest_ms": max(row["slowest_ms"] for row in rows),
        "passed": passed,
        "load_before": before,
        "load_after": load(),
    }
    print(f"slowest page {result['slowest_ms']:.0f} ms; passed: {passed}")
    if not args.route:
        print(write_result("waiting_routes", result))
    sys.exit(0 if passed else 1)


def measured(pages: int, chosen: str) -> list[dict]:
    """Open each route, ask for pages meanwhile, and return a row of each."""
    import httpx2

    from tests.servers import Stack
    from tests.web.waiting import MANY, ROUTES, gate_environment, opened, world_made

    rows = []
    with tempfile.TemporaryDirectory(prefix="groundwork-logs-") as logs, world_made() as world:
        stack = Stack(
            Path(logs),
            DJANGO_SETTINGS_MODULE="tests.web.waiting_server",
            DATABASE_URL=os.environ["DATABASE_URL"],
            **gate_environment(world.gate.url),
        )
        try:
            stack.start_web()
            page = f"{stack.url}/t/{world.slug}/collections/"
            with httpx2.Client(headers={"Cookie": world.cookies}, timeout=60) as client:
                client.get(page)
                for route in ROUTES:
                    if chosen not in route.name:
                        continue
                    seconds: list[float] = []
                    statuses: set[int] = set()
                    problem, began, opened_s = "", time.perf_counter(), 0.0
                    try:
                        with opened(route, world, stack.port, MANY):
                            opened_s = time.perf_counter() - began
                            for _ in range(pages):
                                asked = time.perf_counter()
                                statuses.add(client.get(page).status_code)
                                seconds.append(time.perf_counter() - asked)
                    except AssertionError as error:
                        problem = str(error)
                    rows.append(
                        {
                            "route": route.name,
                            "open": MANY,
                            "opened_s": round(opened_s, 2),
                            "p50_ms": round(1000 * statistics.median(seconds or [99]), 1),
                            "slowest_ms": round(1000 * max(seconds, default=99), 1),
                            "statuses": sorted(statuses),
                            "problem": problem,
                        }
                    )
                    print(f"{route.name}: {time.perf_counter() - began:.1f} s", file=sys.stderr)
        finally:
            stack.stop()
            said = (Path(logs) / "web.log").read_text(errors="replace")
            print(
                "\n".join(line for line in said.splitlines() if "search_without_vectors" not in line)[-3000:]
            )
    return rows


if __name__ == "__main__":
    main()
