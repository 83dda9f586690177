"""The course of trials: start the next ones, keep answers and scores, end the experiment with its last one.

Every change of a trial's state is made under its experiment's lock, so that the number of trials at work, the budget and
the end are decided by one at a time.
"""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal

from django.db.models import Count, F, Max, Q, Sum
from django.utils import timezone

from apps.evaluations.models import (
    Experiment,
    ExperimentState,
    KeptScores,
    RubricVersion,
    Score,
    ScoreAuthor,
    Trial,
    TrialState,
)
from apps.evaluations.outcomes import outcome_json
from apps.evaluations.scorers.base import Outcome, Scorer, ScoreValue
from apps.evaluations.selectors import arm_scores_counted
from apps.evaluations.series import pack
from jobs.services import job_enqueue
from runs.storable import json_storable, text_storable
from tenancy.actors import Actor, system_actor

TRIAL_JOB = "evaluations.trial_run"
_AT_WORK = (TrialState.ANSWERING, TrialState.SCORING)
_MOST_ERROR = 500


def experiment_locked(experiment_id: int) -> Experiment:
    """Return the experiment with its lock; call inside a transaction."""
    row: Experiment = (
        Experiment.objects.select_for_update(of=("self",))
        .select_related("tenant")
        .get(pk=experiment_id)
    )
    return row


def trials_start(experiment: Experiment) -> int:
    """Start trials while there is room, and end the experiment when none is left; its lock is held.

    Returns:
        How many were started.
    """
    if experiment.state != ExperimentState.RUNNING:
        return 0
    trials = Trial.objects.filter(experiment=experiment)
    counts = trials.aggregate(
        at_work=Count("pk", filter=Q(state__in=_AT_WORK)),
        pending=Count("pk", filter=Q(state=TrialState.PENDING)),
    )
    room = experiment.concurrency - counts["at_work"]
    if not counts["pending"]:
        if not counts["at_work"]:
            experiment.state = ExperimentState.COMPLETED
            experiment.finished_at = timezone.now()
            experiment.save(update_fields=["state", "finished_at"])
            _scores_keep(experiment)
        return 0
    if experiment.budget_usd is not None:
        room = min(room, _affordable(experiment, counts["at_work"]))
        if room <= 0 and not counts["at_work"]:
            experiment.state = ExperimentState.PAUSED
            experiment.reason = "The budget is used up. Raise it to go on."
            experiment.save(update_fields=["state", "reason"])
            return 0
    chosen = list(
        trials.filter(state=TrialState.PENDING).order_by("repeat", "position", "arm")[
            : max(0, room)
        ]
    )
    for trial in chosen:
        _enqueue(experiment, trial)
        trial.state = TrialState.ANSWERING
    Trial.objects.bulk_update(chosen, ["state", "job"])
    return len(chosen)


def _scores_keep(experiment: Experiment) -> None:
    """Keep what the arms scored, packed: nothing of it changes after the end, and comparisons read it at once."""
    KeptScores.objects.bulk_create(
        KeptScores(tenant_id=experiment.tenant_id, arm=arm, data=pack(arm_scores_counted(arm)))
        for arm in experiment.arms.all()
    )


def trial_answered(trial: Trial, outcome: Outcome, *, is_next_job: bool) -> None:
    """Keep a target's answer, in the current transaction.

    Args:
        is_next_job: the job of the answer ends here: scoring is another one's.
    """
    trial.answer = text_storable(outcome.text)
    trial.outcome = json_storable(outcome_json(outcome))
    trial.error = text_storable(outcome.error)[:_MOST_ERROR]
    trial.latency_ms = outcome.latency_ms
    trial.cost_usd = None if outcome.cost_usd is None else Decimal(f"{outcome.cost_usd:.8f}")
    trial.state = TrialState.SCORING
    if is_next_job:
        _enqueue(trial.experiment, trial)
    trial.save()


def scores_write(
    trial: Trial,
    scores: Sequence[tuple[Scorer, RubricVersion | None, Sequence[ScoreValue]]],
    judge_usd: float,
) -> None:
    """Keep a trial's scores and end it, in the current transaction; the next trial starts in its place."""
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
    ended = TrialState.FAILED if trial.error and not trial.answer else TrialState.DONE
    Trial.objects.filter(pk=trial.pk).update(
        state=ended,
        finished_at=timezone.now(),
        judge_usd=F("judge_usd") + Decimal(f"{judge_usd:.8f}"),
    )
    trials_start(experiment)


def trial_fail(trial_id: int, message: str) -> None:
    """End a trial without scores, in the current transaction; harmless when it has ended."""
    known = Trial.objects.filter(pk=trial_id).values_list("experiment_id", flat=True).first()
    if known is None:
        return
    experiment = experiment_locked(known)
    ended = Trial.objects.filter(pk=trial_id, state__in=_AT_WORK).update(
        state=TrialState.FAILED,
        error=text_storable(message)[:_MOST_ERROR],
        finished_at=timezone.now(),
    )
    if ended:
        trials_start(experiment)


def spent_usd(experiment: Experiment) -> Decimal:
    """Return what an experiment's answers and judges have cost, as far as prices are known."""
    totals = Trial.objects.filter(experiment=experiment).aggregate(
        answers=Sum("cost_usd"), judges=Sum("judge_usd")
    )
    return (totals["answers"] or Decimal(0)) + (totals["judges"] or Decimal(0))


def _affordable(experiment: Experiment, at_work: int) -> int:
    """Return how many more trials fit, each reckoned at the dearest so far, one at a time until that is known."""
    assert experiment.budget_usd is not None  # noqa: S101 - asked by the caller
    dearest = Trial.objects.filter(experiment=experiment, finished_at__isnull=False).aggregate(
        most=Max(F("cost_usd") + F("judge_usd"))
    )["most"]
    left = experiment.budget_usd - spent_usd(experiment)
    if left <= 0:
        return 0
    if dearest is None:
        return 1 - at_work
    if dearest == 0:
        return experiment.concurrency
    return int(left / dearest) - at_work


def _enqueue(experiment: Experiment, trial: Trial) -> None:
    actor: Actor = system_actor(experiment.tenant_id, experiment.created_by_id)
    trial.job = job_enqueue(
        tenant=experiment.tenant,
        actor=actor,
        kind=TRIAL_JOB,
        payload={"trial_id": trial.pk},
        topic=f"experiment:{experiment.pk}",
    )
