"""Calls that tools make: the same checks, approvals, journal and limits as for calls of the model."""

from __future__ import annotations

import asyncio
import functools
import json
import logging
import time
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from typing import Any

from toolloop.accounts import CallAccounts
from toolloop.deferred import Decision, ParkCall, PendingCall
from toolloop.journal import Journal
from toolloop.limits import Limits
from toolloop.masking import masked
from toolloop.messages import ToolCall, ToolResult, message_from_json
from toolloop.tools.gate import call_gate
from toolloop.tools.guards import call_key
from toolloop.tools.runtime import (
    BlockingRunner,
    Prepared,
    call_prepare,
    call_run,
    error_result,
    output_cut,
)
from toolloop.tools.tool import Tool, ToolContext, Verdict
from toolloop.tools.toolset import Toolset

# What a tool's calls return goes to that tool, a program perhaps, which must not get half of a JSON text.
_MOST_OUTPUT_CHARS = 1_000_000


_CANCEL_GRACE_S = 0.4  # Less than the run's own, which waits for the parent.
logger = logging.getLogger(__name__)


class SerialJournal:
    """Lets calls of tools, which run in tasks of their own, share a journal that takes one call at a time.

    Attributes:
        error: what the journal raised first. Inside a tool it looks like the tool's own failure, so the run checks here.
    """

    def __init__(self, journal: Journal) -> None:
        self._journal = journal
        self._lock = asyncio.Lock()
        self.error: Exception | None = None

    async def call_started(self, step: int, call: ToolCall, tool: Tool | None) -> ToolResult | None:
        """See ``Journal``."""
        async with self._lock:
            try:
                return await self._journal.call_started(step, call, tool)
            except Exception as error:
                self.error = self.error or error
                raise

    async def call_finished(
        self, step: int, call: ToolCall, result: ToolResult, duration_s: float
    ) -> None:
        """See ``Journal``."""
        async with self._lock:
            try:
                await self._journal.call_finished(step, call, result, duration_s)
            except Exception as error:
                self.error = self.error or error
                raise

    def call_judged(self, step: int, call: ToolCall, verdict: Verdict) -> None:
        """See ``JudgingJournal``; does nothing for a journal that does not take part."""
        judged = getattr(self._journal, "call_judged", None)
        if judged is not None:
            judged(step, call, verdict)

    async def call_parked(self, step: int, pending: PendingCall) -> None:
        """See ``ParkingJournal``; does nothing for a journal that does not take part."""
        parked = getattr(self._journal, "call_parked", None)
        if parked is None:
            return
        async with self._lock:
            try:
                await parked(step, pending)
            except Exception as error:
                self.error = self.error or error
                raise


def arguments_shown(call: ToolCall, tool: Tool | None) -> str:
    """Return the text of a call's arguments for people and models, its secrets masked."""
    if call.arguments is None:
        return str(masked(call.raw))
    shown = masked(call.arguments, None if tool is None else tool.parameters)
    return (
        call.raw if shown is call.arguments and call.raw else json.dumps(shown, ensure_ascii=False)
    )


@dataclass(slots=True, eq=False)
class _Family:
    """The calls of one parent.

    Attributes:
        stored: results by call id as JSON, with what was called; part of the state when the parent parks.
        parked: id and key of the call an earlier attempt parked at, and ``decision`` about it.
    """

    slots: asyncio.Semaphore
    size: int
    whole: asyncio.Lock = field(default_factory=asyncio.Lock)
    made: int = 0
    stored: dict[str, Any] = field(default_factory=dict)
    parked: tuple[str, str] | None = None
    decision: Decision | None = None
    tasks: set[asyncio.Task[Any]] = field(default_factory=set)
    is_parking: bool = False

    @asynccontextmanager
    async def slot(self, *, alone: bool) -> AsyncIterator[None]:
        """Take a place; ``alone`` takes them all, one by one, so only one caller at a time may collect them."""
        taken = 0
        try:
            if alone:
                async with self.whole:
                    for _ in range(self.size):
                        await self.slots.acquire()
                        taken += 1
            else:
                await self.slots.acquire()
                taken = 1
            yield
        finally:
            for _ in range(taken):
                self.slots.release()


