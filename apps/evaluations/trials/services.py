"""The course of trials: start the next ones, keep answers and scores, end the experiment with its last one.

Every change of a trial's state is made under its experiment's lock, so that the number of trials at work, the budget and
the end are decided by one at a time.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal

from django.db.models import DateTimeField, F, Func
from django.utils import timezone

from apps.evaluations.models import (
    Experiment,
    ExperimentState,
    KeptScores,
    Preference,
    RubricVersion,
    Score,
    ScoreAuthor,
    Trial,
    TrialState,
)
from apps.evaluations.results.outcomes import outcome_json
from apps.evaluations.results.selectors import arm_scores_counted
from apps.evaluations.results.series import pack
from apps.evaluations.scorers.base import Scorer, ScoreValue, TargetResult
from apps.evaluations.trials.batches import batches_finish, carrier_wake, experiment_halt, experiment_note
from apps.evaluations.trials.stopping import arms_stop
from basics.texts import gettext as _
from jobs.services import job_enqueue
from runs.models import Run, RunStatus
from tenancy.actors import Actor, system_actor
from toolloop.storable import json_storable, text_storable

TRIAL_JOB = "evaluations.trial_run"
AT_WORK = (TrialState.ANSWERING, TrialState.SCORING)
_CLOCK = Func(function="clock_timestamp", output_field=DateTimeField())


@dataclass(frozen=True, slots=True)
class JudgeUse:
    """What a trial's judges were asked, how much of it was known already, and what the rest cost."""

    spent_usd: float = 0.0
    asked: int = 0
    cached: int = 0


def experiment_locked(experiment_id: int) -> Experiment:
    """Return the experiment with its lock; call inside a transaction."""
    row: Experiment = (
        Experiment.objects.select_for_update(of=("self",)).select_related("tenant").get(pk=experiment_id)
    )
    return row


def trials_start(experiment: Experiment) -> int:
    """Start trials while there is room, and end the experiment when none is left; its lock is held.

    It reads the trials at work and the next ones, each by an index of its own: how many there are in all costs nothing.

    Returns:
        How many were started.
    """
    if experiment.state != ExperimentState.RUNNING:
        return 0
    trials = Trial.objects.filter(experiment=experiment)
    at_work = trials.filter(state__in=AT_WORK).count()
    room = experiment.concurrency - at_work
    # By batch each call waits for its money before it is sent, and holds it.
    if experiment.budget_usd is not None and not experiment.is_batched:
        room = min(room, _affordable(experiment, at_work))
    pending = trials.filter(state=TrialState.PENDING).order_by("repeat", "position", "arm")
    chosen = list(pending[: max(room, 0 if at_work else 1)])
    if not chosen:
        if not at_work and trials.filter(state=TrialState.AWAY).exists():
            carrier_wake(experiment)
        elif not at_work:
            _complete(experiment)
        return 0
    if room <= 0:
        experiment_halt(experiment, _("The budget is used up. Raise it to continue."))
        return 0
    for trial in chosen:
        _enqueue(experiment, trial)
        if trial.run_id is not None:  # It was let go while its call was away.
            Run.objects.filter(pk=trial.run_id, status=RunStatus.QUEUED).update(job=trial.job)
        trial.state = TrialState.SCORING if trial.answered_at else TrialState.ANSWERING
    Trial.objects.bulk_update(chosen, ["state", "job"])
    return len(chosen)


def _complete(experiment: Experiment) -> None:
    experiment.state = ExperimentState.COMPLETED
    experiment.finished_at = timezone.now()
    experiment.save(update_fields=["state", "finished_at"])
    experiment_note(experiment)
    _scores_keep(experiment)
    if experiment.is_batched:
        batches_finish(experiment, ends=True)


def _scores_keep(experiment: Experiment) -> None:
    """Keep what the arms scored, packed: nothing of it changes after the end, and comparisons read it at once."""
    KeptScores.objects.bulk_create(
        (
            KeptScores(tenant_id=experiment.tenant_id, arm=arm, data=pack(arm_scores_counted(arm)))
            for arm in experiment.arms.all()
        ),
        ignore_conflicts=True,  # a repeated job comes to the end once more
    )


def trial_answered(trial: Trial, outcome: TargetResult, *, is_next_job: bool) -> None:
    """Keep a target's answer, in the current transaction, which holds the experiment's lock from here on.

    Args:
        is_next_job: the job of the answer ends here: scoring is another one's.
    """
    experiment = experiment_locked(trial.experiment_id)
    trial.answer = text_storable(outcome.text)
    trial.outcome = json_storable(outcome_json(outcome))
    trial.error = text_storable(outcome.error)
    # How long a batch takes says nothing about who answers.
    trial.latency_ms = None if experiment.is_batched else outcome.latency_ms
    trial.cost_usd = None if outcome.cost_usd is None else Decimal(f"{outcome.cost_usd:.8f}")
    trial.state = TrialState.SCORING
    if trial.cost_usd:
        experiment.spent_usd += trial.cost_usd
        experiment.save(update_fields=["spent_usd"])
    if is_next_job:
        _enqueue(trial.experiment, trial)
    trial.save()
    # Of the database, and under the lock: answers are in the order in which they can be seen.
    Trial.objects.filter(pk=trial.pk).update(answered_at=_CLOCK)
    trial.refresh_from_db(fields=["answered_at"])


