"""Notice a model that goes in circles: the same call again and again, or one tool that always fails."""

from __future__ import annotations

import hashlib
import json
import math
import os
from collections import Counter
from typing import Any

from toolloop.messages import ToolCall
from toolloop.storable import text_storable


def call_key(call: ToolCall) -> str:
    """Return what two calls share when they ask for the same thing: the tool's name, a blank, and a mark.

    It is printable text, and it is the same before and after a store that loses what JSON does not promise: the order of
    keys, ``1.0`` beside ``1``, ``-0.0``, NUL and halves of surrogate pairs.
    """
    return f"{text_storable(call.name)} {asked_mark(call.raw if call.arguments is None else call.arguments)}"


def asked_mark(arguments: Any) -> str:
    """Return 32 hexadecimal digits that stand for JSON arguments, as every store gives them back."""
    try:
        text = json.dumps(_canonical(arguments), sort_keys=True)
    except (RecursionError, ValueError, TypeError):
        text = os.urandom(16).hex()  # Too deep, or no JSON: no two such are taken for the same.
    return hashlib.sha256(text.encode()).hexdigest()[:32]


def _canonical(value: Any) -> Any:
    if isinstance(value, str):
        return text_storable(value)
    if isinstance(value, float):
        if not math.isfinite(value):
            return None
        return _whole(value) if value.is_integer() else value
    if isinstance(value, dict):
        return {text_storable(str(name)): _canonical(item) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [_canonical(item) for item in value]
    return value


def _whole(value: float) -> int:
    """Return a whole number by its digits, not by its exact value: they are what is written down and read again."""
    if abs(value) < 2**53:
        return int(value)
    digits, _, exponent = repr(value).partition("e")
    head, _, tail = digits.partition(".")
    tail = tail.rstrip("0")
    zeros = int(exponent or 0) - len(tail)
    return int(f"{head}{tail}{'0' * zeros}")


class CircleGuard:
    """Counts the calls of one run; pure, so that a resumed run rebuilds it from its history.

    Identical calls within one turn count once, because a model that asks twice in one breath has seen no answer yet.

    Args:
        repeat_warn, repeat_stop: identical calls after which the model is warned, and the run is ended.
        failure_warn, failure_stop: failures of one tool in a row, whatever the arguments, for the same.
    """

    def __init__(self, *, repeat_warn: int, repeat_stop: int, failure_warn: int, failure_stop: int) -> None:
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
