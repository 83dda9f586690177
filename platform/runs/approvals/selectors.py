"""Reads of what waits for a person's decision, and of what was decided, over all runs: as their reader may see it now."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from django.db.models import Q, QuerySet
from django.utils import timezone

from basics.errors import Missing
from runs.approvals.deciders import decidable, readable
from runs.models import DecisionStatus, PendingDecision, RunStatus
from runs.withheld import NOTHING, runs_withheld
from tenancy.actors import Actor
from tenancy.shown_rows import ShownRows

_TEXTS = ("arguments", "edited_arguments", "reason", "decision_reason", "answer")
BOXES = ("to_decide", "waiting", "decided", "all")


class ShownDecisions(ShownRows[PendingDecision]):
    """Decisions without what rests on documents that their reader may not read; to say no, nobody needs more."""

    def withhold(self, reader: Actor, rows: list[Any]) -> None:
        """Take it out of fetched decisions."""
        by_run = runs_withheld(reader, (row.run_id for row in rows))
        for row in rows:
            found = by_run.get(row.run_id, NOTHING)
            for name in _TEXTS if found else ():
                setattr(row, name, found.value(getattr(row, name)))


def open_decisions() -> Q:
    """Return the condition that a decision can still be taken."""
    return Q(status=DecisionStatus.PENDING, run__status=RunStatus.PARKED, expires_at__gt=timezone.now())


def approval_list(*, actor: Actor, box: str = "all", tool: str = "") -> QuerySet[PendingDecision]:
    """Return decisions, the newest first.

    Args:
        box: ``to_decide`` are the actor's to decide now, ``waiting`` the actor has asked for and others decide,
            ``decided`` are over, ``all`` is whatever the actor may see.
        tool: only those about this tool.
    """
    actor.require("run.read")
    boxes: dict[str, Callable[[], Q]] = {
        "to_decide": lambda: open_decisions() & decidable(actor),
        "waiting": lambda: open_decisions() & Q(run__user_id=actor.user_id) & ~decidable(actor),
        "decided": lambda: ~Q(status=DecisionStatus.PENDING) & readable(actor),
        "all": lambda: readable(actor),
    }
    rows: QuerySet[PendingDecision] = ShownDecisions.of(PendingDecision, actor).filter(boxes[box]())
    if tool:
        rows = rows.filter(name=tool)
    return rows.select_related("run__user", "decided_by", "assigned_to").order_by("-pk")


def approval_get(*, actor: Actor, pk: int, **where: Any) -> PendingDecision:
    """Return one decision the actor may see. Raises Missing."""
    row = approval_list(actor=actor).filter(pk=pk, **where).first()
    if row is None:
        raise Missing("decision")
    return row


def approval_count(*, actor: Actor) -> int:
    """Return how many decisions wait for the actor, in one query."""
    if actor.user_id is None or not actor.can("run.read"):
        return 0
    rows = PendingDecision.objects.visible_to(actor).filter(open_decisions(), decidable(actor))
    return int(rows.count())
