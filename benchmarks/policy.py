"""What does the permission check of a run with 500 tools take, in processor time? And making a workspace's own 500 tools?

Prints tables and writes results/policy.json. Reading the tools takes two queries, however many they are (a test counts).
The vectors of the workspace's tools are there, as they are once a job has made them.

Run: python -m benchmarks.policy. Starts an embedded database of its own.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from benchmarks._common import write_result
from benchmarks._stack import database

if TYPE_CHECKING:
    from apps.tools.models import ToolSource, ToolVersion
    from apps.tools.policy.engine import Policy
    from apps.tools.toolset.bundles import Bundle
    from apps.tools.toolset.guard import Guard
    from tenancy.models import Tenant
    from toolloop.tools import Tool

TOOLS, ROUNDS = 500, 30
NOW = datetime.now(UTC)


def _nothing() -> str:
    return ""


def _guard(policy: Policy, *bundles: Bundle) -> Guard:
    from apps.tools.policy.engine import Subject
    from apps.tools.toolset.guard import Guard, Rights

    rights = Rights(policy, Subject("member", 1), {}, lambda right: True, lambda tool: None)
    return Guard(rights, again=lambda tool: rights, scope={1: "a"}, clock=lambda: NOW, bundles=bundles)


def _versions(source: ToolSource) -> list[ToolVersion]:
    from apps.tools.connectors.base import FoundTool
    from apps.tools.models import ToolVersion

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


def _vectors_store(tenant: Tenant, tools: list[Tool]) -> None:
    import numpy as np

    from apps.collections.index.embedding import embedder_local
    from apps.tools.toolset.vectors import text_digest, tool_text, vectors_store

    embedder = embedder_local(tenant=tenant)
    digests = [text_digest(embedder, tool_text(tool)) for tool in tools]
    vectors_store(tenant, digests, np.random.default_rng(7).normal(size=(len(tools), embedder.space.dims)))


def _made() -> dict[str, float]:
    """Measure from the rows of a workspace's own tools to what a model is shown: all checked, and in a catalog."""
    from apps.tools.models import ToolSource
    from apps.tools.policy.engine import Grant, policy_compile
    from apps.tools.toolset.model_calls import run_toolset
    from apps.tools.toolset.tenant_bundles import bundle_of
    from runs.models import Run
    from tenancy.scope import tenant_scope
    from tests.factories import make_tenant

    tenant = make_tenant("policy")
    source = ToolSource(pk=1, tenant_id=tenant.pk, kind="mcp", name="many", url="https://example.org/mcp")
    versions = _versions(source)
    policy = policy_compile([Grant(1, "allow", "group", "many")], now=NOW)
    run = Run(pk=1, tenant=tenant)
    made, offered, shown = [], [], []
    with tenant_scope(tenant.pk):
        _vectors_store(tenant, _guard(policy, bundle_of(source, versions)).tools())
        for _ in range(ROUNDS):
            bundle = bundle_of(source, versions)
            made.append(_cpu(lambda bundle=bundle: list(bundle.tools())))
            guard = _guard(policy, bundle)
            offered.append(_cpu(guard.tools))
            shown.append(_cpu(lambda guard=guard: run_toolset(guard, run).specs()))
    return {
        "tools": TOOLS,
        "make_ms": round(statistics.median(made) * 1000, 3),
        "make_and_offer_ms": round(statistics.median(offered) * 1000, 3),
        "first_request_ms": round(statistics.median(shown) * 1000, 3),
    }


def _checked() -> list[dict[str, float]]:
    """Measure compiling 10, 100 and 500 grants, and deciding about each tool by them."""
    from apps.tools.policy.engine import Grant, policy_compile
    from apps.tools.toolset.bundles import Bundle
    from toolloop.tools import Tool

    empty: dict[str, Any] = {"type": "object", "properties": {}}
    tools = [
        Tool(f"tool_{i}", "Does something.", empty, _nothing, group=f"g{i % 20}.s{i}") for i in range(TOOLS)
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
        compiled, decided = [], []
        for _ in range(ROUNDS):
            compiled.append(_cpu(lambda given=given: policy_compile(given, now=NOW)))
            guard = _guard(policy_compile(given, now=NOW))
            decided.append(_cpu(lambda guard=guard: [guard.decision(tool, bundle) for tool in tools]))
        table.append(
            {
                "tools": TOOLS,
                "grants": grants,
                "compile_ms": round(statistics.median(compiled) * 1000, 3),
                "check_ms": round(statistics.median(decided) * 1000, 3),
            }
        )
        print(table[-1])
    return table


def _cpu(work: Callable[[], object]) -> float:
    begun = time.process_time()
    work()
    return time.process_time() - begun


def main() -> None:
    """Measure and write results/policy.json."""
    with database():
        table = _checked()
        own = _made()
        print(own)
    write_result("policy", {"rows": table, "own_tools": own})


if __name__ == "__main__":
    main()
