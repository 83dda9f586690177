"""The job that brings in the entries of an import."""

from __future__ import annotations

from django.db import transaction
from django.utils import timezone

from apps.collections.imports import job as work
from apps.collections.imports.scratch import import_scratch_remove
from apps.collections.imports.services import import_retry
from apps.collections.models import Import, ImportStatus
from basics.errors import Missing
from jobs.context import JobContext
from jobs.models import Job, JobStatus
from jobs.registry import job
from notices.services import notice_put
from tenancy.actors import Actor
from tenancy.models import Tenant


def import_ended(ended: Job) -> None:
    """End the import together with a job that did not succeed, in that job's transaction."""
    is_cancelled = ended.status == JobStatus.CANCELLED
    tenant_id, pk = ended.tenant_id, ended.payload["import_id"]
    transaction.on_commit(lambda: import_scratch_remove(tenant_id=tenant_id, import_id=pk))
    changed = Import.objects.filter(
        pk=pk, job_id=ended.pk, status__in=[ImportStatus.QUEUED, ImportStatus.RUNNING]
    ).update(
        status=ImportStatus.CANCELLED if is_cancelled else ImportStatus.FAILED,
        error_code=ended.error_code,
        error_message=ended.error_message,
        finished_at=timezone.now(),
    )
    if changed and not is_cancelled:
        notice_put(
            tenant_id=tenant_id,
            people=[ended.user_id],
            kind="import",
            pk=int(pk),
            state=ImportStatus.FAILED.value,
        )


def import_again(tenant: Tenant, actor: Actor, failed: Job) -> None:
    """Do the import of a failed job again. Raises Conflict, Missing."""
    row = Import.objects.filter(pk=failed.payload["import_id"]).first()
    if row is None:
        raise Missing("import")
    import_retry(tenant=tenant, actor=actor, row=row)


@job("collections.import_run", lane="cpu", max_attempts=5, on_end=import_ended, on_retry=import_again)
def import_run(ctx: JobContext, *, import_id: int) -> None:
    """Bring in the entries of one import; safe to run again after a crash."""
    work.import_run(ctx, import_id=import_id)
