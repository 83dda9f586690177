"""Stop an import, export or check: nothing of it stays half visible."""

from __future__ import annotations

from typing import TypeVar

from django.db import transaction
from django.db.models import F
from django.utils import timezone

from apps.datasets.curation.dividing import is_kept
from apps.datasets.curation.services import WORK_NOUNS, split_undo
from apps.datasets.models import (
    WORK_ACTIVE,
    DatasetCheck,
    DatasetExport,
    DatasetImport,
    DatasetRow,
    RowStatus,
    WorkStatus,
)
from basics.errors import Conflict
from basics.texts import gettext as _
from blobs import services as blobs
from jobs.models import Job, JobStatus
from jobs.notify import notify
from jobs.services import job_cancel
from notices.services import notice_put
from tenancy.actors import Actor, system_actor
from tenancy.models import Tenant
from tenancy.services import audit_record

W = TypeVar("W", DatasetExport, DatasetImport, DatasetCheck)


def work_stop(*, tenant: Tenant, actor: Actor, work: W) -> W:
    """Stop an import, export or check: at once while it waits, within seconds while it runs.

    Rows that an import has added go again, unless somebody has changed or reviewed them since; what a division has moved is
    moved back; of an export no file stays. Asking twice does no harm.

    Returns:
        The work as it is now; ``is_stopping`` until its worker has let go of it.

    Raises:
        Conflict: ``work_ended``, it has ended; ``work_goes_back``, it takes a division back, which must not end halfway.
    """
    actor.require("dataset.write")
    with transaction.atomic():
        rows = type(work).objects.visible_to(actor).select_for_update(of=("self",))
        locked = rows.select_related("dataset").get(pk=work.pk)
        job = Job.objects.filter(tenant=tenant, pk=locked.job_id or 0).first()
        if not locked.is_active or job is None:
            raise Conflict("work_ended", _("This has already ended."))
        if isinstance(locked, DatasetCheck) and "undo" in locked.options:
            raise Conflict("work_goes_back", _("Rows are being moved back, which can't be stopped halfway."))
        if job.cancel_requested_at is None:
            job_cancel(tenant=tenant, actor=actor, job=job)
            notify(tenant.pk, job.topic)
            audit_record(
                tenant=tenant,
                actor=actor,
                action=f"{WORK_NOUNS[type(work)]}.stop",
                object=locked.dataset,
                data={"id": work.pk},
            )
    stopped: W = type(work).objects.visible_to(actor).select_related("dataset", "job").get(pk=work.pk)
    return stopped


def work_ended(model: type[W], job: Job) -> None:
    """End work together with its job that did not succeed, in that job's transaction."""
    work = model.objects.select_related("dataset", "tenant").select_for_update(of=("self",))
    row = work.filter(pk=int(job.payload["pk"]), job_id=job.pk, status__in=WORK_ACTIVE).first()
    if row is None:
        return
    row.finished_at = timezone.now()
    if job.status != JobStatus.CANCELLED:
        row.status, row.error_code, row.error_message = WorkStatus.FAILED, job.error_code, job.error_message
        row.save(update_fields=["status", "error_code", "error_message", "finished_at"])
        if isinstance(row, DatasetImport):
            import_note(row)
    else:
        row.status = WorkStatus.CANCELLED
        row.save(update_fields=["status", "finished_at"])
    if isinstance(row, DatasetImport):
        _rows_take_back(row)  # of half a file nobody could say which half
    elif row.status == WorkStatus.FAILED:
        return
    elif isinstance(row, DatasetCheck) and not row.options.get("is_trial") and is_kept(row):
        split_undo(tenant=row.tenant, actor=system_actor(row.tenant_id, row.created_by_id), check=row)


def import_note(row: DatasetImport) -> None:
    """Tell who brought a file in that it has been read, or could not be."""
    notice_put(tenant_id=row.tenant_id, people=[row.created_by_id], kind="rows", pk=row.pk, state=row.status)


def _rows_take_back(row: DatasetImport) -> None:
    """Delete what an import has added, and the file it was read from; what people have worked on since is counted and stays."""
    mine = DatasetRow.objects.filter(dataset=row.dataset, lineage__contains={"import": row.pk})
    mine.filter(status=RowStatus.REVIEW, updated_at=F("created_at"), reviews__isnull=True).delete()
    row.created = mine.count()
    key, row.file = row.file, ""
    row.save(update_fields=["created", "file"])
    blobs.drop(row.tenant_id, key)
