"""Collections of a workspace that was imported: what search needs is made again from the passages, which keep their numbers."""

from __future__ import annotations

from collections.abc import Mapping

from django.utils import timezone

from apps.collections.documents.services import document_enqueue
from apps.collections.index.embedding import space_default
from apps.collections.models import (
    Collection,
    Document,
    DocumentStatus,
    EmbeddingSpace,
    Import,
    ImportStatus,
)
from apps.collections.pipeline.passages import passages_later
from exports.moves import Arrival
from tenancy.actors import system_actor
from tenancy.models import Tenant


def space_here(row: Mapping[str, object], tenant: Tenant) -> int:
    """Return the embedding space that stands here for one of another installation: the same, else that of new collections.

    Vectors are made again in any case. A space that isn't here isn't made: whoever wrote the file would choose its values.
    """
    names = ("provider", "model", "dimensions", "fingerprint")
    same = EmbeddingSpace.objects.filter(**{name: row[name] for name in names}).first()
    return (same or space_default(tenant=tenant)).pk


def collections_arrived(arrival: Arrival) -> None:
    """Begin what search needs, and end or begin again what was under way; in the transaction of the import."""
    tenant = arrival.tenant
    actor = system_actor(tenant.pk)
    Import.objects.filter(tenant=tenant, status__in=[ImportStatus.QUEUED, ImportStatus.RUNNING]).update(
        status=ImportStatus.FAILED,
        error_code="workspace_moved",
        error_message=arrival.was_under_way,
        finished_at=timezone.now(),
    )
    rows = Collection.objects.filter(tenant=tenant)
    rows.update(term_total=0, chunk_total=0, average_length=0, lexical_forms=[])
    for document in Document.objects.filter(
        tenant=tenant, status__in=[DocumentStatus.QUEUED, DocumentStatus.PROCESSING]
    ).order_by("pk"):
        Document.objects.filter(tenant=tenant, pk=document.pk).update(status=DocumentStatus.QUEUED)
        document.status = DocumentStatus.QUEUED
        document_enqueue(tenant, actor, document)
    for collection in rows.order_by("pk"):
        passages_later(collection)
