"""Writes of questions that wait for the answer before them; each is asked by a job when its time has come."""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from typing import Any

from django.db import transaction

from apps.conversations.attachments.services import attachments_checked
from apps.conversations.models import Conversation, QueuedQuestion, Turn
from apps.conversations.transcript.locks import conversation_locked, draft_after, model_checked, text_checked
from apps.conversations.turns.asking import CheckedQuestion, turn_add
from apps.conversations.turns.ends import turn_ends
from apps.conversations.turns.narrowing import Narrowing, narrowing_checked, narrowing_kept
from apps.conversations.turns.services import turn_submit
from basics.errors import Conflict, DomainError, Missing
from basics.texts import gettext as _
from runs.actors import actor_facts, actor_now
from runs.models import Run
from tenancy.actors import Actor
from tenancy.models import Tenant
from tenancy.services import audit_record

JOB_KIND = "conversations.queue_next"
MOST_QUEUED = 20


def question_queue(
    *,
    tenant: Tenant,
    actor: Actor,
    conversation: Conversation,
    text: str,
    client_id: uuid.UUID,
    model: str = "",
    assistant: str | None = None,
    attachments: Sequence[int] = (),
    narrowing: Narrowing = Narrowing(),  # noqa: B008 - frozen
    compare_with: str = "",
) -> Turn | QueuedQuestion:
    """Ask a question as soon as the answer under way has ended, and those that wait before it; at once if none is.

    Args:
        client_id, model, attachments, narrowing, compare_with: as for ``turn_submit``; sent again, it returns what the question has become.
        assistant: as for ``turn_submit``, for a question that need not wait.

    Raises:
        Conflict: ``queue_full``; ``conversation_busy``, it would have to wait and names an assistant.
        Invalid, Missing: as ``turn_submit``.
    """
    actor.require("conversation.write")
    text = text_checked(text)
    with transaction.atomic():
        row = conversation_locked(actor, conversation.pk)
        ends = turn_ends(row, client_id)
        waiting: dict[uuid.UUID, QueuedQuestion] = (
            {q.client_id: q for q in row.queued.all()} if ends.is_queue else {}
        )
        if client_id in waiting:
            return waiting[client_id]
        if ends.known is not None or not (waiting or ends.active):
            asked = CheckedQuestion(
                text,
                client_id,
                model,
                assistant,
                attachments,
                narrowing=narrowing,
                compare_with=compare_with,
            )
            return turn_add(tenant, actor, row, ends, asked)
        if assistant is not None:
            raise Conflict(
                "conversation_busy",
                _(
                    "A queued question is answered by the conversation's assistant at that time. Leave the assistant out, or wait."
                ),
            )
        if len(waiting) >= MOST_QUEUED:
            raise Conflict(
                "queue_full",
                _("%(count)s questions are already queued. Remove one first.") % {"count": MOST_QUEUED},
            )
        files = attachments_checked(actor, row, attachments)
        narrowing = narrowing_checked(actor, row, None, narrowing)
        queued = QueuedQuestion.objects.create(
            tenant=tenant,
            conversation=row,
            text=text,
            client_id=client_id,
            model=model and model_checked(tenant, model),
            request={
                "actor": actor_facts(actor),
                "attachments": [file.pk for file in files],
                **narrowing.facts(),
                **({"compare_with": model_checked(tenant, compare_with)} if compare_with else {}),
            },
        )
        row.draft = draft_after(row.draft, text)
        row.save(update_fields=["draft"])
        audit_record(tenant=tenant, actor=actor, action="question.queue", object=queued)
    return queued


def queued_edit(
    *, tenant: Tenant, actor: Actor, conversation: Conversation, pk: int, text: str
) -> QueuedQuestion:
    """Change a question that waits. Raises Invalid, and Missing when it was asked meanwhile."""
    actor.require("conversation.write")
    text = text_checked(text)
    with transaction.atomic():
        row = _queued(actor, conversation, pk)
        row.text, row.problem = text, ""
        row.save(update_fields=["text", "problem"])
        audit_record(tenant=tenant, actor=actor, action="question.edit", object=row)
    return row


def queued_remove(*, tenant: Tenant, actor: Actor, conversation: Conversation, pk: int) -> None:
    """Take back a question that waits. Raises Missing when it was asked meanwhile."""
    actor.require("conversation.write")
    with transaction.atomic():
        row = _queued(actor, conversation, pk)
        audit_record(tenant=tenant, actor=actor, action="question.remove", object=row)
        row.delete()


def queued_ask(*, tenant: Tenant, actor: Actor, conversation: Conversation) -> Turn | None:
    """Ask the oldest question that waits, now that whatever held it up is gone; None when none waits.

    Raises:
        Conflict: ``conversation_busy``, or whatever ``turn_submit`` refuses.
    """
    actor.require("conversation.write")
    with transaction.atomic():
        row = conversation_locked(actor, conversation.pk)
        first = row.queued.order_by("pk").first()
        return None if first is None else _ask(tenant, actor, row, first)


def queued_next(*, tenant: Tenant, conversation_pk: int) -> Turn | None:
    """Ask the oldest question that waits, with the rights its person has now; harmless when it must wait on.

    One that cannot be asked stays, says why, and holds up those behind it: they were asked in this order.
    """
    with transaction.atomic():
        rows = Conversation.objects.select_for_update().filter(tenant=tenant, pk=conversation_pk)
        row = rows.filter(removed_at=None).first()
        if row is None or row.turns.filter(is_active=True).exists():
            return None
        first = row.queued.order_by("pk").first()
        if first is None or first.problem:
            return None
        asker = Run(tenant_id=tenant.pk, user_id=row.user_id, request=first.request)
        try:
            with transaction.atomic():
                return _ask(tenant, actor_now(asker), row, first)
        except DomainError as error:
            first.problem = error.message
            first.save(update_fields=["problem"])
    return None


def _ask(tenant: Tenant, actor: Actor, row: Conversation, question: QueuedQuestion) -> Turn:
    turn = turn_submit(
        tenant=tenant,
        actor=actor,
        conversation=row,
        text=question.text,
        client_id=question.client_id,
        model=question.model,
        attachments=question.request.get("attachments", ()),
        narrowing=narrowing_kept(question.request),
        compare_with=question.request.get("compare_with", ""),
    )
    question.delete()
    return turn


def _queued(actor: Actor, conversation: Conversation, pk: int) -> QueuedQuestion:
    row: Any = conversation_locked(actor, conversation.pk)
    found: QueuedQuestion | None = row.queued.filter(pk=pk).first()
    if found is None:
        raise Missing("question")
    return found
