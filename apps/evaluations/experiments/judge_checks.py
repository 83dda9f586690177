"""The job that checks an experiment's judges on gold answers before its trials start."""

from __future__ import annotations

from functools import partial

from django.db import transaction

from apps.evaluations.experiments.starting import (
    CHECK_JOB,
    Spec,
    check_away,
    check_fail,
    checks_keep,
    specs_to_check,
)
from apps.evaluations.judges.asking import ByBatch
from apps.evaluations.judges.drift import findings_of, gold_grade, gold_items, reference_of
from apps.evaluations.judges.scoring import scorers_make
from apps.evaluations.models import Experiment, ExperimentState, JudgeCheck, RubricVersion
from apps.evaluations.results.actors import experiment_actor
from basics.texts import gettext as _
from batches.awaited import AnswersAwaited, together
from budgets.ledger import BillingAccount
from jobs.context import JobContext
from jobs.models import Job
from jobs.registry import job
from tenancy.actors import Actor

__all__ = ["judge_check"]


def check_ended(ended: Job) -> None:
    """Pause the experiment of a check that ended without a result."""
    check_fail(ended.payload["experiment_id"], ended.error_message or _("The work was abandoned."))


@job(CHECK_JOB, lane="loop", max_attempts=3, on_end=check_ended)
async def judge_check(ctx: JobContext, *, experiment_id: int) -> None:
    """Have every judge of an experiment grade its gold answers; what was paid for is not asked again."""
    try:
        await ctx.blocking(lambda: _check(ctx, experiment_id))
    except AnswersAwaited:
        await ctx.in_db(_let_go, ctx, experiment_id)


def _let_go(ctx: JobContext, experiment_id: int) -> None:
    """Have it wait for answers that come with a batch; then another job makes the check."""
    with transaction.atomic():
        ctx.hold()
        ctx.complete()
        check_away(experiment_id)


def _check(ctx: JobContext, experiment_id: int) -> None:
    experiment = Experiment.objects.select_related("tenant").filter(pk=experiment_id).first()
    if experiment is None or experiment.state == ExperimentState.STOPPED:
        return
    actor = experiment_actor(experiment)
    specs = specs_to_check(actor=actor, experiment=experiment)
    found = together(partial(_check_one, ctx, experiment, actor, *one) for one in specs)
    with transaction.atomic():
        ctx.hold()
        checks_keep(experiment_id, [one for one, _ in found], spent_usd=sum(x for _, x in found))
        ctx.complete()


def _check_one(
    ctx: JobContext, experiment: Experiment, actor: Actor, spec: Spec, version: RubricVersion
) -> tuple[JudgeCheck, float]:
    """Return what the check of a judge found, not saved, and what it cost in USD."""
    made, asks = scorers_make(
        tenant=experiment.tenant,
        actor=actor,
        specs=[spec],
        check=ctx.check,
        attribution={"experiment": experiment.pk},
        billing_account=BillingAccount(
            experiment.tenant_id, actor.user_id, actor.api_key_id, job_id=experiment.budget_job
        ),
        # What the cache holds says how the judge graded once; asked anew, but once for an experiment.
        salt=f"check:{experiment.pk}",
        by_batch=ByBatch(experiment.topic) if experiment.is_batched else None,
    )
    ((judge, _),) = made
    items = gold_items(version)
    levels = gold_grade(judge, items)
    found = findings_of(items, levels, reference_of(version, judge.author, items))
    check = JudgeCheck(
        tenant=experiment.tenant,
        rubric_version=version,
        experiment=experiment,
        author=judge.author[:300],
        levels=levels,
        findings=[one.to_json() for one in found],
        is_drifted=any(one.is_drifted for one in found),
    )
    return check, sum(ask.spent_usd for ask in asks)
