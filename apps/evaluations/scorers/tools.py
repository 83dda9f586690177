"""How a target used its tools: the calls that were expected, and those that are forbidden."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from pydantic import Field

from apps.datasets.formats.bfcl import ALLOWED
from apps.datasets.records.record import Record
from apps.evaluations.scorers.base import Call, ScoreValue, TargetResult, unscored
from apps.evaluations.scorers.text import RuleScorer
from apps.evaluations.scorers.turns import own_messages
from basics.texts import gettext as _
from basics.texts import gettext_noop

_MARKS = re.compile(r"[ ,./\-_*^]")


class ToolCalls(RuleScorer):
    """Whether the expected calls were made with the expected arguments (BFCL's AST match: values, not wording).

    Source: ``bfcl_eval/eval_checker/ast_eval/ast_checker.py`` of the leaderboard. Expected are the calls of the row's trace, in
    a conversation those after its last question. ``meta["allowed_arguments"]`` may hold, per call in order, a list of allowed
    values for each argument, and so for each field of an object in it; "" in such a list allows to leave the argument or field
    out, as BFCL writes it.
    """

    kind: ClassVar[str] = "tool_calls"
    version: ClassVar[int] = 2
    is_ordered: bool = False
    forbids_others: bool = Field(False, description="Extra calls lower precision.")

    def score(self, row: Record, outcome: TargetResult) -> list[ScoreValue]:
        """Score the calls; ``details["differences"]`` says per expected call what was otherwise."""
        expected = _expected(row)
        if not expected:
            return [unscored(self.kind, _("The row expects no tool call."))]
        found, differences = calls_match(expected, list(outcome.calls), is_ordered=self.is_ordered)
        share = len(found) / len(expected)
        extra = len(outcome.calls) - len(found)
        if self.forbids_others and extra:
            share *= len(expected) / (len(expected) + extra)
        return [
            ScoreValue(
                self.kind,
                share,
                reason=outcome.error if outcome.error and not outcome.calls else "",
                details={"differences": differences, "further_calls": extra},
            )
        ]


class ForbiddenTools(RuleScorer):
    """1 unless one of the named tools was called; a name may end in ``*``."""

    kind: ClassVar[str] = "forbidden_tools"
    names: tuple[str, ...] = Field(min_length=1, max_length=100)

    def score(self, row: Record, outcome: TargetResult) -> list[ScoreValue]:
        """Score the calls."""
        called = sorted({call.name for call in outcome.calls if self._forbids(call.name)})
        reason = _("Called: %(tools)s.") % {"tools": ", ".join(called)} if called else ""
        return [ScoreValue(self.kind, float(not called), reason=reason)]

    def _forbids(self, name: str) -> bool:
        return any(name.startswith(rule[:-1]) if rule.endswith("*") else name == rule for rule in self.names)


class LoopEnds(RuleScorer):
    """1 where the loop ended by itself, 0 where it went in circles or was cut off by a limit."""

    kind: ClassVar[str] = "loop_ends"

    def score(self, row: Record, outcome: TargetResult) -> list[ScoreValue]:
        """Score the end; ``details`` counts calls, and those among them that repeat an earlier one."""
        if outcome.limit is None:
            return [unscored(self.kind, _("The target doesn't run a tool loop."))]
        repeated = sum(_is_among(call, outcome.calls[:at]) for at, call in enumerate(outcome.calls))
        details = {"calls": len(outcome.calls), "repeated": repeated, "limit": outcome.limit}
        reason = ""
        if outcome.limit:
            other = _("Stopped by the limit %(limit)s.") % {"limit": outcome.limit}
            reason = _ENDS.get(outcome.limit, other)
        return [ScoreValue(self.kind, float(not outcome.limit), reason=reason, details=details)]


_ENDS = {
    "repeat_stop": gettext_noop("It went in circles, repeating the same call."),
    "failure_stop": gettext_noop("One of its tools failed again and again."),
    "max_steps": gettext_noop("It used up its steps."),
    "max_tool_calls": gettext_noop("It used up its tool calls."),
    "max_seconds": gettext_noop("It used up its time."),
    "max_tokens": gettext_noop("It used up its tokens."),
}


def _is_among(call: Call, others: Sequence[Call]) -> bool:
    return any(one.name == call.name and one.arguments == call.arguments for one in others)


def calls_match(
    expected: Sequence[Mapping[str, Any]], made: Sequence[Call], *, is_ordered: bool = False
) -> tuple[list[int], list[dict[str, Any]]]:
    """Pair expected calls with those that were made.

    Args:
        expected: ``name`` and ``arguments``, where each argument is the list of its allowed values.

    Returns:
        Places in ``made`` of the calls that fit, and per expected call that none fits, how the nearest one differs.
    """
    free = list(range(len(made)))
    found: list[int] = []
    differences: list[dict[str, Any]] = []
    for call in expected:
        named = [at for at in free if made[at].name == call["name"] and not made[at].is_error]
        if is_ordered and found:
            named = [at for at in named if at > found[-1]]
        gaps = {at: argument_diff(call["arguments"], made[at].arguments) for at in named}
        fitting = next((at for at in named if not gaps[at]), None)
        if fitting is not None:
            free.remove(fitting)
            found.append(fitting)
            continue
        nearest = min(gaps.values(), key=len, default=None)
        differences.append({"name": call["name"], "arguments": nearest, "is_missing": nearest is None})
    return found, differences


def argument_diff(
    allowed: Mapping[str, Sequence[Any]], given: Mapping[str, Any]
) -> dict[str, dict[str, Any]]:
    """Return per argument that does not fit what is allowed and what was given; {} when all fit."""
    gaps: dict[str, dict[str, Any]] = {}
    for name in {*allowed, *given}:
        choices = allowed.get(name)
        if choices is None:
            gaps[name] = {"allowed": [], "given": given[name]}
        elif name not in given:
            if "" not in choices:
                gaps[name] = {"allowed": list(choices), "given": None}
        elif not any(_same(given[name], choice) for choice in choices):
            gaps[name] = {"allowed": list(choices), "given": given[name]}
    return gaps


def _same(given: Any, wanted: Any) -> bool:
    if isinstance(given, bool) or isinstance(wanted, bool):
        return given is wanted
    if isinstance(given, int | float) and isinstance(wanted, int | float):
        return float(given) == float(wanted)
    if isinstance(given, str) and isinstance(wanted, str):
        return _plain(given) == _plain(wanted)
    if isinstance(given, list) and isinstance(wanted, list):
        return len(given) == len(wanted) and all(map(_same, given, wanted))
    if isinstance(given, dict) and isinstance(wanted, dict):
        return not argument_diff(wanted, given)
    return bool(given == wanted)


def _plain(text: str) -> str:
    """Return a text as BFCL compares it: neither case, blanks nor the marks of dates, numbers and paths count."""
    return _MARKS.sub("", text).lower().replace("'", '"')


def _allowing(value: Any) -> Any:
    """Return a value with each field of an object as the list of its allowed values, as BFCL writes them."""
    if isinstance(value, Mapping):
        return {key: [_allowing(part)] for key, part in value.items()}
    return [_allowing(part) for part in value] if isinstance(value, list) else value


def _expected(row: Record) -> list[dict[str, Any]]:
    calls = [(c.name, c.arguments) for m in own_messages(row) for c in m.tool_calls]
    if not any(m.tool_calls for m in row.messages):
        calls = [(step.action, step.input) for step in row.steps if step.action]
    allowed = row.meta.get(ALLOWED) or []
    return [
        {"name": name, "arguments": allowed[at] if at < len(allowed) else _allowing(arguments)}
        for at, (name, arguments) in enumerate(calls)
    ]
