"""Create, pause, resume and stop experiments."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from django.db import transaction
from django.db.models import Q
from django.utils import timezone
from django.utils.translation import gettext_lazy

from apps.collections.models import Collection
from apps.conversations.models import AssistantVersion
from apps.datasets.models import DatasetVersion, Split
from apps.datasets.rows.selectors import version_rows
from apps.evaluations.arms.targets import (
    MAX_ARMS,
    AssistantTarget,
    RetrieverTarget,
    Target,
    arms_named,
    target_read,
)
from apps.evaluations.compare.dominance import first_look
from apps.evaluations.experiments.choices import scorer_checked, target_checked
from apps.evaluations.experiments.fingerprints import corpus_fingerprint, documents_same_check
from apps.evaluations.experiments.starting import CHECK_JOB, experiment_begin
from apps.evaluations.judges.services import rubrics_seed
from apps.evaluations.models import EXPERIMENT_ACTIVE, Arm, Experiment, ExperimentState, Trial, TrialState
from apps.evaluations.scorers.registry import COMPARING
from apps.evaluations.trials.batches import delivery_check, experiment_halt, trials_recall
from apps.evaluations.trials.services import experiment_locked
from basics.errors import Conflict, Invalid, Missing
from basics.texts import gettext as _
from basics.texts import number_told
from batches.delivery import Delivery
from batches.services import batches_resume
from budgets.services import job_budget_set
from erasure.holds import removal_lock
from jobs.models import ACTIVE, Job
from jobs.services import job_cancel
from runs.actors import actor_facts
from runs.models import RunStatus
from tenancy.actors import Actor
from tenancy.models import Tenant
from tenancy.services import audit_record

MOST_PAIRED = 8
MAX_TRIALS, MAX_REPEATS, MAX_JUDGE_REPEATS, MAX_CONCURRENCY = 200_000, 20, 10, 50
_BATCH = 1_000


@dataclass(frozen=True, slots=True)
class ArmSpec:
    """An arm to be made: its target as JSON values, and its name ("" makes one of the target's settings)."""

    target: Mapping[str, Any]
    name: str = ""


def experiment_create(
    *,
    tenant: Tenant,
    actor: Actor,
    name: str,
    version: DatasetVersion,
    arms: Sequence[ArmSpec],
    scorers: Sequence[Mapping[str, Any]],
    split: str = "",
    repeats: int = 1,
    judge_repeats: int = 1,
    stops_dominated: bool = False,
    same_documents: bool = False,
    concurrency: int = 4,
    delivery: str = Delivery.NOW.value,
    budget_usd: Decimal | None = None,
) -> Experiment:
    """Create an experiment with all its trials and start the first of them, after a check of its judges on gold answers.

    Args:
        version: the rows; ``split`` chooses among them.
        scorers: ``{"kind", "options"}`` each; see ``scorers.registry`` and ``judging.JudgeOptions``.
        repeats: how often each row is asked of each arm.
        judge_repeats: how often a model judges each answer; the mean counts.
        stops_dominated: an arm is asked no further once another is shown to answer better at no higher cost.
        same_documents: arms search different collections, which must hold the same documents: what differs is how these
            are cut into passages.
        concurrency: trials at a time.
        delivery: of ``batches.delivery``: ``batch`` asks answering models and judges by their providers' batch APIs.
        budget_usd: hard limit for answers and judges together; None for none.

    Raises:
        Invalid: what is wrong, with its field. Missing: something it names is not there for the actor.
    """
    actor.require("evaluation.write")
    actor.require("dataset.read")
    name = " ".join(name.split())
    _require(
        bool(name) and len(name) <= 120, "name", _("Give the experiment a name of at most 120 characters.")
    )
    _require(
        1 <= repeats <= MAX_REPEATS,
        "repeats",
        _("Repeat 1 to %(max_repeats)s times.") % {"max_repeats": MAX_REPEATS},
    )
    _require(
        1 <= judge_repeats <= MAX_JUDGE_REPEATS,
        "judge_repeats",
        _("Judge each answer 1 to %(max_judge_repeats)s times.") % {"max_judge_repeats": MAX_JUDGE_REPEATS},
    )
    _require(
        1 <= concurrency <= MAX_CONCURRENCY,
        "concurrency",
        _("Run 1 to %(max_concurrency)s at a time.") % {"max_concurrency": MAX_CONCURRENCY},
    )
    _require(
        split in ("", *Split.values),
        "split",
        _("Choose a split: %(values)s.") % {"values": ", ".join(Split.values)},
    )
    _require(
        delivery in Delivery.values,
        "delivery",
        _("Enter %(values)s.") % {"values": " or ".join(Delivery.values)},
    )
    _require(
        delivery == Delivery.NOW or not stops_dominated,
        "stops_dominated",
        _("Batches ask all arms at once, so none can be stopped early. Turn off early stopping."),
    )
    _require(budget_usd is None or budget_usd > 0, "budget_usd", _("The budget must be more than 0."))
    _require(
        1 <= len(arms) <= MAX_ARMS, "arms", _("Compare 1 to %(max_arms)s arms.") % {"max_arms": MAX_ARMS}
    )
    _require(bool(scorers), "scorers", _("Choose at least one scorer."))
    if not DatasetVersion.objects.visible_to(actor).filter(pk=version.pk).exists():
        raise Missing("version")
    targets = [target_checked(tenant, actor, arm.target) for arm in arms]
    if same_documents:
        documents_same_check(
            actor=actor, searched=[getattr(target, "collections", None) for target in targets]
        )
    _require(
        len(arms) <= MOST_PAIRED or all(spec.get("kind") not in COMPARING for spec in scorers),
        "scorers",
        _("Pairs can be judged for at most %(most_paired)s arms. Choose fewer arms, or leave pairs out.")
        % {"most_paired": MOST_PAIRED},
    )
    rubrics_seed(tenant=tenant, actor=actor)
    kept = [scorer_checked(tenant, actor, spec) for spec in scorers]
    if delivery == Delivery.BATCH:
        delivery_check(tenant=tenant, actor=actor, targets=targets, specs=kept)
    names = _names(actor, arms, targets)
    with transaction.atomic():
        removal_lock(tenant.pk)  # no rule removes a document between its fingerprint and the commit
        experiment: Experiment = Experiment.objects.create(
            tenant=tenant,
            name=name,
            version=version,
            dataset_id=version.dataset_id,
            split=split,
            repeats=repeats,
            judge_repeats=judge_repeats,
            stops_dominated=stops_dominated,
            next_look=first_look(len(arms)),
            scorers=kept,
            concurrency=concurrency,
            delivery=delivery,
            budget_usd=budget_usd,
            corpus=corpus_fingerprint(actor=actor, collections=_collections(targets)),
            actor=actor_facts(actor),
            created_by_id=actor.user_id,
        )
        made = Arm.objects.bulk_create(
            Arm(
                tenant=tenant,
                experiment=experiment,
                position=place,
                name=arm_name,
                target=target.model_dump(mode="json"),
            )
            for place, (arm_name, target) in enumerate(zip(names, targets, strict=True))
        )
        count = _trials_create(tenant, actor, experiment, made)
        audit_record(
            tenant=tenant,
            actor=actor,
            action="experiment.create",
            object=experiment,
            data={"version": version.pk, "arms": len(made), "trials": count},
        )
        experiment_begin(experiment, actor=actor)
        _budget_keep(tenant, actor, experiment)
    return experiment


def experiment_pause(*, tenant: Tenant, actor: Actor, experiment: Experiment) -> Experiment:
    """Start no further trials; those at work end, and what is with a provider is cancelled.

    Raises:
        Conflict: it is not running.
    """
    actor.require("evaluation.write")
    with transaction.atomic():
        row = _of(actor, experiment)
        if row.state != ExperimentState.RUNNING:
            raise _wrong_state(row)
        experiment_halt(row, _("Paused by hand."))
        audit_record(tenant=tenant, actor=actor, action="experiment.pause", object=row)
    return row


def experiment_resume(
    *, tenant: Tenant, actor: Actor, experiment: Experiment, budget_usd: Decimal | None = None
) -> Experiment:
    """Go on with a paused or stopped experiment.

    Args:
        budget_usd: a new budget; None keeps the one it has.

    Raises:
        Conflict: it is neither; ``corpus_changed``: half of the answers would be of other documents.
    """
    actor.require("evaluation.write")
    _require(budget_usd is None or budget_usd > 0, "budget_usd", _("The budget must be more than 0."))
    with transaction.atomic():
        removal_lock(tenant.pk)
        row = _of(actor, experiment)
        if row.state not in (ExperimentState.PAUSED, ExperimentState.STOPPED):
            raise _wrong_state(row)
        targets = [target_read(arm.target) for arm in row.arms.all()]
        if row.corpus != corpus_fingerprint(actor=actor, collections=_collections(targets)):
            raise Conflict(
                "corpus_changed",
                _(
                    "The documents have changed since this experiment began. Start a new one on the current documents."
                ),
            )
        stopped = Trial.objects.filter(experiment=row, state=TrialState.STOPPED)
        stopped.exclude(run__status=RunStatus.QUEUED).update(run=None)  # others wait for a call
        stopped.update(state=TrialState.PENDING, job=None)
        if row.is_batched:
            batches_resume(tenant=tenant, actor=actor, owner=row.topic)
        row.state, row.reason, row.finished_at = ExperimentState.RUNNING, "", None
        if budget_usd is not None:
            row.budget_usd = budget_usd
        row.save(update_fields=["state", "reason", "budget_usd", "finished_at"])
        audit_record(tenant=tenant, actor=actor, action="experiment.resume", object=row)
        if budget_usd is not None:
            _budget_keep(tenant, actor, row)
        experiment_begin(row, actor=actor)
    return row


def experiment_stop(*, tenant: Tenant, actor: Actor, experiment: Experiment) -> Experiment:
    """Stop an experiment; what was scored stays, and what was waiting or at work may go on later. Raises Conflict."""
    actor.require("evaluation.write")
    with transaction.atomic():
        row = _of(actor, experiment)
        if row.state not in EXPERIMENT_ACTIVE:
            raise _wrong_state(row)
        row.state, row.reason = ExperimentState.STOPPED, _("Stopped by hand.")
        row.finished_at = timezone.now()
        row.save(update_fields=["state", "reason", "finished_at"])
        Trial.objects.filter(experiment=row, state=TrialState.PENDING).update(state=TrialState.STOPPED)
        if row.is_batched:
            trials_recall(row, TrialState.STOPPED)
        audit_record(tenant=tenant, actor=actor, action="experiment.stop", object=row)
    # Each in its own transaction, jobs before experiments, as everybody locks them. A job that ends meanwhile is fine.
    theirs = Q(pk__in=Trial.objects.filter(experiment=row).values("job_id"))
    theirs |= Q(kind=CHECK_JOB, payload__experiment_id=row.pk)
    for job in Job.objects.filter(theirs, tenant=tenant, status__in=ACTIVE):
        try:
            job_cancel(tenant=tenant, actor=actor, job=job)
        except Conflict:
            continue
    return row


def _names(actor: Actor, arms: Sequence[ArmSpec], targets: Sequence[Target]) -> list[str]:
    searched = {pk for target in targets for pk in getattr(target, "collections", None) or ()}
    asked = {
        target.version
        for target in targets
        if isinstance(target, AssistantTarget) and target.version is not None
    }
    versions = AssistantVersion.objects.visible_to(actor).filter(pk__in=asked)
    return arms_named(
        [arm.name for arm in arms],
        targets,
        collections=dict(
            Collection.objects.visible_to(actor).filter(pk__in=searched).values_list("pk", "name")
        ),
        versions={v.pk: f"{v.assistant}, version {v.number}" for v in versions.select_related("assistant")},
    )


def _trials_create(tenant: Tenant, actor: Actor, experiment: Experiment, arms: Sequence[Arm]) -> int:
    count = 0
    batch: list[Trial] = []
    for row in version_rows(actor=actor, version=experiment.version, split=experiment.split):
        batch += [
            Trial(
                tenant=tenant,
                experiment=experiment,
                arm=arm,
                row_ref=row.ref,
                position=row.position,
                content_id=row.content_id,
                repeat=repeat,
            )
            for arm in arms
            for repeat in range(experiment.repeats)
        ]
        if len(batch) >= _BATCH:
            count += len(Trial.objects.bulk_create(batch))
            batch = []
        _require(
            count + len(batch) <= MAX_TRIALS,
            "repeats",
            _("That is more than %(max_trials)s trials. Choose a split, fewer arms or fewer repeats.")
            % {"max_trials": number_told(MAX_TRIALS)},
        )
    count += len(Trial.objects.bulk_create(batch))
    _require(count > 0, "split", _("This version has no rows in that split. Choose another split."))
    return count


def _budget_keep(tenant: Tenant, actor: Actor, experiment: Experiment) -> None:
    """Have the ledger keep the budget: the trials' model calls all count for one job, the first trial's."""
    if experiment.budget_job is None:
        first = Trial.objects.filter(experiment=experiment, job__isnull=False).order_by("pk")
        experiment.budget_job = first.values_list("job_id", flat=True).first()
        experiment.save(update_fields=["budget_job"])
    if experiment.budget_usd is not None and experiment.budget_job is not None:
        job_budget_set(
            tenant=tenant, actor=actor, job=Job(pk=experiment.budget_job), amount_usd=experiment.budget_usd
        )


def _collections(targets: Sequence[Target]) -> list[int] | None:
    """Return the collections that any target searches; None when one searches all."""
    found: set[int] = set()
    for target in targets:
        if isinstance(target, RetrieverTarget):
            found.update(target.collections)
        elif isinstance(target, AssistantTarget):
            if target.collections is None:
                return None
            found.update(target.collections)
    return sorted(found)


def _of(actor: Actor, experiment: Experiment) -> Experiment:
    if not Experiment.objects.visible_to(actor).filter(pk=experiment.pk).exists():
        raise Missing("experiment")
    return experiment_locked(experiment.pk)


def _wrong_state(row: Experiment) -> Conflict:
    return Conflict("experiment_state", str(_EXPERIMENT_IS[ExperimentState(row.state)]))


_EXPERIMENT_IS = {
    ExperimentState.RUNNING: gettext_lazy("This experiment is running."),
    ExperimentState.PAUSED: gettext_lazy("This experiment is paused."),
    ExperimentState.STOPPED: gettext_lazy("This experiment is stopped."),
    ExperimentState.COMPLETED: gettext_lazy("This experiment is completed."),
}


def _require(holds: bool, field: str, message: str) -> None:
    if not holds:
        raise Invalid("experiment_invalid", message, data={"fields": {field: [message]}})
