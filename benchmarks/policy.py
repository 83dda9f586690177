"""What does the permission check of a run with 500 tools take, in processor time? And making a workspace's own 500 tools?

Prints tables and writes results/policy.json. Reading the tools takes two queries, however many they are (a test counts).
"""

from __future__ import annotations

import os
import statistics
import sys
import time
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import django

sys.path[:0] = [str(Path(__file__).resolve().parents[1] / part) for part in ("platform", "")]
os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings.test")
django.setup()

from apps.tools.connectors.base import FoundTool  # noqa: E402
from apps.tools.models import ToolSource, ToolVersion  # noqa: E402
from apps.tools.policy.engine import Grant, Policy, Subject, policy_compile  # noqa: E402
from apps.tools.toolset.bundles import Bundle  # noqa: E402
from apps.tools.toolset.guard import Guard  # noqa: E402
from apps.tools.toolset.model_calls import run_toolset  # noqa: E402
from apps.tools.toolset.tenant_bundles import bundle_of  # noqa: E402
from benchmarks._common import write_result  # noqa: E402
from runs.models import Run  # noqa: E402
from toolloop.tools import Tool  # noqa: E402

TOOLS, ROUNDS = 500, 30
NOW = datetime.now(UTC)


def _nothing() -> str:
    return ""


def _guard(policy: Policy, *bundles: Bundle) -> Guard:
    return Guard(
        policy,
        Subject("member", 1),
        scope={1: "a"},
        entries={},
        can=lambda right: True,
        clock=lambda: NOW,
        admit=lambda tool: None,
        bundles=bundles,
    )


def _versions(source: ToolSource) -> list[ToolVersion]:
    schema = {
        "type": "object",
        "properties": {
            f"field_{i}": {"type": "string", "description": "What it is about."} for i in range(6)
        },
        "required": ["field_0"],
    }
    wire = {"definition": {"name": "x"}, "method": "get", "path": "/x", "tool": "x"}
    found = [
        FoundTool(f"many_{i}", f"Does number {i} of what can be done. " * 5, schema, wire=wire)
        for i in range(TOOLS)
    ]
    return [
        ToolVersion(
            source=source, tool_name=one.name, number=1, spec=one.to_json(), digest="", state="current"
        )
        for one in found
    ]


def _made() -> dict[str, float]:
    """Measure from the rows of a workspace's own tools to what a model is shown: all checked, and in a catalog."""
    source = ToolSource(pk=1, tenant_id=1, kind="mcp", name="many", url="https://example.org/mcp")
    versions = _versions(source)
    policy = policy_compile([Grant(1, "allow", "group", "many")], now=NOW)
    made, offered, shown = [], [], []
    for _ in range(ROUNDS):
        bundle = bundle_of(source, versions)
        made.append(_cpu(lambda bundle=bundle: list(bundle.tools())))
        guard = _guard(policy, bundle)
        offered.append(_cpu(guard.tools))
        shown.append(_cpu(lambda guard=guard: run_toolset(guard, Run(pk=1, tenant_id=1)).specs()))
    return {
        "tools": TOOLS,
        "make_ms": round(statistics.median(made) * 1000, 3),
        "make_and_offer_ms": round(statistics.median(offered) * 1000, 3),
        "first_request_ms": round(statistics.median(shown) * 1000, 3),
    }


def _cpu(work: Callable[[], object]) -> float:
    begun = time.process_time()
    work()
    return time.process_time() - begun


def main() -> None:
    tools = [
        Tool(
            f"tool_{i}",
            "Does something.",
            {"type": "object", "properties": {}},
            _nothing,
            group=f"g{i % 20}.s{i}",
        )
        for i in range(TOOLS)
    ]
    bundle = Bundle("many", lambda: tools)
    table = []
    for grants in (10, 100, 500):
        given = [
            Grant(
                i,
                ("allow", "allow", "ask", "deny")[i % 4],
                ("tool", "group", "pattern")[i % 3 if i % 50 == 0 else i % 2],
                f"tool_{i}" if i % 2 == 0 else f"many.g{i % 20}",
            )
            for i in range(grants)
        ]
        compiled, offered = [], []
        for _ in range(ROUNDS):
            begun = time.process_time()
            policy = policy_compile(given, now=NOW)
            compiled.append(time.process_time() - begun)
            guard = _guard(policy)
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
    own = _made()
    print(own)
    write_result("policy", {"rows": table, "own_tools": own})


if __name__ == "__main__":
    main()
