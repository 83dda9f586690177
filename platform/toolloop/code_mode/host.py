"""What a program may ask of us: its tool calls, bound, checked, counted, logged; the same for every backend."""

from __future__ import annotations

import asyncio
import difflib
import hashlib
import json
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from toolloop.code_mode.binding import arguments_bound, parallel_specs, python_names, result_value, shortened
from toolloop.code_mode.limits import CodeLimits
from toolloop.code_mode.names import PARALLEL
from toolloop.code_mode.result import CallRecord, Ending
from toolloop.code_mode.values import NotJson, ValueTooLarge, preview, value_plain
from toolloop.deferred import Decision, ParkCall, PendingCall
from toolloop.media import Media
from toolloop.messages import ToolCall, ToolResult
from toolloop.tools.tool import Tool
from toolloop.tools.toolset import Toolset

_MOST_PARTS = 20
Invoke = Callable[[ToolCall, Decision | None], Awaitable[ToolResult]]

_DENIED = frozenset({"denied", "permission_denied", "rejected"})
_NOT_RUN = frozenset({"invalid_arguments", "unknown_tool", "limit"})
# Exceptions that exist in the interpreter; others become the nearest of these.
_KNOWN = frozenset(
    """
        ArithmeticError AssertionError AttributeError Exception FileExistsError FileNotFoundError ImportError
        IndexError IsADirectoryError KeyError LookupError NameError NotADirectoryError NotImplementedError
        OSError OverflowError PermissionError RuntimeError TimeoutError TypeError ValueError ZeroDivisionError
    """.split()
)


class CallsExhausted(Exception):
    """The program, or the run it belongs to, has made all the calls it may make."""


class ApprovalNeeded(Exception):
    """Somebody must decide before the program can go on."""

    def __init__(self, pending: tuple[PendingCall, ...]) -> None:
        super().__init__("approval needed")
        self.pending = pending


@dataclass(frozen=True, slots=True)
class CallAnswer:
    """What a call gives the program: a value, or an exception."""

    value: Any = None
    error_type: str = ""
    message: str = ""

    def to_json(self) -> list[Any]:
        return [self.value, self.error_type, self.message]


@dataclass(frozen=True, slots=True)
class Planned:
    """A call that may be made now, or whose answer is known already."""

    call: ToolCall
    line: int
    answer: CallAnswer | None = None


