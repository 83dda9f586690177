"""Tool calls from outside of a conversation: run at once what is allowed, park what somebody must approve."""

from __future__ import annotations

import asyncio
import contextlib
import json
import time
from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Any, TypeVar

from django.db import transaction
from django.utils import timezone

from apps.tools.connectors.mcp_sessions import sessions_close
from apps.tools.limits.counting import LIMITED, CallsLimited
from apps.tools.toolset.direct_calls import offer_context, offer_guard, offer_tools
from basics.errors import Conflict, Denied, Invalid
from basics.texts import gettext as _
from basics.texts import number_told
from jobs.blocking import BlockingThreads
from jobs.services import job_enqueue
from runs.actors import actor_facts
from runs.journal import call_arguments, call_key, name_storable, result_size, verdict_put, version_of
from runs.models import CallPath, ChunkRead, Run, RunStatus, ToolCallStatus
from runs.models import ToolCall as Row
from runs.reads import reads_of
from runs.services import run_create
from tenancy.actors import Actor
from tenancy.database.waiting import loop_run
from tenancy.models import Tenant
from tenancy.services import audit_record
from toolloop.deferred import PendingCall
from toolloop.messages import ToolCall, ToolResult
from toolloop.storable import json_storable, text_storable
from toolloop.tools import ToolContext, Toolset
from toolloop.tools.gate import call_gate
from toolloop.tools.runtime import CheckedCall, call_prepare, call_run, output_cut
from toolloop.tools.tool import Verdict

R = TypeVar("R")
Runner = Callable[..., Awaitable[ToolResult]]
JOB_KIND = "tools.calls_run"
RUN_KIND = "tool_calls"
MODEL = "scripted/calls"
"""What such a run names as its model: the calls are its script, nobody is asked."""
MAX_CALLS = 32
MAX_PARALLEL = 10
MAX_ARGUMENTS = 200_000
MAX_OUTPUT = 1_000_000
TIMEOUT_S = 60.0


@dataclass(frozen=True, slots=True)
class Executed:
    """What became of some calls.

    Attributes:
        run: the run that records those that ended; None when all wait.
        results: in the order of the calls; None for one that waits.
        waiting: the run that waits for a person's approval of the others, None when none waits.
    """

    run: Run | None
    results: tuple[ToolResult | None, ...]
    waiting: Run | None

    def refusal(self) -> CallsLimited | None:
        """Return why nothing ran, when every call counts against a limit that is used up."""
        limited = [r for r in self.results if r is not None and r.error_code == LIMITED]
        if self.run is None or len(limited) < len(self.results):
            return None
        last = max(limited, key=lambda result: result.payload["retry_after"])
        kept = ("scope", "period", "limit", "remaining", "reset", "retry_after")
        facts = {key: last.payload[key] for key in kept}
        return CallsLimited(last.content, facts | {"run": self.run.pk})


def calls_execute(
    *,
    tenant: Tenant,
    actor: Actor,
    calls: Sequence[ToolCall],
    collections: Sequence[int] | None = None,
    path: str = CallPath.REST,
    runner: Runner = call_run,
    stop: Future[None] | None = None,
) -> Executed:
    """Run calls as the policy has it: allowed ones at once and side by side, asked ones in a run that is parked.

    It blocks until the allowed calls have ended. Call it outside of transactions.

    Args:
        calls: at most ``MAX_CALLS``, with ids that differ.
        collections: ids of the collections they are about; None for all that the actor may read.
        path: how they came here, for the log.
        runner: makes a call that is allowed: ``call_run`` or what gives the same results.
        stop: another thread resolves it when nobody waits for the results any more. What runs is cancelled then, its
            outcome is unknown, and the run that records it is stopped.

    Raises:
        Conflict: ``cancelled``, by ``stop``.
        Denied: without the right ``tool.run``, or for a key that acts for nobody.
        Invalid: too many calls, or two with one id.
        Missing: a collection is not there for the actor.
    """
    actor.require("tool.run")
    if actor.user_id is None:
        raise Denied("actor_needed", _("This key isn't tied to a person. Create one that acts for a person."))
    if not 0 < len(calls) <= MAX_CALLS or len({c.id for c in calls}) != len(calls):
        raise Invalid(
            "invalid", f"Send 1 to {MAX_CALLS} calls whose ids differ.", data={"field": "tool_calls"}
        )
    if sum(len(c.raw) for c in calls) > MAX_ARGUMENTS:
        raise Invalid(
            "invalid",
            _("Arguments have at most %(most)s characters.") % {"most": number_told(MAX_ARGUMENTS)},
            data={"field": "tool_calls"},
        )
    guard = offer_guard(actor=actor, collections=collections)
    # A client of MCP lists the tools by itself: one that it may not call is not there for it.
    toolset = offer_tools(guard, tells_withheld=path != CallPath.MCP)
    verdicts: dict[str, Verdict] = {}
    checked = [_checked(call, toolset, verdicts) for call in calls]
    waiting = [c.call for c in checked if isinstance(c, PendingCall)]
    facts = {
        "actor": actor_facts(actor),
        "collections": None if collections is None else list(collections),
        "path": str(path),
    }
    parked = _park(tenant, actor, waiting, facts) if waiting else None
    if len(waiting) == len(calls):
        return Executed(None, (None,) * len(calls), parked)
    run, rows = _begin(tenant, actor, calls, checked, facts, toolset, verdicts)
    threads = BlockingThreads()

    async def in_db(function: Callable[..., Any], *args: Any) -> Any:
        return await threads.run(lambda: function(*args))

    context = offer_context(tenant=tenant, run=run, guard=guard, collections=collections, in_db=in_db)
    try:
        ended = loop_run(_until(stop, _all_run(checked, context, threads, runner)))
    except asyncio.CancelledError:
        _stopped(run)
        raise Conflict("cancelled", "The call was cancelled.") from None
    finally:
        threads.close()
    _end(run, rows, ended)
    results = tuple(found and found[0] for found in ended)
    return Executed(run, results, parked)