def scores_write(
    trial: Trial,
    scores: Sequence[tuple[Scorer, RubricVersion | None, Sequence[ScoreValue]]],
    use: JudgeUse,
    preferences: Sequence[Preference] = (),
) -> None:
    """Keep a trial's scores and verdicts and end it, in the current transaction; the next trial starts in its place."""
    experiment = experiment_locked(trial.experiment_id)
    Score.objects.bulk_create(
        [
            Score(
                tenant_id=trial.tenant_id,
                trial=trial,
                name=value.name[:60],
                value=value.value,
                level=value.level,
                reason=text_storable(value.reason),
                evidence=text_storable(value.evidence),
                details=json_storable(dict(value.details)),
                author_kind=ScoreAuthor.JUDGE if scorer.is_judge else ScoreAuthor.RULE,
                author=scorer.author[:300],
                rubric_version=version,
            )
            for scorer, version, values in scores
            for value in values
        ],
        ignore_conflicts=True,  # a job that was repeated after it had written
    )
    Preference.objects.bulk_create(preferences, ignore_conflicts=True)
    ended = TrialState.FAILED if trial.error and not trial.answer else TrialState.DONE
    Trial.objects.filter(pk=trial.pk).update(
        state=ended,
        finished_at=timezone.now(),
        judge_usd=F("judge_usd") + Decimal(f"{use.spent_usd:.8f}"),
        judge_asked=F("judge_asked") + use.asked,
        judge_cached=F("judge_cached") + use.cached,
    )
    judges = Decimal(f"{use.spent_usd:.8f}")
    experiment.spent_usd += judges
    if trial.cost_usd is not None:
        cost = trial.cost_usd + trial.judge_usd + judges
        experiment.dearest_usd = max(cost, experiment.dearest_usd or Decimal(0))
    _ended(experiment)


def trial_fail(trial_id: int, message: str) -> None:
    """End a trial without scores, in the current transaction; harmless when it has ended.

    Of a stopped experiment it is stopped: it may go on.
    """
    known = Trial.objects.filter(pk=trial_id).values_list("experiment_id", flat=True).first()
    if known is None:
        return
    experiment = experiment_locked(known)
    at_work = Trial.objects.filter(pk=trial_id, state__in=AT_WORK)
    if experiment.state == ExperimentState.STOPPED:
        at_work.update(state=TrialState.STOPPED)
        return
    ended = at_work.update(state=TrialState.FAILED, error=text_storable(message), finished_at=timezone.now())
    if ended:
        _ended(experiment)


def _ended(experiment: Experiment) -> None:
    """Count a trial that has ended, look for dominated arms where it is time, and go on with the next."""
    experiment.ended_count += 1
    if experiment.stops_dominated and experiment.ended_count >= experiment.next_look > 0:
        arms_stop(experiment)
        experiment.next_look *= 2
    experiment.save(update_fields=["spent_usd", "dearest_usd", "ended_count", "next_look"])
    trials_start(experiment)


def trial_wait(trial: Trial, reason: str) -> None:
    """Have a trial wait and pause its experiment, in the current transaction: there is no money to go on.

    An answer that is there already stays, and is scored later.
    """
    experiment = experiment_locked(trial.experiment_id)
    Trial.objects.filter(pk=trial.pk, state__in=AT_WORK).update(state=TrialState.PENDING, job=None, run=None)
    experiment_halt(experiment, reason)


def trial_away(trial: Trial, keys: Sequence[str]) -> None:
    """Have a trial wait for answers that come with a batch, in the current transaction, which ends its job.

    Args:
        keys: of their lines.
    """
    experiment = experiment_locked(trial.experiment_id)
    to = {ExperimentState.RUNNING: TrialState.AWAY, ExperimentState.STOPPED: TrialState.STOPPED}
    state = to.get(ExperimentState(experiment.state), TrialState.PENDING)
    at_work = Trial.objects.filter(pk=trial.pk, state__in=AT_WORK)
    at_work.update(state=state, waits_for=keys if state == TrialState.AWAY else [])
    trials_start(experiment)


def _affordable(experiment: Experiment, at_work: int) -> int:
    """Return how many more trials fit, each reckoned at the dearest so far, one at a time until that is known."""
    assert experiment.budget_usd is not None  # noqa: S101 - asked by the caller
    left = experiment.budget_usd - experiment.spent_usd
    if left <= 0:
        return 0
    if experiment.dearest_usd is None:
        return 1 - at_work
    if experiment.dearest_usd == 0:
        return experiment.concurrency
    return int(left / experiment.dearest_usd) - at_work


def _enqueue(experiment: Experiment, trial: Trial) -> None:
    actor: Actor = system_actor(experiment.tenant_id, experiment.created_by_id)
    trial.job = job_enqueue(
        tenant=experiment.tenant,
        actor=actor,
        kind=TRIAL_JOB,
        payload={"trial_id": trial.pk},
        topic=experiment.topic,
    )
