"""Writes of conversations: ask, stop, try again, name, delete. One turn of a conversation is active at a time."""

from __future__ import annotations

import uuid
from collections.abc import Sequence

from django.db import connection, transaction
from django.db.models import Q, Subquery
from django.utils import timezone

from apps.collections.models import Collection
from apps.conversations import selectors
from apps.conversations.models import Conversation, ConversationCollection, Message, Turn
from basics.errors import Conflict, Denied, Invalid, Missing
from jobs.services import job_enqueue
from runs.actors import actor_facts
from runs.deciders import approver_labels
from runs.models import ACTIVE, CallPath, PendingDecision, Run, RunStatus
from runs.selectors import decision_list
from runs.services import call_decide as run_call_decide
from runs.services import run_create, run_stop
from tenancy import origin
from tenancy.actors import Actor
from tenancy.models import Tenant
from tenancy.services import audit_record
from toolloop.deferred import Decision

RUN_KIND = "conversation"
JOB_KIND = "conversations.turn_run"
MAX_TEXT = 32_000
_TITLE = 80


def conversation_create(
    *,
    tenant: Tenant,
    actor: Actor,
    collections: Sequence[int] = (),
    model: str = "",
    title: str = "",
) -> Conversation:
    """Create an empty conversation.

    Args:
        collections: ids of those to search; none means all, also ones that come later.
        model: routing name; "" takes the default.

    Raises:
        Denied: the actor may not, or stands for no person (a key without an owner).
        Invalid: a collection or the model is unknown.
    """
    actor.require("conversation.write")
    if actor.user_id is None:
        raise Denied(
            "person_needed", "A conversation belongs to a person: use a key that acts for one."
        )
    chosen = _collections(actor, collections)
    model = _model(tenant, model)
    with transaction.atomic():
        conversation = Conversation.objects.create(
            tenant=tenant,
            user_id=actor.user_id,
            model=model,
            title=_title_checked(title),
            searches_all=not chosen,
        )
        _scope_write(tenant, conversation, chosen)
        audit_record(tenant=tenant, actor=actor, action="conversation.create", object=conversation)
    return conversation


def conversation_rename(
    *, tenant: Tenant, actor: Actor, conversation: Conversation, title: str
) -> Conversation:
    """Give a conversation another title. Raises Invalid for an empty or too long one."""
    actor.require("conversation.write")
    title = _title_checked(title)
    if not title:
        raise Invalid(
            "title_empty", "Enter a title.", data={"fields": {"title": ["Enter a title."]}}
        )
    with transaction.atomic():
        row = _locked(actor, conversation.pk)
        row.title = title
        row.save(update_fields=["title"])
        audit_record(tenant=tenant, actor=actor, action="conversation.rename", object=row)
    return row


def conversation_delete(*, tenant: Tenant, actor: Actor, conversation: Conversation) -> None:
    """Delete a conversation with its turns and runs; a run under way is stopped."""
    actor.require("conversation.write")
    with transaction.atomic():
        row = _locked(actor, conversation.pk)
        # Not by way of the turns: a question that was asked again has left runs behind that no turn names.
        runs = Run.objects.filter(
            tenant=tenant, user_id=row.user_id, kind=RUN_KIND, request__conversation=row.pk
        )
        for run in runs.filter(status__in=ACTIVE):
            run_stop(tenant=tenant, actor=actor, run=run)
        audit_record(tenant=tenant, actor=actor, action="conversation.delete", object=row)
        row.delete()
        runs.delete()


def scope_set(
    *, tenant: Tenant, actor: Actor, conversation: Conversation, collections: Sequence[int]
) -> list[Collection]:
    """Choose the collections a conversation searches from the next question on; none means all."""
    actor.require("conversation.write")
    chosen = _collections(actor, collections)
    with transaction.atomic():
        row = _locked(actor, conversation.pk)
        row.scope.all().delete()
        _scope_write(tenant, row, chosen)
        row.searches_all = not chosen
        row.save(update_fields=["searches_all"])
        audit_record(
            tenant=tenant,
            actor=actor,
            action="conversation.scope",
            object=row,
            data={"collections": [c.pk for c in chosen]},
        )
    return chosen