class NestedCalls:
    """Runs the calls that the tools of one run make; implements ``NestedCaller``."""

    def __init__(
        self,
        *,
        toolset: Toolset,
        limits: Limits,
        journal: SerialJournal,
        accounts: CallAccounts,
        run_blocking: BlockingRunner,
        mock: bool,
    ) -> None:
        self._toolset, self._limits, self._journal = toolset, limits, journal
        self._accounts, self._run_blocking, self._mock = accounts, run_blocking, mock
        self._families: dict[str, _Family] = {}

    async def run(self, prepared: Prepared, context: ToolContext) -> ToolResult:
        """Run a call with everything it calls; nothing of it is left running when this returns."""
        try:
            return await call_run(
                prepared,
                replace(context, siblings=prepared.tool.siblings),
                timeout_s=self._limits.tool_timeout_s,
                run_blocking=self._run_blocking,
                mock=self._mock,
            )
        except ParkCall:
            # What runs beside the parked call may end: its results belong to the state.
            family = self._families.get(context.call_id)
            if family is not None and family.tasks:
                await asyncio.wait(family.tasks)
            raise
        finally:
            family = self._families.pop(context.call_id, None)
            if family is not None and family.tasks:
                tasks = set(family.tasks)
                for task in tasks:
                    task.cancel()
                _, left = await asyncio.wait(tasks, timeout=_CANCEL_GRACE_S)
                if left:
                    logger.warning(
                        "%d calls of %s ignore their cancellation", len(left), context.call_id
                    )

    async def __call__(
        self,
        parent: ToolContext,
        name: str,
        arguments: Mapping[str, Any],
        call_id: str,
        decision: Decision | None,
    ) -> ToolResult:
        """See ``ToolContext.call``."""
        family = self._family(parent)
        family.made += 1
        raw = json.dumps(dict(arguments), ensure_ascii=False)
        # Through JSON, as a model's arguments come: what a tool passes on must not be shared objects.
        call = ToolCall(call_id or f"{parent.call_id}.{family.made}", name, json.loads(raw), raw)
        stored = family.stored.get(call.id)
        if stored is not None and stored["key"] == call_key(call):
            found = message_from_json(stored["result"])
            if isinstance(found, ToolResult):
                return found
        # What a person agreed to is this very call: another one under its number is a new question.
        if decision is None and family.parked == (call.id, call_key(call)):
            decision = family.decision
        if parent.depth >= self._limits.max_call_depth:
            text = (
                f"{name} was not run: tools may call each other {self._limits.max_call_depth} deep."
            )
            return error_result(call, "limit", text, severity="fatal")
        task = asyncio.current_task()
        if task is not None and task not in family.tasks:
            family.tasks.add(task)
        else:
            task = None  # An outer frame of this task takes it out.
        try:
            tool = self._toolset.get(name)
            async with family.slot(alone=tool is not None and tool.sequential):
                result = await self._checked(parent, call, decision, family)
        finally:
            if task is not None:
                family.tasks.discard(task)
        family.stored[call.id] = {"key": call_key(call), "result": result.to_json()}
        return result

    async def _checked(
        self, parent: ToolContext, call: ToolCall, decision: Decision | None, family: _Family
    ) -> ToolResult:
        context = replace(parent, call_id=call.id, depth=parent.depth + 1, decision=decision)
        prepared: Prepared | ToolResult | PendingCall = call_prepare(call, self._toolset)
        if isinstance(prepared, Prepared) and not self._mock:
            judged = functools.partial(self._journal.call_judged, parent.step)
            prepared = call_gate(prepared, self._toolset, context, decision, judged)
        if isinstance(prepared, PendingCall):
            raise self._parked(family, prepared)
        if isinstance(prepared, Prepared):
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
            )
            await self._journal.call_parked(parent.step, pending)
            raise self._parked(family, pending) from None
        except asyncio.CancelledError:
            text = f"{call.name} was cancelled; it may have had an effect already."
            cancelled = error_result(call, "cancelled", text)
            if not family.is_parking:
                await self._end(parent.step, prepared.call, cancelled, time.monotonic() - begun)
            raise
        return await self._end(parent.step, prepared.call, result, time.monotonic() - begun)

    async def _end(
        self, step: int, call: ToolCall, result: ToolResult, duration_s: float
    ) -> ToolResult:
        self._accounts.ended(call, result, duration_s)
        self._toolset.call_ended(call.name, is_error=result.is_error)
        most = max(self._limits.max_tool_output_chars, _MOST_OUTPUT_CHARS)
        content = output_cut(result.content, most)
        if content != result.content:
            result = replace(result, content=content, whole_chars=len(result.content))
        await self._journal.call_finished(step, call, result, duration_s)
        return result

    def _family(self, parent: ToolContext) -> _Family:
        family = self._families.get(parent.call_id)
        if family is None:
            most = self._limits.max_parallel_tools
            family = self._families[parent.call_id] = _Family(asyncio.Semaphore(most), most)
            decision = parent.decision
            if decision is not None and isinstance(decision.state, dict):
                state = decision.state
                if "call" in state:
                    parked = ToolCall.from_json(state["call"])
                    family.parked = (parked.id, call_key(parked))
                family.stored = dict(state.get("results", {}))
                family.decision = replace(decision, state=state.get("inner"))
        return family

    def _parked(self, family: _Family, pending: PendingCall) -> ParkCall:
        """Park the parent at one of its calls; ``results`` goes on filling until the parent has ended."""
        family.is_parking = True
        call = pending.call
        reason = f"{call.name} {arguments_shown(call, self._toolset.get(call.name))}"
        return ParkCall(
            pending.kind,
            f"{reason}: {pending.reason}" if pending.reason else reason,
            {
                "call": call.to_json(),
                "inner": pending.state,
                "results": family.stored,
            },
            pending.approval,
        )
