"""The job that groups failing rows which are alike."""

from __future__ import annotations

from django.db import transaction

from apps.collections.index.billing import EmbeddingBill, billing_account_of
from apps.collections.index.embedding import default_setting, embedder_of_setting
from apps.evaluations.failures.grouping import groups_of
from apps.evaluations.failures.selectors import arm_failures, groups_key
from apps.evaluations.failures.services import GROUP_JOB, groups_fail, groups_keep
from apps.evaluations.models import FailureGroups
from apps.evaluations.results.actors import kept_actor
from basics.texts import gettext as _
from jobs.context import JobContext
from jobs.models import Job
from jobs.registry import job


def group_ended(ended: Job) -> None:
    """Say why there are no groups when the job ended without them."""
    groups_fail(ended.payload["groups_id"], ended.error_message or _("The work was abandoned."))


@job(GROUP_JOB, lane="cpu", max_attempts=3, on_end=group_ended)
def failures_group(ctx: JobContext, *, groups_id: int) -> None:
    """Group a page of the failing rows of an arm as they are now; safe to run again."""
    kept = FailureGroups.objects.select_related("arm__experiment", "tenant").filter(pk=groups_id)
    row = kept.first()
    if row is None:
        return
    actor = kept_actor(row.tenant_id, row.created_by_id, row.actor)
    failing = arm_failures(actor=actor, arm=row.arm, page=row.page).rows
    texts = [one.text for one in failing]
    groups: list[list[int]] = []
    if texts:
        embedder = embedder_of_setting(default_setting(), tenant=row.tenant)
        with EmbeddingBill(
            embedder, tenant=row.tenant, billing_account=billing_account_of(actor), texts=texts
        ):
            vectors = embedder.embed_documents(texts, on_progress=lambda *_: ctx.check())
        groups = [[failing[at].row for at in places] for places in groups_of(vectors)]
    with transaction.atomic():
        ctx.hold()
        groups_keep(row, key=groups_key(failing), groups=groups)
        ctx.complete()
