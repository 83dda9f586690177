"""What does the permission check of a run with 500 tools take, in processor time? Prints a table, writes results/policy.json."""

from __future__ import annotations

import os
import statistics
import sys
import time
from datetime import UTC, datetime
from pathlib import Path

import django

sys.path[:0] = [str(Path(__file__).resolve().parents[1] / part) for part in ("platform", "")]
os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings.test")
django.setup()

from apps.tools.bundles import Bundle  # noqa: E402
from apps.tools.guard import Guard  # noqa: E402
from apps.tools.policy import Grant, Subject, policy_compile  # noqa: E402
from benchmarks._common import write_result  # noqa: E402
from toolloop.tools import Tool  # noqa: E402

TOOLS, ROUNDS = 500, 30
NOW = datetime.now(UTC)


def _nothing() -> str:
    return ""


def main() -> None:
    tools = [
        Tool(f"tool_{i}", "Does something.", {"type": "object", "properties": {}}, _nothing, group=f"g{i % 20}.s{i}")
        for i in range(TOOLS)
    ]  # fmt: skip
    bundle = Bundle("many", lambda: tools)
    table = []
    for grants in (10, 100, 500):
        given = [
            Grant(i, ("allow", "allow", "ask", "deny")[i % 4], ("tool", "group", "pattern")[i % 3 if i % 50 == 0 else i % 2],
                  f"tool_{i}" if i % 2 == 0 else f"many.g{i % 20}")
            for i in range(grants)
        ]  # fmt: skip
        compiled, offered = [], []
        for _ in range(ROUNDS):
            begun = time.process_time()
            policy = policy_compile(given, now=NOW)
            compiled.append(time.process_time() - begun)
            guard = Guard(policy, Subject("member", 1), scope={1: "a"}, entries={}, may_run=True, clock=lambda: NOW)  # fmt: skip
            begun = time.process_time()
            for tool in tools:
                guard.decision(tool, bundle)
            offered.append(time.process_time() - begun)
        table.append(
            {
                "tools": TOOLS,
                "grants": grants,
                "compile_ms": round(statistics.median(compiled) * 1000, 3),
                "check_ms": round(statistics.median(offered) * 1000, 3),
            }
        )
        print(table[-1])
    write_result("policy", {"rows": table})


if __name__ == "__main__":
    main()
