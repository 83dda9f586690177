"""Calls that tools make: the same checks, approvals, journal and limits as for calls of the model."""

from __future__ import annotations

import asyncio
import functools
import json
import logging
import time
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from dataclasses import replace
from typing import Any, TypeVar

from toolloop.call_counters import CallCounters
from toolloop.deferred import Decision, ParkCall, PendingCall, edit_restored
from toolloop.errors import ConfigurationError
from toolloop.families import Family
from toolloop.journal import Journal
from toolloop.limits import Limits
from toolloop.masking import masked
from toolloop.messages import ToolCall, ToolResult, message_from_json
from toolloop.tools.context import ToolContext
from toolloop.tools.gate import call_gate
from toolloop.tools.guards import call_key
from toolloop.tools.runtime import (
    BlockingRunner,
    CheckedCall,
    call_prepare,
    call_run,
    error_result,
    output_cut,
)
from toolloop.tools.tool import Tool, Verdict
from toolloop.tools.toolset import Toolset

# What a tool's calls return goes to that tool, a program perhaps, which must not get half of a JSON text.
_MOST_OUTPUT_CHARS = 1_000_000


_CANCEL_GRACE_S = 0.4  # Less than the run's own, which waits for the parent.
logger = logging.getLogger(__name__)
T = TypeVar("T")


class SerialJournal:
    """Lets calls of tools, which run in tasks of their own, share a journal that takes one call at a time.

    Attributes:
        error: what the journal raised first. Inside a tool it looks like the tool's own failure, so the run checks here;
            nothing more is written after it.
    """

    def __init__(self, journal: Journal) -> None:
        self._journal = journal
        self._lock = asyncio.Lock()
        self.error: BaseException | None = None

    async def call_started(self, step: int, call: ToolCall, tool: Tool | None) -> ToolResult | None:
        """See ``Journal``."""
        return await self._told(lambda: self._journal.call_started(step, call, tool))

    async def call_finished(self, step: int, call: ToolCall, result: ToolResult, duration_s: float) -> None:
        """See ``Journal``."""
        await self._told(lambda: self._journal.call_finished(step, call, result, duration_s))

    async def result_shown(self, step: int, call: ToolCall, result: ToolResult) -> ToolResult:
        """See ``FilingJournal``; a journal that does not take part leaves the result as it is."""
        shown = getattr(self._journal, "result_shown", None)
        if shown is None or not result.parts:
            return result
        return await self._told(lambda: shown(step, call, result))

    def call_judged(self, step: int, call: ToolCall, verdict: Verdict) -> None:
        """See ``JudgingJournal``; does nothing for a journal that does not take part."""
        judged = getattr(self._journal, "call_judged", None)
        if judged is not None:
            judged(step, call, verdict)

    def calls_made(self, step: int, call_id: str) -> Mapping[str, tuple[str, Any]]:
        """See ``KnowingJournal``; nothing for a journal that does not take part."""
        made = getattr(self._journal, "calls_made", None)
        found: Mapping[str, tuple[str, Any]] = {} if made is None else made(step, call_id)
        return found

    async def call_parked(self, step: int, pending: PendingCall) -> None:
        """See ``ParkingJournal``; does nothing for a journal that does not take part."""
        parked = getattr(self._journal, "call_parked", None)
        if parked is not None:
            await self._told(lambda: parked(step, pending))

    async def _told(self, tell: Callable[[], Awaitable[T]]) -> T:
        async with self._lock:
            if self.error is not None:
                raise self.error
            try:
                return await tell()
            except asyncio.CancelledError:
                raise
            except BaseException as error:
                self.error = error
                raise


def arguments_shown(call: ToolCall, tool: Tool | None) -> str:
    """Return the text of a call's arguments for people and models, its secrets masked."""
    schema = None if tool is None else tool.parameters
    if call.arguments is None:
        return str(masked(call.raw, schema))
    shown = masked(call.arguments, schema)
    return call.raw if shown is call.arguments and call.raw else json.dumps(shown, ensure_ascii=False)


