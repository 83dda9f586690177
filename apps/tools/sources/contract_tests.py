"""Contract tests: a sample call of a tool, and what its result must look like."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from django.db import transaction
from django.utils import timezone
from django.utils.translation import gettext as _

from apps.tools.connectors.base import IN_DB
from apps.tools.connectors.making import source_tools
from apps.tools.connectors.mcp_sessions import sessions_close
from apps.tools.models import ContractTest, ToolVersion
from apps.tools.sources.services import invalid, json_checked
from basics.errors import DomainError, Missing
from jobs.blocking import BlockingThreads
from tenancy.actors import Actor
from tenancy.database.waiting import loop_run
from tenancy.models import Tenant
from tenancy.scope import tenant_scope
from tenancy.services import audit_record
from toolloop.mcp.schemas import SchemaRefused, schema_check
from toolloop.messages import ToolCall, ToolResult
from toolloop.storable import text_storable
from toolloop.tools import Tool, ToolContext, Toolset
from toolloop.tools.runtime import CheckedCall, call_prepare, call_run
from toolloop.tools.validation import problems_find

MAX_TESTS = 20
"""Of one tool."""
TIMEOUT_S = 30.0
MAX_PARALLEL = 8
_MAX_PROBLEM = 1_000


@dataclass(frozen=True, slots=True)
class TestRun:
    """How a test ended with one version; ``problem`` is "" when it passed."""

    test: ContractTest
    version: ToolVersion
    problem: str


@transaction.atomic
def contract_test_set(
    *,
    tenant: Tenant,
    actor: Actor,
    tool_name: str,
    name: str,
    arguments: Mapping[str, Any],
    expected: Mapping[str, Any] | None = None,
    source: int | None = None,
) -> ContractTest:
    """Attach a test to a tool, or replace the one of that name.

    Args:
        tool_name: of a tool that has a version here.
        arguments: of the sample call.
        expected: JSON Schema of the result: of the value where it is JSON, else of its text. Empty: the call must succeed.
        source: the tool must be of this one.

    Raises:
        Denied, Missing: without the right ``tool.manage``; there is no such tool.
        Invalid: a field cannot be used.
    """
    actor.require("tool.manage")
    name = " ".join(name.split())
    if not 1 <= len(name) <= 80:
        raise invalid("name", _("A test needs a name of 1 to 80 characters."))
    if not isinstance(arguments, Mapping):
        raise invalid("arguments", _("Give the call's arguments as a JSON object."))
    schema = json_checked("expected", expected or {})
    try:
        schema_check(schema)
    except SchemaRefused as error:
        raise invalid("expected", _("This cannot be used: %(error)s.") % {"error": error}) from error
    with tenant_scope(tenant.pk):
        versions = ToolVersion.objects.filter(tenant=tenant, tool_name=tool_name)
        found = versions.order_by("-number").values_list("source_id", flat=True).first()
        if found is None or source not in (None, found):
            raise Missing("tool")
        own = ContractTest.objects.select_for_update(of=("self",)).filter(tenant=tenant, tool_name=tool_name)
        if not own.filter(name=name).exists() and own.count() >= MAX_TESTS:
            raise invalid(
                "name", _("This tool already has %(most)s tests. Remove one first.") % {"most": MAX_TESTS}
            )
        row: ContractTest
        row, is_new = own.update_or_create(
            tenant=tenant,
            tool_name=tool_name,
            name=name,
            defaults={
                "source_id": found,
                "arguments": json_checked("arguments", arguments),
                "expected": schema,
                "last_outcome": "",
                "last_problem": "",
                "last_version": None,
                "last_run_at": None,
            },
        )
        row.refresh_from_db()
        audit_record(
            tenant=tenant, actor=actor, action="contract_test.set", object=row, data={"is_new": is_new}
        )
    return row


@transaction.atomic
def contract_test_delete(*, tenant: Tenant, actor: Actor, pk: int, source: int | None = None) -> None:
    """Remove a test.

    Args:
        source: it must be of this one.

    Raises:
        Denied, Missing: without the right ``tool.manage``; there is none.
    """
    actor.require("tool.manage")
    with tenant_scope(tenant.pk):
        row = _test(tenant, pk, source)
        audit_record(tenant=tenant, actor=actor, action="contract_test.delete", object=row)
        row.delete()


def contract_test_run(
    *, tenant: Tenant, actor: Actor, pk: int, version: int | None = None, source: int | None = None
) -> ContractTest:
    """Run a test with a version of its tool; the row says how it ended. A real call: call it outside of transactions.

    Args:
        version: id of the version; None takes the one that waits, else the current one.
        source: the test must be of this one.

    Raises:
        Denied, Missing: without the right ``tool.manage``; there is no such test, or no such version of its tool.
    """
    actor.require("tool.manage")
    with tenant_scope(tenant.pk):
        test = _test(tenant, pk, source)
        versions = ToolVersion.objects.select_related("source").filter(
            tenant=tenant, tool_name=test.tool_name
        )
        if version is not None:
            chosen = versions.filter(pk=version).first()
        else:
            # "waiting" comes after "current" in the alphabet.
            chosen = versions.filter(state__in=["waiting", "current"]).order_by("-state").first()
        if chosen is None:
            raise Missing("version")
        ran = tests_execute(tenant=tenant, actor=actor, pairs=[(test, chosen)])
        tests_record(tenant=tenant, runs=ran)
        test.refresh_from_db()
    return test


def tests_execute(
    *, tenant: Tenant, actor: Actor, pairs: Sequence[tuple[ContractTest, ToolVersion]]
) -> list[TestRun]:
    """Make the calls of tests, some side by side, and compare the results; call it outside of transactions.

    The calls are the manager's own and not held against grants: a version can be tested before anybody may call it. Each
    is written to the audit trail before it is made.
    """
    if not pairs:
        return []
    with transaction.atomic(), tenant_scope(tenant.pk):
        for test, version in pairs:
            audit_record(
                tenant=tenant,
                actor=actor,
                action="contract_test.run",
                object=test,
                data={"tool": test.tool_name, "version": version.number},
            )
    threads = BlockingThreads()

    async def in_db(function: Callable[..., Any], *args: Any) -> Any:
        return await threads.run(lambda: function(*args))

    try:
        with tenant_scope(tenant.pk):
            problems = loop_run(_all(pairs, in_db, threads))
    finally:
        threads.close()
    return [TestRun(test, version, problem) for (test, version), problem in zip(pairs, problems, strict=True)]


@transaction.atomic
def tests_record(*, tenant: Tenant, runs: Sequence[TestRun]) -> None:
    """Keep at each test how it ended last."""
    with tenant_scope(tenant.pk):
        for run in runs:
            outcome = ContractTest.Outcome.FAILED if run.problem else ContractTest.Outcome.PASSED
            ContractTest.objects.filter(tenant=tenant, pk=run.test.pk).update(
                last_outcome=outcome,
                last_problem=run.problem,
                last_version=run.version.number,
                last_run_at=timezone.now(),
            )


async def _all(
    pairs: Sequence[tuple[ContractTest, ToolVersion]],
    in_db: Callable[..., Awaitable[Any]],
    threads: BlockingThreads,
) -> list[str]:
    places = asyncio.Semaphore(MAX_PARALLEL)

    async def one(test: ContractTest, version: ToolVersion) -> str:
        async with places:
            try:
                (tool,) = source_tools(version.source, [version])
            except DomainError as error:
                return error.message[:_MAX_PROBLEM]
            return await _problem(tool, test, in_db, threads)

    try:
        return list(await asyncio.gather(*(one(test, version) for test, version in pairs)))
    finally:
        await sessions_close()


async def _problem(
    tool: Tool, test: ContractTest, in_db: Callable[..., Awaitable[Any]], threads: BlockingThreads
) -> str:
    call = ToolCall(f"test-{test.pk}", tool.name, dict(test.arguments))
    prepared = call_prepare(call, Toolset([tool]))
    result: ToolResult
    if isinstance(prepared, CheckedCall):
        context = ToolContext(data={IN_DB: in_db}, call_id=call.id)
        result = await call_run(prepared, context, timeout_s=TIMEOUT_S, run_blocking=threads.run)
    else:
        result = prepared
    if result.is_error:
        return text_storable(result.content)[:_MAX_PROBLEM]
    value = result.content if result.payload is None else result.payload
    problems = problems_find(value, test.expected, "the result")
    return text_storable("; ".join(problems))[:_MAX_PROBLEM]


def _test(tenant: Tenant, pk: int, source: int | None) -> ContractTest:
    row: ContractTest | None = ContractTest.objects.filter(tenant=tenant, pk=pk).first()
    if row is None or source not in (None, row.source_id):
        raise Missing("contract test")
    return row
