"""Whether a run may go on: asked before each further model turn, and before calls of tools that no policy guards."""

from __future__ import annotations

from itertools import count

from basics.errors import Denied
from runs.actors import actor_now, is_person, person_with
from runs.models import Run
from runs.withheld import SOURCE_LOST, lost_of
from tenancy.actors import Actor


class GoingOn:
    """Lets a run go on only while its person or key is here, and may still read what it has read.

    Its model would be told again what they have lost.
    """

    def __init__(self, run: Run) -> None:
        self._run = run
        self._known: Actor | None = None

    def require(self) -> None:
        """Ask once; a person's rights and what the run has read are one statement as long as the rights stay the same.

        Raises:
            Denied: ``actor_gone``; ``source_lost``.
        """
        run = self._run
        if run.request.get("actor", {}).get("kind") == "system":
            return
        if self._known is None:
            now, is_lost = actor_now(run), None
        else:
            now, is_lost = _person_and_lost(run, self._known)
        if is_lost is None or now != self._known:  # what they may read was not asked, or with other rights
            rows = lost_of(now, run.pk)
            is_lost = rows is not None and rows.exists()
        self._known = now if is_person(run) and lost_of(now, run.pk) is not None else None
        if is_lost:
            raise Denied("source_lost", SOURCE_LOST)


def _person_and_lost(run: Run, known: Actor) -> tuple[Actor, bool]:
    """Return a run's person with the rights of now, and whether it has read what they may not read by those they had."""
    rows = lost_of(known, run.pk)
    if rows is None:
        return actor_now(run), False
    statement, values = rows.values_list("run_id")[:1].query.sql_with_params()
    numbers = count()
    named = statement.replace("%s", "%({})s").format(*(f"lost{next(numbers)}" for _ in values))
    query = f"SELECT 1 AS place FROM ({named}) AS lost"  # noqa: S608 - Django's
    actor, found = person_with(
        run.tenant_id, run.user_id, query, {f"lost{at}": value for at, value in enumerate(values)}
    )
    return actor, bool(found)
