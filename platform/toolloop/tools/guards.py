"""Notice a model that goes in circles: the same call again and again, or one tool that always fails."""

from __future__ import annotations

import json
from collections import Counter

from toolloop.messages import ToolCall


def call_key(call: ToolCall) -> str:
    """Return what two calls share when they ask for the same thing, whatever the order of their arguments."""
    arguments = call.raw if call.arguments is None else json.dumps(call.arguments, sort_keys=True)
    return f"{call.name}\0{arguments}"


class CircleGuard:
    """Counts the calls of one run; pure, so that a resumed run rebuilds it from its history.

    Identical calls within one turn count once, because a model that asks twice in one breath has seen no answer yet.

    Args:
        repeat_warn, repeat_stop: identical calls after which the model is warned, and the run is ended.
        failure_warn, failure_stop: failures of one tool in a row, whatever the arguments, for the same.
    """

    def __init__(
        self, *, repeat_warn: int, repeat_stop: int, failure_warn: int, failure_stop: int
    ) -> None:
        self._repeat_warn, self._repeat_stop = repeat_warn, repeat_stop
        self._failure_warn, self._failure_stop = failure_warn, failure_stop
        self._calls: Counter[str] = Counter()
        self._failures: Counter[str] = Counter()
        self._this_turn: set[str] = set()
        self._failed_this_turn: set[str] = set()
        self.stop = ""
        self.detail = ""

    def turn_begins(self) -> None:
        """Start a new model turn."""
        self._this_turn.clear()
        self._failed_this_turn.clear()

    def call_allowed(self, call: ToolCall) -> bool:
        """Count a call that is about to run; False when it is one repetition too many."""
        key = call_key(call)
        if key not in self._this_turn:
            self._this_turn.add(key)
            self._calls[key] += 1
        if self._calls[key] < self._repeat_stop:
            return True
        self.stop = "repeat_stop"
        self.detail = f"{call.name} was called {self._calls[key]} times with the same arguments"
        return False

    def call_ended(self, call: ToolCall, *, is_error: bool) -> str:
        """Count an outcome; return the warning to add to what the model reads, "" for none."""
        if not is_error:
            self._failures[call.name] = 0
        elif call.name not in self._failed_this_turn:
            self._failed_this_turn.add(call.name)
            self._failures[call.name] += 1
        failures, repeats = self._failures[call.name], self._calls[call_key(call)]
        if failures >= self._failure_stop:
            self.stop = self.stop or "failure_stop"
            self.detail = self.detail or f"{call.name} failed {failures} times in a row"
        if is_error and failures >= self._failure_warn:
            return f"[Warning: {call.name} failed {failures} times in a row. Change the approach, or answer without it.]"
        if repeats >= self._repeat_warn:
            return (
                f"[Warning: this same call was made {repeats} times. Its result will not change: use it, or do "
                "something else.]"
            )
        return ""
