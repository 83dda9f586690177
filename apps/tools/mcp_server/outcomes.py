"""What became of calls from outside of a conversation, for whom they were made."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from apps.tools.calls.services import RUN_KIND
from basics.errors import Missing
from runs.call_log import calls_withhold
from runs.models import ACTIVE, Run, RunStatus, ToolCall, ToolCallStatus
from runs.selectors import decision_list, run_get
from runs.withheld import NOTHING, runs_withheld
from tenancy.actors import Actor


@dataclass(frozen=True, slots=True)
class CallsOutcome:
    """A run of calls: how it stands, and what each call that has ended said."""

    run: Run
    calls: list[ToolCall]
    reasons: list[str]

    @property
    def is_error(self) -> bool:
        """Tell whether it has ended, and some call not well."""
        if self.run.status in ACTIVE:
            return False
        is_whole = self.run.status == RunStatus.COMPLETED
        return not is_whole or any(c.status != ToolCallStatus.SUCCEEDED for c in self.calls)

    def text(self) -> str:
        """Say it in words, with the results."""
        if self.run.status == RunStatus.PARKED:
            why = " ".join(self.reasons)
            return f"Run {self.run.pk} still waits for a person's decision. {why}".strip()
        if self.run.status in ACTIVE:
            return f"Run {self.run.pk} is under way. Ask again in a moment."
        if self.run.status != RunStatus.COMPLETED and not self.calls:
            why = self.run.error_message or self.run.get_status_display()
            return f"Run {self.run.pk} ended without a result: {why}"
        return "\n\n".join(call.content for call in self.calls)

    def facts(self) -> dict[str, Any]:
        """Return it for a program."""
        return {
            "run": self.run.pk,
            "status": str(self.run.status),
            "calls": [
                {"name": c.name, "status": str(c.status), "content": c.content, "error_code": c.error_code}
                for c in self.calls
            ],
        }


def outcome_get(*, actor: Actor, pk: int) -> CallsOutcome:
    """Return how one of the actor's own runs of calls stands.

    Raises:
        Denied: without the right ``run.read``.
        Missing: there is no such run for the actor.
    """
    run = run_get(actor=actor, pk=pk)
    if run.kind != RUN_KIND:
        raise Missing("run")
    calls: list[ToolCall] = []
    if run.status not in ACTIVE:
        calls = list(ToolCall.objects.visible_to(actor).filter(run=run).order_by("pk"))
        calls_withhold(actor, calls)
    found = runs_withheld(actor, [run.pk]).get(run.pk, NOTHING)
    run.error_message = found.text(run.error_message)
    return CallsOutcome(run, calls, [found.text(d.reason) for d in decision_list(run) if d.reason])
