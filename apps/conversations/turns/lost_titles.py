"""Titles that a model made of what their reader may not read any more: the first words of the question take their place.

Titles stand in lists on every page, where each reading of them cannot be judged; so they are judged when something is lost.
"""

from __future__ import annotations

from django.db import transaction

from apps.conversations.models import Conversation, Message
from apps.conversations.transcript.locks import title_of
from apps.conversations.transcript.shown import conversation_withheld
from jobs.services import job_enqueue
from runs.models import ChunkRead
from tenancy.actors import Actor
from tenancy.models import Membership, Tenant
from tenancy.selectors import user_actor
from tenancy.services import audit_record

LOST_JOB = "conversations.titles_withhold"


def titles_later(tenant: Tenant, actor: Actor, document: int) -> None:
    """Have a job look at the titles of conversations that a lost document was read for, if there are any."""
    if ChunkRead.objects.filter(tenant_id=tenant.pk, document_id=document).exists():
        job_enqueue(tenant=tenant, actor=actor, kind=LOST_JOB, payload={"document_id": document})


def titles_withhold(*, tenant: Tenant, actor: Actor, document: int) -> int:
    """Give conversations whose title tells of a document that their person has lost their first title again; returns how many."""
    runs = ChunkRead.objects.filter(tenant_id=tenant.pk, document_id=document).values("run_id")
    rows = Conversation.objects.filter(tenant=tenant, turns__run_id__in=runs).distinct()
    changed = 0
    for pk, user_id in rows.values_list("pk", "user_id"):
        member = Membership.objects.select_related("user").filter(tenant=tenant, user_id=user_id)
        membership = member.first()
        if membership is None:
            continue
        found = conversation_withheld(user_actor(membership), pk)
        with transaction.atomic():
            row = Conversation.objects.select_for_update().filter(tenant=tenant, pk=pk).first()
            if row is None or found.text(row.title) == row.title:
                continue
            asked = Message.objects.filter(tenant=tenant, turn__conversation=row, author=Message.Author.USER)
            first = asked.order_by("turn__index").values_list("text", flat=True).first()
            row.title = title_of(first or "")
            row.save(update_fields=["title"])
            audit_record(tenant=tenant, actor=actor, action="conversation.title", object=row)
            changed += 1
    return changed