def turn_submit(
    *,
    tenant: Tenant,
    actor: Actor,
    conversation: Conversation,
    text: str,
    client_id: uuid.UUID,
    model: str = "",
) -> Turn:
    """Ask a question; the answer is written by a job.

    Args:
        client_id: made by whoever asks, once per question: sent again, it returns the turn that exists.
        model: routing name; "" takes the conversation's. The conversation keeps it for the next question.

    Raises:
        Conflict: ``conversation_busy``, the answer to the question before is not finished.
        Invalid: the text is empty or too long, or the model is unknown.
        Missing: the conversation is not the actor's.
    """
    actor.require("conversation.write")
    text = _text_checked(text)
    with transaction.atomic():
        row = _locked(actor, conversation.pk)
        turns = Turn.objects.filter(conversation=row)
        newest = turns.order_by("-index").values("index")[:1]
        last = None
        for known in turns.filter(Q(client_id=client_id) | Q(index=Subquery(newest))):
            if known.client_id == client_id:
                return known
            last = known
        if last is not None and last.is_active:
            raise _busy(last)
        if model and model != row.model:
            row.model = _model(tenant, model)
        row.title = row.title or _title_of(text)
        row.updated_at = timezone.now()
        row.save(update_fields=["model", "title", "updated_at"])
        run = _run(tenant, actor, row)
        turn = Turn.objects.create(
            tenant=tenant,
            conversation=row,
            run=run,
            parent_id=row.head_id,
            index=0 if last is None else last.index + 1,
            client_id=client_id,
        )
        Conversation.objects.filter(pk=row.pk).update(head=turn)
        Message.objects.create(tenant=tenant, turn=turn, author=Message.Author.USER, text=text)
        _start(tenant, actor, turn, run)
    turn.asked = text  # what a page needs to show the new turn without reading it back
    return turn


def conversation_ask(
    *,
    tenant: Tenant,
    actor: Actor,
    text: str,
    client_id: uuid.UUID,
    collections: Sequence[int] = (),
    model: str = "",
) -> Turn:
    """Start a conversation with its first question; see ``conversation_create`` and ``turn_submit``.

    Nothing is left behind when the question is refused. Sent again with the same ``client_id``, it returns the turn
    that exists.
    """
    _text_checked(text)
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
        conversation = conversation_create(
            tenant=tenant, actor=actor, collections=collections, model=model
        )
        return turn_submit(
            tenant=tenant, actor=actor, conversation=conversation, text=text, client_id=client_id
        )


def advisory_lock(name: str) -> None:
    """Hold a lock of this name until the current transaction ends."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_advisory_xact_lock(hashtextextended(%s, 0))", [name])


def turn_stop(*, tenant: Tenant, actor: Actor, turn: Turn) -> Turn:
    """Stop a turn's answer and keep what it has said; harmless when it has ended."""
    actor.require("conversation.write")
    run_stop(tenant=tenant, actor=actor, run=turn.run)
    turn.refresh_from_db()
    return turn


def call_decide(
    *, tenant: Tenant, actor: Actor, run: Run, decision_id: int, decision: Decision
) -> PendingDecision:
    """Decide about a call that a conversation's run waits for; see ``runs.services.call_decide``."""
    actor.require("conversation.write")
    return run_call_decide(
        tenant=tenant, actor=actor, run=run, decision_id=decision_id, decision=decision
    )


def turn_retry(*, tenant: Tenant, actor: Actor, turn: Turn, model: str = "") -> Turn:
    """Answer the last question of a conversation once more, after its answer failed or was stopped.

    The turn gets a new run; the old one stays as it was in the journal.

    Raises:
        Conflict: ``turn_not_retryable``, it is not the last one or was answered; ``conversation_busy``.
    """
    actor.require("conversation.write")
    with transaction.atomic():
        conversation = _locked(actor, turn.conversation_id)
        row = Turn.objects.select_related("run").get(pk=turn.pk, conversation=conversation)
        if row.is_active:
            raise _busy(row)
        newer = Turn.objects.filter(conversation=conversation, index__gt=row.index).exists()
        if newer or row.run.status == RunStatus.COMPLETED:
            raise Conflict(
                "turn_not_retryable",
                "Only the last question can be asked again, and only when its answer failed or was stopped.",
            )
        if model and model != conversation.model:
            conversation.model = _model(tenant, model)
        conversation.updated_at = timezone.now()
        conversation.save(update_fields=["model", "updated_at"])
        row.messages.filter(author=Message.Author.ASSISTANT).delete()
        row.citations.all().delete()
        row.run = _run(tenant, actor, conversation)
        row.is_active, row.removed_markers = True, 0
        row.save(update_fields=["run", "is_active", "removed_markers"])
        _start(tenant, actor, row, row.run)
    return row