class NestedCalls:
    """Runs the calls that the tools of one run make; implements ``NestedCaller``.

    Args:
        standing: id of a parent that no run has started (a program of ``CodeMode.execute``).
    """

    def __init__(
        self,
        *,
        toolset: Toolset,
        limits: Limits,
        journal: SerialJournal,
        accounts: CallCounters,
        run_blocking: BlockingRunner,
        run_admission: BlockingRunner | None = None,
        mock: bool,
        standing: str = "",
    ) -> None:
        self._toolset, self._limits, self._journal = toolset, limits, journal
        self._accounts, self._mock = accounts, mock
        self._run_blocking, self._run_admission = run_blocking, run_admission
        self._families: dict[str, Family] = {}
        self._open: dict[str, asyncio.Task[Any] | None] = {standing: None} if standing else {}

    async def run(self, prepared: CheckedCall, context: ToolContext) -> ToolResult:
        """Run a call with everything it calls; nothing of it is left running when this returns."""
        self._open[context.call_id] = asyncio.current_task()
        try:
            try:
                result = await call_run(
                    prepared,
                    replace(context, siblings=prepared.tool.siblings),
                    timeout_s=self._limits.tool_timeout_s,
                    run_blocking=self._run_blocking,
                    run_admission=self._run_admission,
                    mock=self._mock,
                )
            except ParkCall as parked:
                await self._siblings_end(context, parked)
                raise
            family = self._families.get(context.call_id)
            caught = None if family is None or family.is_kept_elsewhere else family.parking
            if caught is None or result.error_code == "timeout":
                return result
            # The tool has caught what parks it (``gather(return_exceptions=True)`` does): it waits all the same.
            await self._siblings_end(context, caught)
            raise caught
        finally:
            if self._open.get(context.call_id) is asyncio.current_task():
                del self._open[context.call_id]
            family = self._families.pop(context.call_id, None)
            if family is not None and family.tasks:
                tasks = set(family.tasks)
                for task in tasks:
                    task.cancel()
                left = await _ended(tasks)
                if left:
                    logger.warning("%d calls of %s ignore their cancellation", len(left), context.call_id)

    async def _siblings_end(self, context: ToolContext, parked: ParkCall) -> None:
        """Let calls that run beside one that waits end: their results belong to the state. No further one begins."""
        family = self._families.get(context.call_id)
        if family is None:
            return
        while family.running:
            await asyncio.wait(family.running)
        if isinstance(parked.state, dict) and parked.state.get("waits") is family.waits:
            family.waits.pop(parked.state["call"]["id"], None)  # It is what is asked about.

    async def __call__(
        self,
        parent: ToolContext,
        name: str,
        arguments: Mapping[str, Any],
        call_id: str,
        decision: Decision | None,
    ) -> ToolResult:
        """See ``ToolContext.call``."""
        from toolloop.tools.results import json_value  # With the first call: see test_import_cost.

        family = self._family(parent)
        # Through JSON, as a model's arguments come: what a tool passes on must not be shared objects.
        raw = json.dumps(json_value(dict(arguments)), ensure_ascii=False)
        call = ToolCall(call_id, name, json.loads(raw), raw)
        key = call_key(call)
        tool = self._toolset.get(name)
        if not call_id:
            has_effect = tool is not None and (tool.side_effects or not tool.idempotent)
            call = replace(call, id=family.id_of(parent.call_id, key, has_effect=has_effect))
        stored = family.stored.get(call.id)
        if stored is not None and stored["key"] == key:
            found = message_from_json(stored["result"])
            if isinstance(found, ToolResult):
                return found
        # What a person agreed to is this very call: another one under its number is a new question.
        if decision is None and family.parked == (call.id, key):
            decision = family.decision
        if parent.depth >= self._limits.max_call_depth:
            text = f"{name} was not run: tools may call each other {self._limits.max_call_depth} deep."
            return error_result(call, "limit", text, severity="fatal")
        waits = family.waits.get(call.id)
        if decision is not None:
            family.waits.pop(call.id, None)
        else:
            if family.parking is not None and not call_id:
                raise family.parking
            if waits is not None and waits["key"] == key:
                # Nothing was decided about it: it waits on where it is, and is not run from its start.
                raise self._parked(
                    family, PendingCall.from_json(waits["pending"]), key, is_own_id=bool(call_id)
                )
        return await self._beside(
            family, self._checked(parent, call, decision, family, tool, is_own_id=bool(call_id))
        )

    async def _beside(self, family: Family, work: Coroutine[Any, Any, ToolResult]) -> ToolResult:
        """Run a call in a task of its own: a sibling that parks does not end it (``asyncio.TaskGroup`` would)."""
        caller = asyncio.current_task()
        if caller is not None and caller is not family.own and caller not in family.tasks:
            family.tasks.add(caller)
            caller.add_done_callback(family.tasks.discard)
        task = asyncio.create_task(work)
        family.tasks.add(task)
        family.running.add(task)
        task.add_done_callback(family.tasks.discard)
        task.add_done_callback(family.running.discard)
        task.add_done_callback(_retrieve)
        try:
            return await asyncio.shield(task)
        except asyncio.CancelledError:
            if family.parking is None and not task.done():
                task.cancel()
                await _ended({task})
            raise

    async def _checked(
        self,
        parent: ToolContext,
        call: ToolCall,
        decision: Decision | None,
        family: Family,
        tool: Tool | None,
        *,
        is_own_id: bool,
    ) -> ToolResult:
        key = call_key(call)
        async with family.slot(alone=tool is not None and tool.sequential):
            result = await self._gated(parent, call, decision, family, key, is_own_id=is_own_id)
        family.stored[call.id] = {"key": key, "result": result.to_json()}
        return result

    async def _gated(
        self,
        parent: ToolContext,
        asked: ToolCall,
        decision: Decision | None,
        family: Family,
        key: str,
        *,
        is_own_id: bool,
    ) -> ToolResult:
        call, decision = edit_restored(asked, decision)
        context = replace(parent, call_id=call.id, depth=parent.depth + 1, decision=decision, on_piece=None)
        prepared: CheckedCall | ToolResult | PendingCall = call_prepare(call, self._toolset)
        if isinstance(prepared, CheckedCall) and not self._mock:
            judged = functools.partial(self._journal.call_judged, parent.step)
            prepared = call_gate(prepared, self._toolset, context, decision, judged)
        if isinstance(prepared, PendingCall):
            raise self._parked(family, prepared.kept(asked), key, is_own_id=is_own_id)
        if isinstance(prepared, CheckedCall):
            prepared = self._accounts.refused(prepared.call) or prepared
        if isinstance(prepared, ToolResult):
            return await self._end(parent.step, call, prepared, 0.0)
        stored = await self._journal.call_started(parent.step, prepared.call, prepared.tool)
        self._accounts.made()
        if stored is not None:
            self._accounts.ended(prepared.call, stored, 0.0)
            return stored
        begun = time.monotonic()
        try:
            result = await self.run(prepared, context)
        except ParkCall as parked:
            pending = PendingCall(
                prepared.call, parked.kind, parked.reason, parked.state, parked.approval
            ).kept(asked)
            await self._journal.call_parked(parent.step, pending)
            raise self._parked(family, pending, key, is_own_id=is_own_id) from None
        except asyncio.CancelledError:
            text = f"{call.name} was cancelled; it may have had an effect already."
            cancelled = error_result(call, "cancelled", text)
            await self._end(parent.step, prepared.call, cancelled, time.monotonic() - begun)
            raise
        return await self._end(parent.step, prepared.call, result, time.monotonic() - begun)

    async def _end(self, step: int, call: ToolCall, result: ToolResult, duration_s: float) -> ToolResult:
        self._accounts.ended(call, result, duration_s)
        self._toolset.call_ended(call.name, is_error=result.is_error)
        most = max(self._limits.max_tool_output_chars, _MOST_OUTPUT_CHARS)
        content = output_cut(result.content, most)
        if content != result.content:
            result = replace(result, content=content, whole_chars=len(result.content))
        result = await self._journal.result_shown(step, call, result)
        await self._journal.call_finished(step, call, result, duration_s)
        return result

    def _family(self, parent: ToolContext) -> Family:
        if parent.call_id not in self._open:
            raise ConfigurationError("the tool that makes this call has ended")
        family = self._families.get(parent.call_id)
        if family is not None:
            return family
        most = self._limits.max_parallel_tools
        family = Family(asyncio.Semaphore(most), most, self._open[parent.call_id])
        self._families[parent.call_id] = family
        decision = parent.decision
        known = {
            call_id: call_key(ToolCall(call_id, name, arguments))
            for call_id, (name, arguments) in self._journal.calls_made(parent.step, parent.call_id).items()
        }
        if decision is not None and isinstance(decision.state, dict):
            state = decision.state
            family.stored = dict(state.get("results", {}))
            family.waits = dict(state.get("waits", {}))
            for entries in (family.stored, family.waits):
                known |= {call_id: entry["key"] for call_id, entry in entries.items()}
            if "call" in state:
                parked = ToolCall.from_json(state["call"])
                family.parked = (parked.id, state.get("key") or call_key(parked))
                known[parked.id] = family.parked[1]
            family.decision = replace(decision, state=state.get("inner"))
        family.remember(known)
        return family

    def _parked(self, family: Family, pending: PendingCall, key: str, *, is_own_id: bool) -> ParkCall:
        """Park the parent at one of its calls; ``results`` goes on filling until the parent has ended."""
        call = pending.call
        if pending.state is not None:
            family.waits[call.id] = {"key": key, "pending": pending.to_json()}
        reason = f"{call.name} {arguments_shown(call, self._toolset.get(call.name))}"
        parking = ParkCall(
            pending.kind,
            f"{reason}: {pending.reason}" if pending.reason else reason,
            {
                "call": call.to_json(),
                "key": key,
                "inner": pending.state,
                "results": family.stored,
                "waits": family.waits,
            },
            pending.approval,
        )
        if family.parking is None:
            family.parking, family.is_kept_elsewhere = parking, is_own_id
        return parking


async def _ended(tasks: set[asyncio.Task[Any]]) -> set[asyncio.Task[Any]]:
    """Wait a little for cancelled tasks; return those that have not ended. What they raised was told elsewhere."""
    done, left = await asyncio.wait(tasks, timeout=_CANCEL_GRACE_S)
    for task in done:
        _retrieve(task)
    return left


def _retrieve(task: asyncio.Task[Any]) -> None:
    """Look at what a task has raised: the one who waited for it may be gone, and asyncio would complain."""
    if not task.cancelled():
        task.exception()