async def _until(stop: Future[None] | None, work: Coroutine[Any, Any, R]) -> R:
    """Await the work, cancelled as soon as ``stop`` is resolved in another thread."""
    loop, task = asyncio.get_running_loop(), asyncio.ensure_future(work)

    def cancel(_: Future[None]) -> None:
        # The loop is closed when the work has ended: then there is nothing to cancel.
        with contextlib.suppress(RuntimeError):
            loop.call_soon_threadsafe(task.cancel)

    if stop is not None:
        stop.add_done_callback(cancel)
    return await task


def _stopped(run: Run) -> None:
    """Record that nobody waited for the calls; those under way stay as they were begun, of unknown outcome."""
    run.status, run.stop_reason = RunStatus.STOPPED, "cancelled"
    run.error_code = run.error_message = ""
    run.stop_requested_at = run.finished_at = timezone.now()
    run.save(
        update_fields=[
            "status",
            "stop_reason",
            "error_code",
            "error_message",
            "stop_requested_at",
            "finished_at",
        ]
    )


def _checked(
    call: ToolCall, toolset: Toolset, verdicts: dict[str, Verdict]
) -> CheckedCall | ToolResult | PendingCall:
    prepared = call_prepare(call, toolset)
    if not isinstance(prepared, CheckedCall):
        return prepared

    def judged(asked: ToolCall, verdict: Verdict) -> None:
        verdicts[asked.id] = verdict

    return call_gate(prepared, toolset, ToolContext(call_id=call.id), None, judged)


async def _all_run(
    checked: Sequence[CheckedCall | ToolResult | PendingCall],
    context: Mapping[str, Any],
    threads: BlockingThreads,
    runner: Runner,
) -> list[tuple[ToolResult, float] | None]:
    slots = asyncio.Semaphore(MAX_PARALLEL)

    async def one(entry: CheckedCall | ToolResult | PendingCall) -> tuple[ToolResult, float] | None:
        if isinstance(entry, PendingCall):
            return None
        if isinstance(entry, ToolResult):
            return entry, 0.0
        async with slots:
            begun = time.monotonic()
            result = await runner(
                entry, ToolContext(context, entry.call.id), timeout_s=TIMEOUT_S, run_blocking=threads.run
            )
        return result, time.monotonic() - begun

    apart = [index for index, entry in enumerate(checked) if not _is_sequential(entry)]
    try:
        ended = await asyncio.gather(*(one(checked[index]) for index in apart))
        found = dict(zip(apart, ended, strict=True))
        for index, entry in enumerate(checked):
            if index not in found:
                found[index] = await one(entry)
    finally:
        await sessions_close()
    return [found[index] for index in range(len(checked))]


def _is_sequential(entry: CheckedCall | ToolResult | PendingCall) -> bool:
    return isinstance(entry, CheckedCall) and entry.tool.sequential


