"""Writes of turns: ask, stop, try again, decide. One turn of a conversation is active at a time."""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Sequence
from typing import Any

from django.db import transaction
from django.utils import timezone

from apps.conversations.attachments.services import (
    attaching_allowed,
    attachment_add,
    attachments_checked,
    attachments_seen,
)
from apps.conversations.models import Attachment, Conversation, Message, Turn
from apps.conversations.transcript.locks import (
    advisory_lock,
    conversation_locked,
    model_checked,
    text_checked,
)
from apps.conversations.turns.answerer import CHOICE, answerer_choose
from apps.conversations.turns.asking import (
    JOB_KIND,
    CheckedQuestion,
    run_of,
    submitted,
    turn_add,
    turn_busy,
)
from apps.conversations.turns.comparison import turn_alongside
from apps.conversations.turns.conversations import (
    conversation_create,
    conversation_remove,
    scope_set,
    tools_off_set,
)
from apps.conversations.turns.ends import turn_ends
from apps.conversations.turns.narrowing import Narrowing, narrowing_of
from basics.errors import Conflict
from basics.texts import gettext as _
from jobs.services import job_enqueue
from runs.approvals.services import call_decide as run_call_decide
from runs.models import ACTIVE, PendingDecision, Run, RunStatus
from runs.services import run_stop
from tenancy.actors import Actor
from tenancy.models import Tenant
from tenancy.services import audit_record
from toolloop.deferred import Decision


def turn_submit(
    *,
    tenant: Tenant,
    actor: Actor,
    conversation: Conversation,
    text: str,
    client_id: uuid.UUID,
    model: str = "",
    assistant: str | None = None,
    attachments: Sequence[int] = (),
    beside: Turn | None = None,
    after: Turn | None = None,
    narrowing: Narrowing | None = None,
    compare_with: str = "",
) -> Turn:
    """Ask a question; the answer is written by a job, as soon as what is attached has been read.

    Args:
        attachments: ids of files that were attached to the conversation for it; ``beside`` brings its own as well.
        beside: a turn of the conversation that the new one stands beside, as another branch.
        after: a turn of the conversation that the new one follows; without either it follows the head.
        client_id: made by whoever asks, once per question: sent again, it returns the turn that exists.
        model: routing name; "" takes the conversation's. The conversation keeps it for the next question.
        assistant: slug of who answers from now on, "" for the model alone; None leaves it as it is.
        narrowing: what this question alone is limited to; None takes that of ``beside`` or ``after``.
        compare_with: routing name of a model that answers as well, at the same time: see ``turns.comparison``.

    Returns:
        The turn; of two, the first.

    Raises:
        Conflict: ``conversation_busy``, the answer to the question before is not finished; the assistant cannot answer.
        Invalid: the text is empty or too long, the model is unknown, or it cannot look at what is attached; an attached
            file is not there, or could not be read.
        Missing: the conversation is not the actor's.
    """
    actor.require("conversation.write")
    asked = CheckedQuestion(
        text_checked(text), client_id, model, assistant, attachments, beside, after, narrowing, compare_with
    )
    with transaction.atomic():
        row = conversation_locked(actor, conversation.pk)
        return turn_add(tenant, actor, row, turn_ends(row, client_id), asked)


def conversation_ask(
    *,
    tenant: Tenant,
    actor: Actor,
    text: str,
    client_id: uuid.UUID,
    collections: Sequence[int] = (),
    model: str = "",
    assistant: str = "",
    assistant_version: int | None = None,
    tools_off: Sequence[str] = (),
    project: int | None = None,
    begun: int | None = None,
    attachments: Sequence[int] = (),
    narrowing: Narrowing | None = None,
    compare_with: str = "",
) -> Turn:
    """Start a conversation with its first question; see ``conversation_create`` and ``turn_submit``.

    Args:
        begun: the conversation that ``conversation_begin`` has made for ``attachments``, in its project; None makes one.

    Nothing is left behind when the question is refused. Sent again with the same ``client_id``, it returns the turn
    that exists.
    """
    text_checked(text)
    with transaction.atomic():
        # Two copies of one request wait here for each other, so that one conversation comes of them.
        advisory_lock(f"conversation_ask:{tenant.pk}:{actor.user_id}:{client_id}")
        mine = Conversation.objects.visible_to(actor)
        known: Turn | None = (
            Turn.objects.visible_to(actor)
            .filter(client_id=client_id, index=0, conversation__in=mine)
            .select_related("conversation", "run")
            .first()
        )
        if known is not None:
            return known
        if begun is not None:
            conversation = conversation_locked(actor, begun)
            chosen: Any = {"tenant": tenant, "actor": actor, "conversation": conversation}
            if collections or conversation.project_id is None:  # else it searches what its project does
                scope_set(**chosen, collections=collections)
            tools_off_set(**chosen, names=tools_off)
            conversation.refresh_from_db()
            return turn_submit(
                tenant=tenant,
                actor=actor,
                conversation=conversation,
                text=text,
                client_id=client_id,
                model=model,
                assistant=assistant,
                attachments=attachments,
                narrowing=narrowing,
                compare_with=compare_with,
            )
        conversation = conversation_create(
            tenant=tenant,
            actor=actor,
            collections=collections,
            model=model,
            assistant=assistant,
            assistant_version=assistant_version,
            tools_off=tools_off,
            project=project,
        )
        return turn_submit(
            tenant=tenant,
            actor=actor,
            conversation=conversation,
            text=text,
            client_id=client_id,
            narrowing=narrowing,
            compare_with=compare_with,
        )