def _run(tenant: Tenant, actor: Actor, conversation: Conversation) -> Run:
    facts = {
        "conversation": conversation.pk,
        "actor": actor_facts(actor),
        "path": CallPath.CHAT,
        "request_id": origin.current().request_id,
    }
    return run_create(
        tenant=tenant, actor=actor, kind=RUN_KIND, model=conversation.model, request=facts
    )


def _start(tenant: Tenant, actor: Actor, turn: Turn, run: Run) -> None:
    run.job = job_enqueue(
        tenant=tenant, actor=actor, kind=JOB_KIND, payload={"turn_id": turn.pk, "run_id": run.pk}
    )
    run.save(update_fields=["job"])
    audit_record(
        tenant=tenant,
        actor=actor,
        action="turn.submit",
        object=turn,
        data={"model": run.model, "run": run.pk},
    )


def _locked(actor: Actor, pk: int) -> Conversation:
    row = Conversation.objects.visible_to(actor).select_for_update().filter(pk=pk).first()
    if row is None:
        raise Missing("conversation")
    return row


def _busy(turn: Turn) -> Conflict:
    message = (
        "The answer to your last question is still being written. Wait for it, or stop it first."
    )
    waiting = decision_list(turn.run)
    if waiting:
        names = ", ".join(dict.fromkeys(row.name for row in waiting))
        whose = dict.fromkeys(approver_labels(waiting))
        message = f"The answer to your last question waits for your decision about {names}. Decide, or stop it first."
        if "you" not in whose:
            message = f"The answer to your last question waits for approval of {names} by {', '.join(whose)}. Wait, or stop it first."
    return Conflict(
        "conversation_busy",
        message,
        data={
            "turn": turn.pk,
            "run": turn.run_id,
            "decisions": [row.pk for row in waiting],
        },
    )


def _collections(actor: Actor, pks: Sequence[int]) -> list[Collection]:
    if not pks:
        return []
    found = [
        c for c in selectors.scope_collections(actor=actor, conversation=None) if c.pk in set(pks)
    ]
    if len(found) != len(set(pks)):
        raise Invalid(
            "unknown_collection",
            "One of the chosen collections does not exist any more. Choose again.",
            data={"fields": {"collections": ["Unknown collection."]}},
        )
    return found


def _scope_write(tenant: Tenant, conversation: Conversation, chosen: Sequence[Collection]) -> None:
    ConversationCollection.objects.bulk_create(
        ConversationCollection(tenant=tenant, conversation=conversation, collection=c)
        for c in chosen
    )


def _model(tenant: Tenant, model: str) -> str:
    models = selectors.model_list(tenant)
    if not model:
        return selectors.model_default(models)
    if model not in {m.id for m in models}:
        raise Invalid(
            "unknown_model",
            f"The model “{model}” is not available here. Choose one from the list.",
            data={"fields": {"model": ["Not available."]}},
        )
    return model


def _text_checked(text: str) -> str:
    text = text.replace("\x00", "").strip()
    if not text or len(text) > MAX_TEXT:
        message = f"Write a question of at most {MAX_TEXT:,} characters."
        raise Invalid("text_invalid", message, data={"fields": {"text": [message]}})
    return text


def _title_checked(title: str) -> str:
    title = " ".join(title.replace("\x00", "").split())
    if len(title) > 200:
        message = "A title has at most 200 characters."
        raise Invalid("title_too_long", message, data={"fields": {"title": [message]}})
    return title


def _title_of(text: str) -> str:
    line = " ".join(text.split())
    if len(line) <= _TITLE:
        return line
    cut = line[:_TITLE].rsplit(" ", 1)[0] or line[:_TITLE]
    return f"{cut}…"
