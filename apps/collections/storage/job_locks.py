"""What the services of collections and documents share: jobs and locks, always in the same order."""

from __future__ import annotations

from typing import Any

from django.db import connection

from apps.collections.models import Collection, Document
from basics.errors import Conflict, Missing
from jobs.models import ACTIVE, Job
from jobs.services import job_cancel
from tenancy.actors import Actor
from tenancy.models import Tenant


def active_jobs(tenant: Tenant, documents: Any) -> list[Job]:
    """Return the jobs of these documents that wait or run."""
    return list(
        Job.objects.filter(
            tenant=tenant, status__in=ACTIVE, pk__in=documents.exclude(job=None).values("job_id")
        )
    )


def cancel_quietly(tenant: Tenant, actor: Actor, job: Job) -> None:
    """Cancel a job that may have ended meanwhile."""
    try:
        job_cancel(tenant=tenant, actor=actor, job=job)
    except Conflict:
        return  # it ended between our look and its lock: that is what was wanted


def collection_lock(tenant: Tenant, pk: int, *, for_delete: bool = False) -> Collection:
    """Return a collection's row, locked until the transaction ends. Raises Missing."""
    rows = Collection.objects.select_for_update(no_key=not for_delete).filter(tenant=tenant, pk=pk)
    row: Collection | None = rows.first()
    if row is None:
        raise Missing("collection")
    return row


def document_lock(tenant: Tenant, document: Document) -> Document:
    """Return a document's row, locked until the transaction ends. Raises Missing."""
    # In the pipeline's order (collection, then document), so that the two cannot wait for each other.
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT 1 FROM collections_collection WHERE tenant_id = own_tenant() AND id = %s FOR KEY SHARE",
            [document.collection_id],
        )
    rows = Document.objects.select_for_update(no_key=True).filter(tenant=tenant, pk=document.pk)
    row: Document | None = rows.first()
    if row is None:
        raise Missing("document")
    return row
