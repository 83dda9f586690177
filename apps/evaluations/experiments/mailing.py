"""The one job that sends what an experiment by batch asks, and brings the answers back.

Trials and checks of judges write their calls down and let go of their workers. When nobody is at work any more it sends
what is wanted; when answers have come, it lets those go on that waited for them. In between it holds no worker.
"""

from __future__ import annotations

from django.db import transaction

from apps.evaluations.arms.targets import target_read
from apps.evaluations.experiments.starting import check_is_due, experiment_begin, is_checking
from apps.evaluations.models import Experiment, ExperimentState, Trial, TrialState
from apps.evaluations.results.actors import experiment_actor
from apps.evaluations.trials.batches import CARRY_JOB, experiment_halt, models_of, trials_back
from apps.evaluations.trials.services import AT_WORK, experiment_locked, trials_start
from basics.texts import gettext as _
from batches.courier import BatchRefused, Courier
from batches.engines import engine_for
from batches.selectors import batches_open, keys_waiting, models_wanted
from batches.services import batches_end
from budgets.ledger import BillingAccount
from jobs.context import JobContext, JobPostponed
from jobs.models import Job
from jobs.registry import job
from tenancy.actors import system_actor
from tenancy.models import Tenant

ATTEMPTS, DEATHS = 100, 20
"""An error, or a worker's death in one look, is tried again; what was sent and answered is kept line by line, so there is no
harm in many."""


def carry_ended(ended: Job) -> None:
    """Pause an experiment whose calls nobody carries any more, with the reason."""
    if ended.status != "cancelled":
        _halt(ended.payload["experiment_id"], ended.error_message or _("The worker was lost."))


@job(CARRY_JOB, lane="loop", max_attempts=ATTEMPTS, max_deaths=DEATHS, on_end=carry_ended)
async def experiment_carry(ctx: JobContext, *, experiment_id: int) -> None:
    """Send and collect for an experiment until nothing of it is away; safe to run again at any point.

    Raises:
        JobPostponed: batches are out.
        DomainError: its person has left, or a model has no key any more; the experiment is paused with that reason.
    """
    courier = await ctx.in_db(_courier, ctx, experiment_id)
    delay_s = 0.0
    if courier is not None:
        try:
            await courier.collect()
            if await ctx.in_db(_advance, experiment_id):
                left = await courier.send()
                if left and not await ctx.in_db(_open, ctx.tenant_id, experiment_id):
                    await ctx.in_db(_halt, experiment_id, left)
            delay_s = await courier.look_again_s()
        except BatchRefused as refused:
            await ctx.in_db(_halt, experiment_id, refused.reason)
        finally:
            await courier.aclose()
    if await ctx.in_db(_goes_on, ctx, experiment_id):
        raise JobPostponed(delay_s)


def _courier(ctx: JobContext, experiment_id: int) -> Courier | None:
    """Return who carries for an experiment; None where it does not run any more."""
    rows = Experiment.objects.select_related("tenant").prefetch_related("arms")
    experiment = rows.filter(pk=experiment_id, state=ExperimentState.RUNNING).first()
    if experiment is None:
        return None
    actor, tenant = experiment_actor(experiment), experiment.tenant
    targets = [target_read(arm.target) for arm in experiment.arms.all()]
    models = models_of(tenant=tenant, actor=actor, targets=targets, specs=experiment.scorers)
    # A default model may have changed since.
    models.update(models_wanted(tenant.pk, experiment.topic))
    models.update(batch.model for batch in batches_open(tenant.pk, experiment.topic))
    return Courier(
        billing_account=BillingAccount(
            tenant.pk, actor.user_id, actor.api_key_id, job_id=experiment.budget_job
        ),
        owner=experiment.topic,
        in_db=ctx.in_db,
        engines={model: engine_for(tenant, model) for model in sorted(models)},
    )


def _advance(experiment_id: int) -> bool:
    """Let what has its answers go on; tell whether nobody is at work, so that what is wanted is to be sent now."""
    with transaction.atomic():
        experiment = experiment_locked(experiment_id)
        if experiment.state != ExperimentState.RUNNING:
            return False
        actor = experiment_actor(experiment)
        if not check_is_due(experiment, actor=actor):
            trials_back(experiment)
            trials_start(experiment)
        elif not keys_waiting(experiment.tenant_id, experiment.topic):
            experiment_begin(experiment, actor=actor)
        at_work = Trial.objects.filter(experiment=experiment, state__in=AT_WORK).exists()
        is_idle = not at_work and not is_checking(experiment)
        return is_idle and experiment.state == ExperimentState.RUNNING


def _open(tenant_id: int, experiment_id: int) -> bool:
    return bool(batches_open(tenant_id, Experiment(pk=experiment_id).topic))


def _halt(experiment_id: int, reason: str) -> None:
    with transaction.atomic():
        if Experiment.objects.filter(pk=experiment_id).exists():
            experiment_halt(experiment_locked(experiment_id), reason)


def _goes_on(ctx: JobContext, experiment_id: int) -> bool:
    """Tell whether to look again; else end the job, under the lock under which others ask whether somebody carries."""
    with transaction.atomic():
        ctx.advanced()
        ctx.hold()
        if not Experiment.objects.filter(pk=experiment_id).exists():  # deleted with its dataset
            tenant = Tenant.objects.get(pk=ctx.tenant_id)
            actor, owner = system_actor(tenant.pk, ctx.user_id), Experiment(pk=experiment_id).topic
            batches_end(tenant=tenant, actor=actor, owner=owner, ends=True)
            ctx.complete()
            return False
        experiment = experiment_locked(experiment_id)
        tenant_id, owner = experiment.tenant_id, experiment.topic
        if experiment.state == ExperimentState.RUNNING and (
            batches_open(tenant_id, owner)
            or keys_waiting(tenant_id, owner)
            or Trial.objects.filter(experiment=experiment, state=TrialState.AWAY).exists()
        ):
            return True
        ctx.complete()
        return False