class ToolHost:
    """Answers one program's calls.

    Args:
        toolset: the tools it may call; frozen for the program.
        limits: its limits.
        invoke: makes one call with everything a native call gets (see ``ToolContext.call``); raises ``ParkCall`` when
            somebody must decide first.
        call_id: id of the call that runs the program; ids of nested calls begin with it.
        on_call: told of every call that has ended.

    Attributes:
        log: every call, in the order in which they ended.
        raised: exceptions given to the program, and how it ends when it does not catch them.
        decisions: by call id, for a program that goes on.
    """

    def __init__(
        self,
        *,
        toolset: Toolset,
        limits: CodeLimits,
        invoke: Invoke,
        call_id: str,
        on_call: Callable[[CallRecord], None] | None = None,
    ) -> None:
        self._toolset, self._limits, self._invoke = toolset, limits, invoke
        self._call_id, self._on_call = call_id, on_call
        self._names = python_names(toolset)
        self._room = asyncio.Semaphore(limits.parallel)
        self._begun = time.monotonic()
        self._seen: Counter[str] = Counter()
        self._shapes: dict[str, list[str]] = {}
        self.made = 0
        self.ordered = True  # Calls come in an order that a second run would repeat.
        self.log: list[CallRecord] = []
        self.raised: dict[tuple[str, str], Ending] = {}
        self.decisions: dict[str, Decision] = {}
        self.parts: list[Media] = []  # Images and files that results hold for the model.
        self._answers: dict[str, CallAnswer] = {}  # Of calls that ended beside one that waits.
        self._waits: dict[str, PendingCall] = {}  # What has begun and waits, beside what is asked about.

    @property
    def names(self) -> Sequence[str]:
        """Return the names under which the program finds its tools."""
        return tuple(self._names)

    def has(self, name: str) -> bool:
        """Tell whether a name is a tool's, or ``parallel``."""
        return name == PARALLEL or name in self._names

    def unknown(self, name: str) -> str:
        """Return the text of the NameError for a name that is nothing."""
        close = difflib.get_close_matches(name, [*self._names, PARALLEL], n=1)
        hint = f". Did you mean {close[0]!r}?" if close else ""
        return f"name {name!r} is not defined{hint}"

    def memory(self) -> dict[str, Any]:
        """Return what must survive a pause, as JSON."""
        return {
            "seen": dict(self._seen),
            "made": self.made,
            "log": [record.to_json() for record in self.log],
            "raised": [[*key, str(ending)] for key, ending in self.raised.items()],
            "shapes": self._shapes,
            "call_id": self._call_id,
            "parts": [part.to_json() for part in self.parts],
            "answers": {call_id: answer.to_json() for call_id, answer in self._answers.items()},
            "waits": {call_id: pending.to_json() for call_id, pending in self._waits.items()},
        }

    def remember(self, memory: Mapping[str, Any]) -> None:
        """Go on where ``memory`` was taken."""
        self._seen = Counter(memory["seen"])
        self.made = memory["made"]
        self.log = [CallRecord.from_json(record) for record in memory["log"]]
        self.raised = {(kind, text): Ending(end) for kind, text, end in memory["raised"]}
        self._shapes = dict(memory["shapes"])
        self._call_id = memory["call_id"]
        self.parts = [Media.from_json(part) for part in memory["parts"]]
        self._answers = {call_id: CallAnswer(*parts) for call_id, parts in memory["answers"].items()}
        waits = memory.get("waits", {})
        self._waits = {call_id: PendingCall.from_json(data) for call_id, data in waits.items()}

    def keys_seen(self) -> dict[str, list[str]]:
        """Return the keys that results of each tool had, for hints."""
        return self._shapes

    # Planning

    def plan(self, name: str, args: Sequence[Any], kwargs: Mapping[str, Any], line: int) -> list[Planned]:
        """Bind one call, or all calls of ``parallel(...)``.

        Raises:
            CallsExhausted: there are more of them than calls left.
        """
        if name == PARALLEL:
            specs = parallel_specs(args)
            if len(specs) > self._limits.tool_calls:  # Not even worth looking at.
                raise self._exhausted()
            planned = [self._spec(spec, line) for spec in specs]
        else:
            planned = [self._one(name, args, kwargs, line)]
        new = sum(p.answer is None for p in planned)
        if self.made + new > self._limits.tool_calls:
            raise self._exhausted()
        self.made += new
        return planned

    def _exhausted(self) -> CallsExhausted:
        return CallsExhausted(f"A program may make {self._limits.tool_calls} tool calls.")

    def refused(self, name: str, line: int, text: str) -> Planned:
        """Return a call that cannot be made, because its arguments are no JSON; it counts all the same.

        Args:
            name: the tool's, as the program calls it.
            line: of the program.
            text: of the TypeError it ends in.

        Raises:
            CallsExhausted: no call is left.
        """
        return self._bad(self._names.get(name, name), line, text)

    def plan_undo(self, planned: Sequence[Planned]) -> None:
        """Forget planned calls: when the program goes on, it asks for them again."""
        for one in planned:
            if one.call.id:
                self._seen[_mark(one.call.id)] -= 1
            self.made -= one.answer is None

    def _spec(self, spec: Any, line: int) -> Planned:
        if isinstance(spec, dict) and {"tool", "args", "kwargs"} == set(spec):
            return self._one(spec["tool"], spec["args"], spec["kwargs"], line)
        if isinstance(spec, list | tuple) and spec and isinstance(spec[0], str):
            return self._one(spec[0], spec[1:], {}, line)
        return self._bad(
            "parallel",
            line,
            "parallel() takes tuples of a tool and its arguments: parallel((tool, a, b), (tool, c))",
        )

    def _one(self, name: str, args: Sequence[Any], kwargs: Mapping[str, Any], line: int) -> Planned:
        tool = self._toolset.get(self._names.get(name, ""))
        if tool is None:
            return self._bad(name[:100], line, f"{name[:100]!r} is not one of your tools")
        try:
            given = arguments_bound(tool, args, kwargs)
            arguments = value_plain(given, nodes=self._limits.value_nodes, size=self._limits.result_bytes)
        except ValueTooLarge:
            text = f"{tool.name}(): the arguments are too large; pass a smaller part"
            return self._bad(tool.name, line, text)
        except NotJson as error:
            text = f"{tool.name}() takes JSON values (str, int, float, bool, None, list, dict), not {error}"
            return self._bad(tool.name, line, text)
        except TypeError as error:
            return self._bad(tool.name, line, str(error))
        call_id = self._id(tool, arguments)
        return Planned(ToolCall(call_id, tool.name, arguments), line, self._answers.get(call_id))

    def _bad(self, name: str, line: int, text: str) -> Planned:
        return Planned(ToolCall("", name, {}), line, CallAnswer(None, "TypeError", text))

    def _id(self, tool: Tool, arguments: Mapping[str, Any]) -> str:
        """Return an id that a second run of the same program gives the same call.

        What has side effects is known by its place, so that it never runs twice even where its arguments hold the time;
        all else by its arguments, so that a stored result always belongs to them.
        """
        if self.ordered and (tool.side_effects or not tool.idempotent):
            mark = tool.name
        else:
            text = json.dumps([tool.name, arguments], sort_keys=True)
            mark = hashlib.sha256(text.encode()).hexdigest()[:16]
        self._seen[mark] += 1
        return f"{self._call_id}.{mark}.{self._seen[mark]}"

    # Making calls

    async def make(self, planned: Planned) -> CallAnswer:
        """Make one planned call.

        Raises:
            CallsExhausted: the run it belongs to may make no more calls.
        """
        begun = time.monotonic()
        call = planned.call
        if planned.answer is not None:
            if call.id not in self._answers:
                self._record(planned, "refused", begun, planned.answer)
            return self._noted(planned.answer)
        decision = self.decisions.get(call.id)
        waits = self._waits.pop(call.id, None)
        async with self._room:
            try:
                if waits is not None and decision is None:  # It waits on where it is.
                    raise self._kept(waits)
                result = await self._invoke(call, decision)
            except ParkCall as parked:
                raise self._kept(_waiting(call, parked)) from None
        if result.error_code == "limit":
            self._record(planned, "refused", begun, CallAnswer(None, "RuntimeError", result.content))
            raise CallsExhausted(result.content)
        answer, status = self._answered(result)
        self._record(planned, status, begun, answer)
        return self._noted(answer, denied=status == "denied")

    def _kept(self, pending: PendingCall) -> ApprovalNeeded:
        """Keep how far a call has come that waits, should another one be asked about first."""
        if pending.state is not None:
            self._waits[pending.call.id] = pending
        return ApprovalNeeded((pending,))

    async def make_all(self, planned: Sequence[Planned]) -> CallAnswer:
        """Make the calls of ``parallel(...)`` at the same time; the first failure counts once all have ended.

        Raises:
            ApprovalNeeded: for at least one; the answers of the others are kept.
        """
        tasks = [asyncio.create_task(self.make(one)) for one in planned]
        try:
            if tasks:
                await asyncio.wait(tasks)
        finally:
            await tasks_end(tasks)
        waiting: list[PendingCall] = []
        answers: list[CallAnswer] = []
        for one, task in zip(planned, tasks, strict=True):
            error = task.exception()
            if isinstance(error, ApprovalNeeded):
                waiting += error.pending
            elif error is not None:
                raise error
            else:
                answers.append(task.result())
                if one.call.id:
                    self._answers[one.call.id] = answers[-1]
        if waiting:
            raise ApprovalNeeded(tuple(waiting))
        for one in planned:
            self._answers.pop(one.call.id, None)
        failed = next((answer for answer in answers if answer.error_type), None)
        return failed or CallAnswer([answer.value for answer in answers])

    def _answered(self, result: ToolResult) -> tuple[CallAnswer, str]:
        if not result.is_error:
            if len(result.content) > self._limits.result_bytes:
                text = (
                    f"{result.name} returned {len(result.content)} characters, more than fit into a program; "
                    "ask for less"
                )
                return CallAnswer(None, "ValueError", text), "failed"
            if len(self.parts) + len(result.parts) > _MOST_PARTS:
                text = (
                    f"{result.name} returned images or files, and one program may fetch at most {_MOST_PARTS}: "
                    "fetch fewer, or the rest in another program"
                )
                return CallAnswer(None, "ValueError", text), "failed"
            self.parts += result.parts
            value = result_value(result)
            self._shape(result.name, value)
            return CallAnswer(value), "ok"
        if result.error_code in _DENIED:
            return CallAnswer(None, "PermissionError", result.content), "denied"
        if result.error_code in _NOT_RUN:
            kind = "NameError" if result.error_code == "unknown_tool" else "TypeError"
            return CallAnswer(None, kind, result.content), "refused"
        payload = result.payload if isinstance(result.payload, dict) else {}
        kind = payload.get("exception", "")
        if result.error_code == "timeout":
            kind = "TimeoutError"
        return CallAnswer(None, kind if kind in _KNOWN else "RuntimeError", result.content), "failed"

    def _noted(self, answer: CallAnswer, *, denied: bool = False) -> CallAnswer:
        if answer.error_type:
            ending = Ending.TOOL_ERROR
            if denied:
                ending = Ending.TOOL_DENIED
            elif answer.error_type == "TypeError":
                ending = Ending.TYPE_ERROR
            self.raised[answer.error_type, answer.message] = ending
        return answer

    def _shape(self, name: str, value: Any) -> None:
        first = value[0] if isinstance(value, list) and value else value
        if isinstance(first, dict):
            self._shapes[name] = [str(key)[:60] for key in list(first)[:30]]

    def _record(self, planned: Planned, status: str, begun: float, answer: CallAnswer) -> None:
        call = planned.call
        record = CallRecord(
            seq=len(self.log) + 1,
            call_id=call.id,
            name=call.name,
            arguments=shortened(call.arguments or {}),
            status=status,
            started_s=round(begun - self._begun, 6),
            duration_ms=round((time.monotonic() - begun) * 1000, 3),
            result="" if answer.error_type else preview(answer.value),
            error=f"{answer.error_type}: {answer.message[:500]}" if answer.error_type else "",
            line=planned.line,
        )
        self.log.append(record)
        if self._on_call is not None:
            self._on_call(record)


def _mark(call_id: str) -> str:
    """Return the part of a nested call's id that is counted."""
    return call_id.rpartition(".")[0].rpartition(".")[2]


async def tasks_end(tasks: Sequence[asyncio.Future[Any]]) -> None:
    """Cancel tasks that still run, and wait for them: nothing may go on after its program."""
    open_tasks = [task for task in tasks if not task.done()]
    for task in open_tasks:
        task.cancel()
    if open_tasks:
        await asyncio.wait(open_tasks)


def _waiting(call: ToolCall, parked: ParkCall) -> PendingCall:
    """Return what a call of the program waits for, with the call's own state.

    What leaves ``ToolContext.call`` is wrapped for the tool that made the call. With the wrapping taken for a state of
    the call's own, a rejected call would run: a tool that parked itself is called whatever the decision is.
    """
    state = parked.state["inner"] if isinstance(parked.state, dict) else None
    return PendingCall(call, parked.kind, parked.reason, state, parked.approval)
