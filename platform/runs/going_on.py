"""Whether a run may go on: asked before each further model turn, and before calls of tools that no policy guards."""

from __future__ import annotations

from collections.abc import Callable

from django.db import connection

from basics.errors import Denied
from budgets.ledger import ANY_BUDGET
from runs.actors import actor_with
from runs.models import Run
from runs.withheld import LOST_RUN, SOURCE_LOST, lost_condition
from tenancy.actors import Actor


class GoingOn:
    """Lets a run go on only while its person or key is here, and may still read what it has read.

    Its model would be told again what they have lost.

    Args:
        run: which one.
        budget_known: told each time whether the workspace has any budget.
        actor: whom it acts for with the rights of a moment ago, which saves finding that out; None where that isn't known.
    """

    def __init__(self, run: Run, budget_known: Callable[[bool], None], actor: Actor | None = None) -> None:
        self._run, self._budget_known = run, budget_known
        self._known = actor

    def require(self) -> None:
        """Ask once; their rights and what the run has read are one statement as long as the rights stay the same.

        Raises:
            Denied: ``actor_gone``; ``source_lost``.
        """
        run = self._run
        if run.request.get("actor", {}).get("kind") == "system":
            return
        now, is_lost, has_budget = _actor_and_lost(run, self._known)
        if now != self._known:  # what they may read was not asked, or with other rights
            is_lost, self._known = _is_lost(run, now), now
        if is_lost:
            raise Denied("source_lost", SOURCE_LOST)
        self._budget_known(has_budget)


def _actor_and_lost(run: Run, known: Actor | None) -> tuple[Actor, bool, bool]:
    """Return a run's person or key with the rights of now, whether it has read what they may not read by those they had, and
    whether the workspace has any budget, all of one moment.

    Args:
        known: the same with the rights they had; None for not known.
    """
    lost, values = ("false", {}) if known is None else lost_condition(known)
    query = f"SELECT 1 AS place, {lost} AS is_lost, {ANY_BUDGET} AS has_budget"
    actor, ((is_lost, has_budget),) = actor_with(run, query, {**values, LOST_RUN: run.pk})
    return actor, is_lost, has_budget


def _is_lost(run: Run, actor: Actor) -> bool:
    lost, values = lost_condition(actor)
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT {lost}", {**values, LOST_RUN: run.pk})
        return bool(cursor.fetchone()[0])
