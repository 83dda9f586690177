"""The plan of an answer and how far it has come, read from the run's calls. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from toolloop.modes import PLAN_TOOL

_UNDER_WAY = ("running", "waiting")


@dataclass(frozen=True, slots=True)
class StepView:
    """One step: ``status`` is pending, running, waiting, ok, error or skipped."""

    number: int
    action: str
    description: str
    status: str
    duration_ms: int | None = None


@dataclass(frozen=True, slots=True)
class PlanView:
    """The plan that holds, and the plans before it by their number."""

    reasoning: str = ""
    steps: list[StepView] = field(default_factory=list)
    attempt: int = 1

    @property
    def done(self) -> int:
        """Count the steps that were carried out."""
        return sum(step.status in ("ok", "error") for step in self.steps)

    @property
    def failed(self) -> int:
        """Count the steps that failed."""
        return sum(step.status == "error" for step in self.steps)

    @property
    def current(self) -> StepView | None:
        """Return the step that is under way."""
        return next((step for step in self.steps if step.status in _UNDER_WAY), None)


def is_plan(call: Mapping[str, Any]) -> bool:
    """Tell whether a call (of ``runs.selectors``) wrote down a plan that was accepted."""
    arguments = call["arguments"]
    return (
        call["name"] == PLAN_TOOL
        and str(call["status"]) == "succeeded"
        and isinstance(arguments, Mapping)
        and isinstance(arguments.get("steps"), list)
    )


def plan_view(calls: Iterable[Mapping[str, Any]], *, is_over: bool) -> PlanView | None:
    """Return the plan of a run, None when it made none.

    Args:
        calls: the run's calls in their order.
        is_over: the run has ended: steps that were not begun never will be.
    """
    rows = list(calls)
    plans = [row for row in rows if is_plan(row)]
    if not plans:
        return None
    plan = plans[-1]["arguments"]
    by_turn: dict[int, list[Mapping[str, Any]]] = {}
    for row in rows:
        if row["step"] > plans[-1]["step"] and row["name"] != PLAN_TOOL:
            by_turn.setdefault(row["step"], []).append(row)
    turns = [by_turn[step] for step in sorted(by_turn)]
    steps = []
    for index, step in enumerate(s for s in plan["steps"] if isinstance(s, Mapping)):
        made = turns[index] if index < len(turns) else []
        durations = [row["duration_ms"] for row in made if row["duration_ms"] is not None]
        steps.append(
            StepView(
                number=index + 1,
                action=str(step.get("action", "")),
                description=str(step.get("description", "")),
                status=_status(made, is_over),
                duration_ms=max(durations) if durations else None,
            )
        )
    return PlanView(str(plan.get("reasoning", "")), steps, len(plans))


def _status(made: list[Mapping[str, Any]], is_over: bool) -> str:
    states = [str(row["status"]) for row in made]
    if not states:
        return "skipped" if is_over else "pending"
    for state in _UNDER_WAY:
        if state in states:
            return state
    return "ok" if "succeeded" in states else "error"
