"""What becomes of the rows that an arm fails: groups of what is alike, people's tags, a dataset or a split of them."""

from __future__ import annotations

from collections.abc import Sequence

from django.db import transaction
from django.utils import timezone

from apps.datasets.curation.services import split_assign
from apps.datasets.models import DatasetCheck, DatasetVersion
from apps.datasets.rows.dataset_services import dataset_create
from apps.datasets.rows.services import NewRow, rows_add
from apps.datasets.versions.services import version_create
from apps.evaluations.failures.selectors import arm_failures, failing_rows, records_of, row_fails
from apps.evaluations.models import Arm, FailureGroups, FailureTag, Trial
from basics.errors import Conflict, Invalid, Missing
from basics.texts import gettext as _
from basics.texts import number_told
from jobs.models import ACTIVE
from jobs.services import job_enqueue
from runs.actors import actor_facts
from tenancy.actors import Actor
from tenancy.models import Tenant
from tenancy.services import audit_record
from toolloop.storable import text_storable

GROUP_JOB = "evaluations.failures_group"
MAX_NAME, MAX_TAGS = 40, 20
MAX_COLLECTED = 5_000


def failures_collect(
    *,
    tenant: Tenant,
    actor: Actor,
    arm: Arm,
    name: str,
    tag: str = "",
    group: int | None = None,
    page: int = 1,
) -> DatasetVersion:
    """Create a dataset of an arm's failing rows and freeze its first version, ready for an experiment of its own.

    Args:
        name: of the dataset.
        tag, group: which of them; all without either. A tag is the rows' own or people's; a group is one of its page.

    Raises:
        Missing: there is no such failing row. Invalid: the name is none, or is taken. Conflict: ``too_many_rows``.
    """
    actor.require("evaluation.read")
    actor.require("dataset.write")
    chosen = failing_rows(actor=actor, arm=arm, tag=tag, group=group, page=page)
    if len(chosen) > MAX_COLLECTED:
        raise Conflict(
            "too_many_rows",
            _(
                "%(count)s rows fail, but a dataset can take at most %(max_collected)s at once. Choose a "
                "tag or a group."
            )
            % {"count": number_told(len(chosen)), "max_collected": number_told(MAX_COLLECTED)},
        )
    records = records_of(actor=actor, arm=arm, rows=chosen)
    come = {"experiment": arm.experiment_id, "arm": arm.pk}
    with transaction.atomic():
        dataset = dataset_create(tenant=tenant, actor=actor, name=name)
        rows_add(
            tenant=tenant,
            actor=actor,
            dataset=dataset,
            rows=[
                NewRow(record, lineage={**come, "row": row})
                for record, row in zip(records, chosen, strict=True)
            ],
            source=f"failures of experiment {arm.experiment_id}",
        )
        return version_create(
            tenant=tenant,
            actor=actor,
            dataset=dataset,
            note=f"Rows that “{arm.name}” fails"[:200],
        )


def failures_split(
    *,
    tenant: Tenant,
    actor: Actor,
    arm: Arm,
    into: str,
    tag: str = "",
    group: int | None = None,
    page: int = 1,
) -> DatasetCheck:
    """Start putting an arm's failing rows into a split of their dataset; rows of the same documents move along.

    Args:
        tag, group: which of them; all without either. A group is one of its page.

    Raises:
        Missing: there is no such failing row. Invalid: an unknown split. Conflict: rows are being divided already.
    """
    actor.require("evaluation.read")
    chosen = failing_rows(actor=actor, arm=arm, tag=tag, group=group, page=page)
    return split_assign(
        tenant=tenant, actor=actor, dataset=arm.experiment.version.dataset, into=into, row_pks=chosen
    )


def failures_group(*, tenant: Tenant, actor: Actor, arm: Arm, page: int = 1) -> FailureGroups:
    """Have a job group a page of an arm's failing rows as they are now; while one is at work, nothing is added.

    Raises:
        Missing: there is no such arm. Invalid: there is no such page.
    """
    actor.require("evaluation.write")
    if not Arm.objects.visible_to(actor).filter(pk=arm.pk).exists():
        raise Missing("arm")
    if page != 1 and page != arm_failures(actor=actor, arm=arm, page=page).page:
        raise Invalid("page_invalid", _("That page of failing rows doesn't exist."))
    with transaction.atomic():
        FailureGroups.objects.get_or_create(arm=arm, page=page, defaults={"tenant": tenant})
        rows = FailureGroups.objects.select_for_update(of=("self",))
        row: FailureGroups = rows.get(arm=arm, page=page)
        if row.job is not None and row.job.status in ACTIVE:
            return row
        row.problem, row.actor, row.created_by_id = "", actor_facts(actor), actor.user_id
        row.job = job_enqueue(tenant=tenant, actor=actor, kind=GROUP_JOB, payload={"groups_id": row.pk})
        row.save()
    return row


def groups_keep(row: FailureGroups, *, key: str, groups: Sequence[Sequence[int]]) -> None:
    """Keep the groups that a job found, in the current transaction."""
    FailureGroups.objects.filter(pk=row.pk).update(key=key, groups=groups, problem="", made_at=timezone.now())


def groups_fail(groups_id: int, problem: str) -> None:
    """Keep why a job found no groups."""
    FailureGroups.objects.filter(pk=groups_id).update(problem=text_storable(problem))


def failure_tags_change(
    *, tenant: Tenant, actor: Actor, trial: Trial, add: Sequence[str] = (), remove: Sequence[str] = ()
) -> list[str]:
    """Give tags to a failing answer and take others from it; what is so already is left. Undone by the opposite.

    Args:
        add, remove: names; case and spaces around do not count.

    Returns:
        All its tags, sorted.

    Raises:
        Missing: the answer is not there for the actor. Invalid: a name is none, or there are too many.
        Conflict: ``row_passes``, there is nothing to tag.
    """
    actor.require("evaluation.write")
    wanted, unwanted = [_name(one) for one in add], [_name(one) for one in remove]
    with transaction.atomic():
        rows = Trial.objects.visible_to(actor).select_for_update(of=("self",))
        row: Trial | None = rows.select_related("arm__experiment").filter(pk=trial.pk).first()
        if row is None:
            raise Missing("answer")
        if wanted and not row_fails(actor=actor, trial=row):
            raise Conflict("row_passes", _("Only failing questions can be tagged, and this one passes."))
        own = FailureTag.objects.filter(trial=row)
        known = set(own.values_list("name", flat=True))
        gone, new = known.intersection(unwanted), set(wanted) - known
        if len((known - gone) | new) > MAX_TAGS:
            raise _invalid(_("An answer can have at most %(max_tags)s tags.") % {"max_tags": MAX_TAGS})
        own.filter(name__in=gone).delete()
        FailureTag.objects.bulk_create(
            FailureTag(tenant=tenant, trial=row, name=name, created_by_id=actor.user_id)
            for name in sorted(new)
        )
        if gone or new:
            audit_record(
                tenant=tenant,
                actor=actor,
                action="trial.tag",
                object=row,
                data={"added": sorted(new), "removed": sorted(gone)},
            )
    return sorted((known - gone) | new)


def _name(text: str) -> str:
    name = " ".join(text_storable(text).split()).lower()
    if not 0 < len(name) <= MAX_NAME:
        raise _invalid(_("A tag has 1 to %(max_name)s characters.") % {"max_name": MAX_NAME})
    return name


def _invalid(message: str) -> Invalid:
    return Invalid("tag_invalid", message, data={"fields": {"tag": [message]}})