@transaction.atomic
def _begin(
    tenant: Tenant,
    actor: Actor,
    calls: Sequence[ToolCall],
    checked: Sequence[CheckedCall | ToolResult | PendingCall],
    facts: Mapping[str, Any],
    toolset: Toolset,
    verdicts: Mapping[str, Verdict],
) -> tuple[Run, list[Row | None]]:
    """Record what is about to run, as what a crash would leave: ended, and the outcomes unknown."""
    ending = [c for c, entry in zip(calls, checked, strict=True) if not isinstance(entry, PendingCall)]
    run = run_create(tenant=tenant, actor=actor, kind=RUN_KIND, model=MODEL, request=_request(facts, ending))
    run.status, run.error_code = RunStatus.FAILED, "interrupted"
    run.error_message = _("The server stopped before these calls ended.")
    run.started_at = run.finished_at = timezone.now()
    run.save()
    rows: list[Row | None] = []
    for call, entry in zip(calls, checked, strict=True):
        if isinstance(entry, PendingCall):
            rows.append(None)
            continue
        tool = toolset.get(call.name)
        arguments, shown = call_arguments(call, tool)
        row = Row(
            tenant=tenant,
            run=run,
            user_id=run.user_id,
            step=0,
            call_id=call_key(0, call.id)[1],
            path=facts["path"],
            name=name_storable(call.name),
            tool_version=version_of(tool),
            arguments=arguments,
            arguments_masked=shown,
            has_side_effects=isinstance(entry, CheckedCall)
            and (entry.tool.side_effects or not entry.tool.idempotent),
            status=ToolCallStatus.UNKNOWN,
            started_at=timezone.now(),
        )
        if call.id in verdicts:
            verdict_put(row, verdicts[call.id])
        rows.append(row)
    Row.objects.bulk_create([row for row in rows if row is not None])
    audit_record(
        tenant=tenant,
        actor=actor,
        action="tool.execute",
        object=run,
        data={"tools": sorted({call.name[:64] for call in ending})},
    )
    return run, rows


@transaction.atomic
def _end(run: Run, rows: Sequence[Row | None], ended: Sequence[tuple[ToolResult, float] | None]) -> None:
    done: list[Row] = []
    for row, found in zip(rows, ended, strict=True):
        if row is None or found is None:
            continue
        result, seconds = found
        row.status = ToolCallStatus.SUCCEEDED
        if result.is_error:
            is_denied = result.error_code == "denied"
            row.status = ToolCallStatus.DENIED if is_denied else ToolCallStatus.FAILED
        row.content = text_storable(output_cut(result.content, MAX_OUTPUT))
        row.result_size = result_size(result)
        row.payload, row.error_code = json_storable(result.payload), result.error_code[:60]
        row.finished_at, row.duration_ms = timezone.now(), round(seconds * 1000)
        done.append(row)
    Row.objects.bulk_update(
        done, ["status", "content", "result_size", "payload", "error_code", "finished_at", "duration_ms"]
    )
    ChunkRead.objects.bulk_create(
        [
            ChunkRead(tenant_id=run.tenant_id, run_id=run.pk, user_id=run.user_id, **read)
            for row in done
            if row.status == ToolCallStatus.SUCCEEDED
            for read in reads_of(row.name, row.payload)
        ],
        ignore_conflicts=True,
    )
    run.status, run.error_code, run.error_message = RunStatus.COMPLETED, "", ""
    run.finished_at = timezone.now()
    run.save(update_fields=["status", "error_code", "error_message", "finished_at"])


@transaction.atomic
def _park(tenant: Tenant, actor: Actor, calls: Sequence[ToolCall], facts: Mapping[str, Any]) -> Run:
    """Start a run that makes these calls and nothing else; the loop parks it at once, and no worker waits with it."""
    run = run_create(tenant=tenant, actor=actor, kind=RUN_KIND, model=MODEL, request=_request(facts, calls))
    run.job = job_enqueue(
        tenant=tenant, actor=actor, kind=JOB_KIND, payload={"run_id": run.pk}, dedupe_key=f"run:{run.pk}"
    )
    run.save(update_fields=["job"])
    audit_record(
        tenant=tenant,
        actor=actor,
        action="tool.ask",
        object=run,
        data={"tools": sorted({call.name[:64] for call in calls})},
    )
    return run


def _request(facts: Mapping[str, Any], calls: Sequence[ToolCall]) -> dict[str, Any]:
    return {**facts, "calls": [call.to_json() for call in calls]}


def call_parse(call_id: str, name: str, arguments: str) -> ToolCall:
    """Return a call as a model would have made it, from the text of its arguments."""
    try:
        value = json.loads(arguments or "{}")
    except (ValueError, RecursionError) as error:
        return ToolCall(call_id, name, None, arguments, problem=f"they aren't JSON ({error})")
    if not isinstance(value, dict):
        return ToolCall(call_id, name, None, arguments, problem="they aren't a JSON object")
    return ToolCall(call_id, name, value, arguments)
