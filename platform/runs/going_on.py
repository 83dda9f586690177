"""Whether a run may go on: asked before each further model turn, and before calls of tools that no policy guards."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from basics.errors import Denied
from budgets.ledger import ANY_BUDGET
from runs.actors import actor_now, is_person, person_with
from runs.models import Run
from runs.withheld import SOURCE_LOST, lost_of
from tenancy.actors import Actor

_BUDGET = f"SELECT 1 AS place, {ANY_BUDGET} AS has_budget"


class GoingOn:
    """Lets a run go on only while its person or key is here, and may still read what it has read.

    Its model would be told again what they have lost.

    Args:
        run: which one.
        budget_known: told each time whether the workspace has any budget; None where the statements did not ask that.
    """

    def __init__(self, run: Run, budget_known: Callable[[bool | None], None]) -> None:
        self._run, self._budget_known = run, budget_known
        self._known: Actor | None = None
        # The statement of what is known, kept: Django takes a millisecond to write it.
        self._lost: tuple[str, dict[str, Any]] = ("", {})

    def require(self) -> None:
        """Ask once; a person's rights and what the run has read are one statement as long as the rights stay the same.

        Raises:
            Denied: ``actor_gone``; ``source_lost``.
        """
        run = self._run
        if run.request.get("actor", {}).get("kind") == "system":
            return
        now: Actor
        is_lost: bool | None = None
        has_budget: bool | None = None
        if self._known is not None:
            now, is_lost, has_budget = _person_and_lost(run, self._lost)
        elif is_person(run):
            now, ((has_budget,),) = person_with(run.tenant_id, run.user_id, _BUDGET, {})
        else:
            now = actor_now(run)
        if is_lost is None or now != self._known:  # what they may read was not asked, or with other rights
            rows = lost_of(now, run.pk)
            is_lost = rows is not None and rows.exists()
            self._known = None
            if rows is not None and is_person(run):
                self._known = now
                self._lost = _named(*rows.values_list("run_id")[:1].query.sql_with_params())
        if is_lost:
            raise Denied("source_lost", SOURCE_LOST)
        self._budget_known(has_budget)


def _person_and_lost(run: Run, asked: tuple[str, dict[str, Any]]) -> tuple[Actor, bool, bool]:
    """Return a run's person with the rights of now, whether it has read what they may not read by those they had, and
    whether the workspace has any budget, all of one moment.

    Args:
        asked: the statement that finds something they may not read, and its values.
    """
    lost, values = asked
    query = f"SELECT 1 AS place, EXISTS ({lost}) AS is_lost, {ANY_BUDGET} AS has_budget"
    actor, ((is_lost, has_budget),) = person_with(run.tenant_id, run.user_id, query, values)
    return actor, is_lost, has_budget


def _named(statement: str, values: tuple[Any, ...]) -> tuple[str, dict[str, Any]]:
    """Return a statement of Django's with its values by name, to go with others that have names."""
    first, *others = statement.split("%s")
    named = "".join(f"%(lost{at})s{text}" for at, text in enumerate(others))
    return first + named, {f"lost{at}": value for at, value in enumerate(values)}
