"""Key points and links of a document, asked for again."""

from __future__ import annotations

from django.db import transaction

from apps.collections.models import ChunkLink, Document, DocumentStatus, LinkOrigin
from apps.collections.storage.job_locks import document_lock
from basics.errors import Conflict
from basics.texts import gettext as _
from jobs.models import Job
from jobs.notify import notify
from jobs.services import job_enqueue
from tenancy.actors import Actor
from tenancy.models import Tenant
from tenancy.services import audit_record

SUMMARISE_KIND = "collections.document_summarise"


def document_summarise_again(
    *, tenant: Tenant, actor: Actor, document: Document, everything: bool = False
) -> Job:
    """Have the key points and links of a ready document made again, by rule or by the model its collection names.

    It is the retry of that stage alone: the document answers all the while, and nothing is read or embedded anew.

    Args:
        everything: ask the model about all chunks, not only those it has not summarised yet.

    Returns:
        The job, or the one that is under way already.

    Raises:
        Conflict: ``document_not_ready``; what is being read is summarised on the way, what failed is retried whole.
        Missing: it was deleted meanwhile.
    """
    actor.require("document.write")
    with transaction.atomic():
        row = document_lock(tenant, document)
        if row.status != DocumentStatus.READY:
            raise Conflict(
                "document_not_ready",
                _(
                    "This document isn't ready. Its key points are created when it is read: retry it, or wait."
                ),
            )
        if everything:
            row.chunks.update(points_by=LinkOrigin.RULE)
            ChunkLink.objects.filter(document=row, made_by=LinkOrigin.MODEL).delete()
        job = job_enqueue(
            tenant=tenant,
            actor=actor,
            kind=SUMMARISE_KIND,
            payload={"document": row.pk},
            dedupe_key=f"summarise:{row.pk}",
            topic=f"collection:{row.collection_id}",
        )
        audit_record(tenant=tenant, actor=actor, action="document.summarise", object=row)
        notify(tenant.pk, f"collection:{row.collection_id}", row.pk)
    return job
