"""Begin experiments: first the check of their judges on gold answers, then their trials."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import Any

from django.db import transaction

from apps.evaluations.judges.claim_rubrics import CLAIMS
from apps.evaluations.judges.drift import gold_items
from apps.evaluations.judges.scoring import is_lexical, judge_options, judge_rubric
from apps.evaluations.models import Experiment, JudgeCheck, RubricVersion
from apps.evaluations.trials.batches import carrier_wake, experiment_halt
from apps.evaluations.trials.services import experiment_locked, trials_start
from basics.texts import gettext as _
from jobs.models import ACTIVE, Job
from jobs.services import job_enqueue
from tenancy.actors import Actor, system_actor

CHECK_JOB = "evaluations.judge_check"
Spec = Mapping[str, Any]


def specs_to_check(*, actor: Actor, experiment: Experiment) -> list[tuple[Spec, RubricVersion]]:
    """Return the judges of an experiment that ask a model and have gold answers to be checked on."""
    found = []
    for spec in experiment.scorers:
        kind = str(spec.get("kind"))
        if kind != "rubric" and kind not in CLAIMS:
            continue
        chosen = judge_options(kind, spec.get("options") or {})
        if all(is_lexical(model) for model in chosen.models):
            continue
        if kind in CLAIMS and chosen.number is None:  # begun before these had rubrics
            continue
        version = judge_rubric(actor=actor, kind=kind, chosen=chosen)
        if version is not None and gold_items(version):
            found.append((spec, version))
    return found


def experiment_begin(experiment: Experiment, *, actor: Actor) -> None:
    """Start an experiment's trials, after a check of its judges where one is due; its lock is held.

    A check is made once for an experiment: who goes on after it has said what it found has decided.
    """
    if not check_is_due(experiment, actor=actor):
        trials_start(experiment)
        return
    if is_checking(experiment):
        return
    checking = job_enqueue(
        tenant=experiment.tenant,
        actor=system_actor(experiment.tenant_id, experiment.created_by_id),
        kind=CHECK_JOB,
        payload={"experiment_id": experiment.pk},
        topic=experiment.topic,
    )
    if experiment.budget_job is None:
        experiment.budget_job = checking.pk
        experiment.save(update_fields=["budget_job"])


def check_is_due(experiment: Experiment, *, actor: Actor) -> bool:
    """Tell whether judges of an experiment are to be checked before its trials start."""
    due = specs_to_check(actor=actor, experiment=experiment)
    return len(due) > JudgeCheck.objects.filter(experiment=experiment).count()


def is_checking(experiment: Experiment) -> bool:
    """Tell whether a check of its judges is under way; one that waits for answers is not."""
    waiting = Job.objects.filter(tenant=experiment.tenant, kind=CHECK_JOB, status__in=ACTIVE)
    return waiting.filter(payload__experiment_id=experiment.pk).exists()


def check_away(experiment_id: int) -> None:
    """Have a check wait for answers that come with a batch, in the current transaction, which ends its job."""
    carrier_wake(experiment_locked(experiment_id))


def checks_keep(experiment_id: int, checks: Sequence[JudgeCheck], *, spent_usd: float) -> None:
    """Keep what a check found, in the current transaction, and start the trials, unless a judge has drifted."""
    experiment = experiment_locked(experiment_id)
    JudgeCheck.objects.bulk_create(checks, ignore_conflicts=True)  # a job that was repeated
    experiment.spent_usd += Decimal(f"{spent_usd:.8f}")
    experiment.save(update_fields=["spent_usd"])
    drifted = [check.author for check in checks if check.is_drifted]
    if drifted:
        experiment_halt(
            experiment,
            _(
                "%(drifted)s grades the gold answers differently than before. Its scores are advisory. "
                "Continue, or calibrate it with new gold answers first."
            )
            % {"drifted": ", ".join(drifted)},
        )
        return
    trials_start(experiment)


def check_fail(experiment_id: int, message: str) -> None:
    """Pause an experiment whose judges could not be checked; going on checks them again."""
    with transaction.atomic():
        if Experiment.objects.filter(pk=experiment_id).exists():
            reason = _("The judges could not be checked. %(why)s") % {"why": message}
            experiment_halt(experiment_locked(experiment_id), reason)
