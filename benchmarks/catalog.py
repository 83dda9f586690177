"""How long a search in a catalog of 500 tools takes, and what share of all schemas the first request carries.

    python -m benchmarks.catalog [--tools 500]

Bars: a search under 5 ms (median of wall time, p99 of CPU time: other work on the machine must not decide), the first request under 5 % of the schema tokens of all tools. The embedder here costs
nothing, so that the search itself is measured: vectors of 384 numbers, as the platform's local model makes them.
"""

from __future__ import annotations

import argparse
import asyncio
import hashlib
import random
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "platform")]

from benchmarks._common import write_result  # noqa: E402
from toolloop.tools import Tool, tool  # noqa: E402
from toolloop.tools.catalog import Catalog  # noqa: E402
from toolloop.tools.dynamic import DynamicToolset  # noqa: E402
from toolloop.tools.session import ToolSession  # noqa: E402

VERBS = [
    "list",
    "create",
    "update",
    "delete",
    "export",
    "archive",
    "approve",
    "search",
    "assign",
    "summarize",
]
NOUNS = """
    invoices customers tickets contracts shipments employees projects payments reports meetings orders
    products suppliers campaigns documents devices incidents budgets vehicles courses claims leads warehouses
    licences timesheets surveys assets branches quotes subscriptions refunds audits vendors recipes patients
    rooms events policies permits samples sensors stores tasks teams trips users votes wallets zones bids
""".split()
QUERIES = [
    "find unpaid invoices of a customer",
    "delete an old project",
    "export reports",
    "who works in this team",
    "approve a payment above the limit",
    "summarize",
    "archive_devices",
    "book a meeting room",
    "zebra",
    "creating orders",
]


def make_tool(number: int) -> Tool:
    verb, noun = VERBS[number % len(VERBS)], NOUNS[number // len(VERBS) % len(NOUNS)]
    text = {"type": "string", "description": f"Identifier or name that selects the {noun} to {verb}."}
    schema = {
        "type": "object",
        "properties": {
            "selector": text,
            "status": {"type": "string", "enum": ["open", "closed", "all"], "default": "open"},
            "limit": {"type": "integer", "minimum": 1, "maximum": 100, "description": "Most rows to return."},
            "since": {"type": "string", "description": f"Only {noun} changed after this ISO 8601 date."},
        },
        "required": ["selector"],
        "additionalProperties": False,
    }
    suffix = "" if number < len(VERBS) * len(NOUNS) else f"_{number}"
    return Tool(
        f"{verb}_{noun}{suffix}",
        f"{verb.capitalize()} {noun} of the workspace. Use it when somebody asks to {verb} one or more {noun}.",
        schema,
        lambda **_: "",
        category=noun,
        group=f"{noun}.{verb}",
        tags=("read" if verb in ("list", "search", "export") else "write",),
    )


def embed(texts: list[str]) -> list[list[float]]:
    vectors = []
    for text in texts:
        seed = random.Random(hashlib.sha256(text.encode()).digest())
        vectors.append([seed.gauss(0, 1) for _ in range(384)])
    return vectors


def timed(work: Callable[[str], object], rounds: int) -> dict[str, float]:
    wall, cpu = [], []
    for number in range(rounds):
        query = QUERIES[number % len(QUERIES)]
        begun, burnt = time.perf_counter(), time.process_time()
        work(query)
        wall.append((time.perf_counter() - begun) * 1000)
        cpu.append((time.process_time() - burnt) * 1000)
    wall.sort()
    cpu.sort()
    at = int(rounds * 0.99)
    return {"p50_ms": statistics.median(wall), "p99_ms": wall[at], "p99_cpu_ms": cpu[at]}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tools", type=int, default=500)
    size = parser.parse_args().tools

    @tool
    def answer_style(tone: str) -> str:
        """Set the tone of the answer.

        Args:
            tone: one word.
        """
        return tone

    catalog = Catalog((make_tool(n) for n in range(size)), embedder=embed, min_similarity=-1.0)
    begun = time.perf_counter()
    catalog.search("warm")
    index_ms = (time.perf_counter() - begun) * 1000
    words = timed(catalog.search, 1000)
    with asyncio.Runner() as runner:
        for query in QUERIES:
            runner.run(catalog.find(query))
        meaning = timed(lambda query: runner.run(catalog.find(query)), 1000)
    report = DynamicToolset(catalog, ToolSession(), [answer_style]).token_report()
    share = report["now"] / report["catalog"]

    print(f"{size} tools")
    print(f"build the word index          {index_ms:8.2f} ms, once")
    for label, found in (("words", words), ("words and meaning", meaning)):
        print(
            f"search by {label:20}{found['p50_ms']:8.3f} ms p50 {found['p99_ms']:8.3f} ms p99"
            f" {found['p99_cpu_ms']:8.3f} ms p99 of CPU"
        )
    print(f"schema tokens, first request  {report['now']:8d} of {report['catalog']} ({share:.1%})")
    met = (
        max(words["p99_cpu_ms"], meaning["p99_cpu_ms"], words["p50_ms"], meaning["p50_ms"]) < 5
        and share < 0.05
    )
    print("bars met" if met else "BARS NOT MET")
    write_result(
        "catalog",
        {
            "tools": size,
            "index_ms": index_ms,
            "words": words,
            "meaning": meaning,
            "tokens": report,
            "met": met,
        },
    )


if __name__ == "__main__":
    main()
