"""How a target used its tools: the calls that were expected, and those that are forbidden."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from pydantic import Field

from apps.datasets.formats.bfcl import ALLOWED
from apps.datasets.record import Record
from apps.evaluations.scorers.base import Call, Outcome, ScoreValue, unscored
from apps.evaluations.scorers.text import RuleScorer
from apps.evaluations.turns import own_messages


class ToolCalls(RuleScorer):
    """Whether the expected calls were made with the expected arguments (BFCL's AST match: values, not wording).

    Expected are the calls of the row's trace, in a conversation those after its last question. ``meta["allowed_arguments"]`` may hold, per call in order, a list of
    allowed values for each argument; "" in such a list allows to leave the argument out, as BFCL writes it.
    """

    kind: ClassVar[str] = "tool_calls"
    is_ordered: bool = False
    forbids_others: bool = Field(False, description="Further calls cost precision.")

    def score(self, row: Record, outcome: Outcome) -> list[ScoreValue]:
        """Score the calls; ``details["differences"]`` says per expected call what was otherwise."""
        expected = _expected(row)
        if not expected:
            return [unscored(self.kind, "The row expects no tool call.")]
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

    def score(self, row: Record, outcome: Outcome) -> list[ScoreValue]:
        """Score the calls."""
        called = sorted({call.name for call in outcome.calls if self._forbids(call.name)})
        reason = f"Called: {', '.join(called)}." if called else ""
        return [ScoreValue(self.kind, float(not called), reason=reason)]

    def _forbids(self, name: str) -> bool:
        return any(
            name.startswith(rule[:-1]) if rule.endswith("*") else name == rule
            for rule in self.names
        )


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
        differences.append(
            {"name": call["name"], "arguments": nearest, "is_missing": nearest is None}
        )
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
        return " ".join(given.lower().split()) == " ".join(wanted.lower().split())
    if isinstance(given, list) and isinstance(wanted, list):
        return len(given) == len(wanted) and all(map(_same, given, wanted))
    if isinstance(given, dict) and isinstance(wanted, dict):
        return set(given) == set(wanted) and all(_same(given[k], wanted[k]) for k in given)
    return bool(given == wanted)


def _expected(row: Record) -> list[dict[str, Any]]:
    calls = [(c.name, c.arguments) for m in own_messages(row) for c in m.tool_calls]
    if not any(m.tool_calls for m in row.messages):
        calls = [(step.action, step.input) for step in row.steps if step.action]
    allowed = row.meta.get(ALLOWED) or []
    return [
        {
            "name": name,
            "arguments": allowed[at]
            if at < len(allowed)
            else {key: [value] for key, value in arguments.items()},
        }
        for at, (name, arguments) in enumerate(calls)
    ]
