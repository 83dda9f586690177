"""Runs whose model answers later: while a call is away nobody works on the run, and it goes on from its journal."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from runs.models import Run, RunStatus
from runs.recorder import Recorder
from runs.transcript import STEP_RESET
from runs.writes import LastWrite
from toolloop.messages import Turn
from toolloop.reservations import BudgetReservations
from toolloop.tokens import Usage


@dataclass(frozen=True, slots=True)
class Later:
    """How a run asks a model that may answer a day later (``toolloop.batches.base.AnswersLater``).

    Attributes:
        reservations: holds the money of calls, and has what was used recorded; the run records nothing of its turns.
        turn_begins: told the number of each turn before its model is asked.
        postponed: writes the caller's rows in the transaction that lets go of run and job. Who has the answer gives the
            run another job.
    """

    reservations: BudgetReservations
    turn_begins: Callable[[int], None]
    postponed: Callable[[], None]


def usage_of(turns: list[Turn]) -> Usage:
    """Return what a run's turns have used, whose records are not the run's."""
    return sum((turn.usage for turn in turns), Usage())


async def run_postpone(run: Run, step: int, recorder: Recorder, later: Later) -> None:
    """End this attempt and its job: the run waits for an answer, and no worker waits with it."""

    def let_go(written: LastWrite) -> None:
        run.status = RunStatus.QUEUED
        run.save(update_fields=["status"])
        later.postponed()

    await recorder.finish(STEP_RESET, {"step": step, "reason": "answers_later"}, let_go)