def conversation_begin(
    *,
    tenant: Tenant,
    actor: Actor,
    name: str,
    chunks: Iterable[bytes],
    collections: Sequence[int] = (),
    model: str = "",
    assistant: str = "",
    project: int | None = None,
) -> Attachment:
    """Begin a conversation with a file, before its first question; nothing is left behind when it is refused.

    Raises:
        DomainError: as ``conversation_create`` and ``attachment_add``.
    """
    attaching_allowed(actor)
    conversation = conversation_create(
        tenant=tenant,
        actor=actor,
        collections=collections,
        model=model,
        assistant=assistant,
        project=project,
    )
    try:
        return attachment_add(tenant=tenant, actor=actor, conversation=conversation, name=name, chunks=chunks)
    except BaseException:
        # No transaction takes it back: the file store is waited for outside of any.
        with transaction.atomic():
            conversation_remove(tenant, actor, conversation_locked(actor, conversation.pk))
        raise


def turn_stop(*, tenant: Tenant, actor: Actor, turn: Turn) -> Turn:
    """Stop a turn's answer and keep what it has said; harmless when it has ended."""
    actor.require("conversation.write")
    run_stop(tenant=tenant, actor=actor, run=turn.run)
    turn.refresh_from_db()
    return turn


def call_decide(
    *, tenant: Tenant, actor: Actor, run: Run, decision_id: int, decision: Decision
) -> PendingDecision:
    """Decide about a call that a conversation's run waits for; see ``runs.approvals.services``."""
    actor.require("conversation.write")
    return run_call_decide(tenant=tenant, actor=actor, run=run, decision_id=decision_id, decision=decision)


def turn_retry(*, tenant: Tenant, actor: Actor, turn: Turn, model: str = "") -> Turn:
    """Answer the last question of a branch once more, in place, after its answer failed or was stopped.

    The turn gets a new run; the old one stays as it was in the journal. ``turn_regenerate`` makes a branch instead.

    Raises:
        Conflict: ``turn_not_retryable``, something follows it or it was answered; ``conversation_busy``.
    """
    actor.require("conversation.write")
    with transaction.atomic():
        conversation = conversation_locked(actor, turn.conversation_id)
        row = Turn.objects.select_related("run").get(pk=turn.pk, conversation=conversation)
        other = turn_alongside(row, lock=True)
        active = Turn.objects.filter(conversation=conversation, is_active=True).first()
        if row.run.status in ACTIVE or active not in (None, other):
            raise turn_busy(active or row)
        is_followed = Turn.objects.filter(conversation=conversation, parent=row).exists()
        if is_followed or row.run.status == RunStatus.COMPLETED:
            raise Conflict(
                "turn_not_retryable",
                _(
                    "Only the last question can be asked again in place, and only when its answer failed or was stopped. Regenerate the answer instead."
                ),
            )
        if other is None:
            version = answerer_choose(tenant, actor, conversation, model=model)
            model = conversation.model
        else:  # each of two keeps its own model, and the conversation the first one's
            version, model = row.assistant_version, model_checked(tenant, model or row.run.model)
        files = attachments_checked(actor, conversation, (), row)
        attachments_seen(tenant, files, model)
        conversation.updated_at = timezone.now()
        if other is None or conversation.head_id != other.pk:
            conversation.head = row
        conversation.save(update_fields=[*CHOICE, "updated_at", "head"])
        row.messages.filter(author=Message.Author.ASSISTANT).delete()
        row.citations.all().delete()
        has_files = Attachment.objects.filter(conversation=conversation).exists()
        narrowing = narrowing_of(row.run)
        row.run = run_of(
            tenant, actor, conversation, version, model, has_files=has_files, narrowing=narrowing
        )
        row.run.save()
        row.assistant_version = version
        row.is_active, row.removed_markers = active is None, 0
        row.save(update_fields=["run", "assistant_version", "is_active", "removed_markers"])
        row.run.job = job_enqueue(
            tenant=tenant, actor=actor, kind=JOB_KIND, payload={"turn_id": row.pk, "run_id": row.run.pk}
        )
        row.run.save(update_fields=["job"])
        audit_record(**submitted(tenant, actor, row, row.run))
    return row
