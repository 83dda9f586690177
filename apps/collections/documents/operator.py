"""What the commands share: find a workspace and a collection by name, and see ingestion through to its end."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from datetime import timedelta

from django.core.management.base import CommandError
from django.db.models import Q
from django.utils import timezone

from apps.collections.models import Collection, Document, DocumentStatus, Import, ImportStatus
from jobs.context import LeaseLost
from jobs.models import Job, JobStatus
from jobs.runner import run_here
from jobs.selectors import WORKER_FRESH_S, worker_seen_at
from tenancy.models import Tenant

POLL_S = 0.3


def collection_named(tenant: Tenant, name: str) -> Collection | None:
    """Return a tenant's collection by name (any case) or id; the caller is in the tenant's scope."""
    rows = Collection.objects.filter(tenant=tenant).select_related("space")
    found: Collection | None = rows.filter(name__iexact=name.strip()).first()
    if found is None and name.isdecimal():
        found = rows.filter(pk=int(name)).first()
    return found


def is_worker_alive() -> bool:
    """Tell whether a worker command has shown itself lately."""
    seen = worker_seen_at()
    return seen is not None and timezone.now() - seen < timedelta(seconds=WORKER_FRESH_S)


def ingestion_finish(
    tenant: Tenant, documents: Sequence[int], *, on_change: Callable[[Document], None], timeout_s: float
) -> list[Document]:
    """Wait until documents are ready, failed or cancelled, doing their work here while no worker is alive.

    Args:
        documents: their ids; the caller is in the tenant's scope.
        on_change: called with a document's row again and again.
        timeout_s: for all of them together.

    Returns:
        The rows as they ended, in the order given.

    Raises:
        CommandError: the time is over; the work goes on in the background.
    """
    deadline = time.monotonic() + timeout_s
    waiting = list(documents)
    while waiting:
        if not is_worker_alive():
            _run_next(tenant, waiting)
        rows = {d.pk: d for d in Document.objects.filter(tenant=tenant, pk__in=waiting)}
        for row in rows.values():
            on_change(row)
        waiting = [pk for pk in waiting if pk in rows and rows[pk].is_active]
        if not waiting:
            break
        if time.monotonic() > deadline:
            raise CommandError(
                f"{len(waiting)} documents are not done after {timeout_s:.0f} s. They stay queued; the worker continues with them."
            )
        time.sleep(POLL_S)
    by_id = Document.objects.filter(tenant=tenant).in_bulk(list(documents))
    return [by_id[pk] for pk in documents if pk in by_id]


def import_finish(tenant: Tenant, row: Import, *, timeout_s: float) -> Import:
    """Wait until an import has ended, doing its work here while no worker is alive.

    Args:
        row: of the tenant; the caller is in the tenant's scope.

    Returns:
        The row as it ended.

    Raises:
        CommandError: the time is over, and the work goes on in the background; or the import was deleted.
    """
    deadline = time.monotonic() + timeout_s
    while True:
        if not is_worker_alive():
            _run_due(tenant, row.job_id)
        found: Import | None = Import.objects.filter(tenant=tenant, pk=row.pk).first()
        if found is None:
            raise CommandError(f"The import of {row.name} has been deleted in the meantime.")
        if found.status not in (ImportStatus.QUEUED, ImportStatus.RUNNING):
            return found
        if time.monotonic() > deadline:
            raise CommandError(
                f"The import of {row.name} is not done after {timeout_s:.0f} s. The worker continues with it."
            )
        time.sleep(POLL_S)


def import_documents(row: Import) -> list[Document]:
    """Return the documents that an import brought, and those of its source that it made to be tried again."""
    retried = Q(collection_id=row.collection_id, source=row.source, job__created_at__gte=row.created_at)
    found = Document.objects.filter(tenant_id=row.tenant_id).filter(Q(batch=row) | retried)
    return list(found.order_by("pk"))


def _run_due(tenant: Tenant, job_id: int | None) -> None:
    """Do a job here when it waits and its time has come."""
    due = Job.objects.filter(
        tenant=tenant, pk=job_id or 0, status=JobStatus.QUEUED, run_after__lte=timezone.now()
    )
    if due.exists():
        _run(tenant, job_id or 0)


def _run(tenant: Tenant, job_id: int) -> None:
    try:
        run_here(tenant.pk, job_id)
    except LeaseLost:
        return  # a worker came up meanwhile and has it


def _run_next(tenant: Tenant, waiting: Sequence[int]) -> None:
    queued = (
        Document.objects.filter(
            tenant=tenant,
            pk__in=waiting,
            status__in=[DocumentStatus.QUEUED, DocumentStatus.PROCESSING],
            job__status=JobStatus.QUEUED,
            job__run_after__lte=timezone.now(),
        )
        .order_by("pk")
        .values_list("job_id", flat=True)
        .first()
    )
    if queued is not None:
        _run(tenant, queued)
