"""The retention rule of experiments, and which datasets experiments and gates still need."""

from __future__ import annotations

from django.db.models import Exists, OuterRef, Q, QuerySet
from django.db.models.functions import Coalesce
from django.utils.translation import gettext_lazy

from apps.evaluations.models import EXPERIMENT_ACTIVE, AnnotationItem, Arm, Baseline, Experiment, Trial
from apps.evaluations.trials.batches import batches_finish
from erasure.retention import UNKNOWN_SIZE, RetentionKind, Rows, Use
from erasure.uses import numbers_listed
from runs.models import Run
from tenancy.actors import Actor, system_actor
from tenancy.models import Tenant
from tenancy.services import audit_record


def _rows() -> Rows:
    found: QuerySet[Experiment] = Experiment.objects.annotate(
        since=Coalesce("finished_at", "created_at"), bytes=UNKNOWN_SIZE
    )
    return found


def _is_active(_tenant_id: int) -> Q:
    return Q(state__in=EXPERIMENT_ACTIVE)


def _is_baseline(tenant_id: int) -> Q:
    mine = Baseline.objects.filter(tenant_id=tenant_id, arm__experiment=OuterRef("pk"))
    newer = Baseline.objects.filter(
        tenant_id=tenant_id,
        dataset=OuterRef("dataset"),
        name=OuterRef("name"),
        pk__gt=OuterRef("pk"),
    )
    return Q(Exists(mine.filter(~Exists(newer))))


def _is_graded(tenant_id: int) -> Q:
    items = AnnotationItem.objects.filter(tenant_id=tenant_id, trial__experiment=OuterRef("pk"))
    return Q(Exists(items.filter(queue__closed_at=None)))


def _remove(tenant: Tenant, rows: Rows) -> int:
    """Delete experiments, unless they went on meanwhile."""
    removed, actor = 0, system_actor(tenant.pk)
    for pk in list(rows.values_list("pk", flat=True)):
        Experiment.objects.select_for_update(of=("self",)).filter(tenant=tenant, pk=pk).first()
        row = rows.filter(pk=pk).first()
        if row is not None:
            experiment_remove(tenant, actor, row)
            removed += 1
    return removed


def experiment_remove(
    tenant: Tenant, actor: Actor, row: Experiment, *, action: str = "experiment.expire"
) -> None:
    """Delete an ended experiment whose lock is held, with arms, trials, scores and the runs of its trials.

    Args:
        action: what the audit event is called.
    """
    audit_record(tenant=tenant, actor=actor, action=action, object=row)
    if row.is_batched:
        batches_finish(row, ends=True)
    trials = Trial.objects.filter(tenant=tenant, experiment=row, run__isnull=False)
    runs = list(trials.values_list("run_id", flat=True))
    row.delete()
    Run.objects.filter(tenant=tenant, pk__in=runs, turns=None).delete()


EXPERIMENTS = RetentionKind(
    name="experiments",
    label=gettext_lazy("Experiments"),
    what=gettext_lazy("experiments with answers, scores and the runs of their trials"),
    since=gettext_lazy("their end"),
    rows=_rows,
    column="created_at",
    remove=_remove,
)
EXPERIMENT_USES = (
    Use(gettext_lazy("running or paused"), _is_active),
    Use(gettext_lazy("the baseline of a gate"), _is_baseline),
    Use(gettext_lazy("people are grading its answers"), _is_graded),
)


def _gate_of(tenant_id: int) -> Q:
    return Q(Exists(Baseline.objects.filter(tenant_id=tenant_id, dataset=OuterRef("pk"))))


def _experiment_of(tenant_id: int) -> Q:
    return Q(Exists(Experiment.objects.filter(tenant_id=tenant_id, dataset=OuterRef("pk"))))


DATASET_USES = (
    Use(gettext_lazy("a gate compares with it"), _gate_of),
    Use(gettext_lazy("an experiment was made with it"), _experiment_of),
)


def _is_searched(tenant_id: int) -> Q:
    """Of a document: an experiment that hasn't ended searches its collection, by name or with all others.

    What an assistant's version searches isn't in its arm; as for the fingerprint of the documents, that counts as all.
    """
    arms = Arm.objects.filter(tenant_id=tenant_id, experiment__state__in=EXPERIMENT_ACTIVE).order_by()
    unnamed = Q(target__collections=None) | Q(target__collections__isnull=True)
    named = arms.filter(target__kind__in=("retriever", "assistant")).exclude(unnamed)
    all_of_them = arms.filter(unnamed, target__kind="assistant")
    return Q(Exists(all_of_them)) | Q(collection_id__in=numbers_listed(named, "target", "collections"))


DOCUMENTS_SEARCHED = Use(gettext_lazy("an experiment under way searches its collection"), _is_searched)
