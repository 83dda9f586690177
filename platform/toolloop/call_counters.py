"""What must be counted over all calls of a run: limits, circles, and figures per tool."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from toolloop.limits import Limits
from toolloop.messages import ModelMessage, ToolCall, ToolResult, Turn
from toolloop.tools.guards import CircleGuard
from toolloop.tools.runtime import error_result

NEVER_RAN = frozenset(
    {"unknown_tool", "invalid_arguments", "truncated", "limit", "cancelled", "lost", "rejected"}
)


class CallCounters:
    """Counts the calls of one run, those that tools make included."""

    def __init__(self, limits: Limits) -> None:
        self._most = limits.max_tool_calls
        self._guard = CircleGuard(
            repeat_warn=limits.repeat_warn,
            repeat_stop=limits.repeat_stop,
            failure_warn=limits.failure_warn,
            failure_stop=limits.failure_stop,
        )
        self._made = 0
        self._limit = ""
        self._detail = ""
        self._figures: dict[str, dict[str, Any]] = {}

    @property
    def limit(self) -> str:
        """Return the limit that calls have met, as ``LimitReached`` names it; "" for none."""
        return self._limit or self._guard.stop

    @property
    def detail(self) -> str:
        """Return what ``LimitReached`` says about it."""
        return self._detail if self._limit else self._guard.detail

    @property
    def figures(self) -> dict[str, dict[str, Any]]:
        """Return per tool ``calls``, ``errors`` and ``seconds`` of this attempt."""
        return {name: dict(figures) for name, figures in self._figures.items()}

    def meet(self, limit: str, detail: str) -> None:
        """Note that a limit was met."""
        self._limit, self._detail = limit, detail

    def turn_begins(self) -> None:
        """Start a new model turn."""
        self._guard.turn_begins()

    def count_past(self, messages: Sequence[ModelMessage]) -> None:
        """Count the calls of earlier attempts, so that a resumed run has the same limits as an unbroken one."""
        calls: dict[str, ToolCall] = {}
        for message in messages:
            if isinstance(message, Turn):
                self._guard.turn_begins()
                calls = {call.id: call for call in message.tool_calls}
            elif isinstance(message, ToolResult) and message.call_id in calls:
                self.count(calls[message.call_id], message)

    def count(self, call: ToolCall, result: ToolResult) -> None:
        """Count a call that had its result before."""
        if result.error_code not in NEVER_RAN:
            self._made += 1
            self._guard.call_allowed(call)
        self._guard.call_ended(call, is_error=result.is_error)

    def refused(self, call: ToolCall) -> ToolResult | None:
        """Count a call that is about to run; the error result when it is one too many."""
        if self._most is not None and self._made >= self._most:
            self.meet("max_tool_calls", f"{self._most} tool calls were made")
            text = f"{call.name} was not run: this run may make {self._most} tool calls and has made them."
            return error_result(call, "limit", text)
        if not self._guard.call_allowed(call):
            text = f"{call.name} was not run: {self._guard.detail}. Its result would be the same."
            return error_result(call, "limit", text)
        return None

    def made(self) -> None:
        """Count a call that runs, or ran in an earlier attempt."""
        self._made += 1

    def ended(self, call: ToolCall, result: ToolResult, duration_s: float) -> str:
        """Count an outcome; return the warning to add to what the model reads, "" for none."""
        if result.error_code != "unknown_tool":  # Names a model invents would fill the table.
            figures = self._figures.setdefault(call.name, {"calls": 0, "errors": 0, "seconds": 0.0})
            figures["calls"] += 1
            figures["errors"] += result.is_error
            figures["seconds"] = round(figures["seconds"] + duration_s, 6)
        warning = self._guard.call_ended(call, is_error=result.is_error)
        return "" if result.error_code in ("limit", "cancelled") else warning
