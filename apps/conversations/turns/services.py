"""Writes of turns: ask, stop, try again, decide. One turn of a conversation is active at a time."""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from django.db import transaction
from django.utils import timezone

from apps.conversations.attachments.services import (
    attaching_allowed,
    attachment_add,
    attachments_checked,
    attachments_seen,
    attachments_send,
)
from apps.conversations.models import AssistantVersion, Attachment, Conversation, Message, Turn
from apps.conversations.transcript.locks import (
    advisory_lock,
    conversation_locked,
    draft_after,
    text_checked,
    title_of,
)
from apps.conversations.turns.answerer import CHOICE, answerer_choose
from apps.conversations.turns.conversations import (
    RUN_KIND,
    conversation_create,
    conversation_remove,
    scope_set,
    tools_off_set,
)
from apps.conversations.turns.ends import TurnEnds, turn_ends
from apps.conversations.turns.narrowing import Narrowing, narrowing_checked, narrowing_of
from basics.errors import Conflict, Missing
from basics.texts import gettext as _
from jobs.services import job_enqueue, job_new, wake
from runs.actors import actor_facts
from runs.call_log import PRIVATE
from runs.deciders import approver_labels
from runs.models import ApproverKind, CallPath, PendingDecision, Run, RunStatus
from runs.selectors import decision_list
from runs.services import call_decide as run_call_decide
from runs.services import run_new, run_stop
from tenancy import origin
from tenancy.actors import Actor
from tenancy.inserting import related_known, rows_insert
from tenancy.models import Tenant
from tenancy.services import audit_event_new, audit_record
from toolloop.deferred import Decision

JOB_KIND = "conversations.turn_run"


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

    Raises:
        Conflict: ``conversation_busy``, the answer to the question before is not finished; the assistant cannot answer.
        Invalid: the text is empty or too long, the model is unknown, or it cannot look at what is attached; an attached
            file is not there, or could not be read.
        Missing: the conversation is not the actor's.
    """
    actor.require("conversation.write")
    asked = CheckedQuestion(
        text_checked(text), client_id, model, assistant, attachments, beside, after, narrowing
    )
    with transaction.atomic():
        row = conversation_locked(actor, conversation.pk)
        return turn_add(tenant, actor, row, turn_ends(row, client_id), asked)


@dataclass(frozen=True, slots=True)
class CheckedQuestion:
    """A question as it was sent, its text checked; for the fields see ``turn_submit``."""

    text: str
    client_id: uuid.UUID
    model: str = ""
    assistant: str | None = None
    attachments: Sequence[int] = ()
    beside: Turn | None = None
    after: Turn | None = None
    narrowing: Narrowing | None = None


def turn_add(tenant: Tenant, actor: Actor, row: Conversation, ends: TurnEnds, asked: CheckedQuestion) -> Turn:
    """Do what ``turn_submit`` does, in its transaction and under the conversation's lock."""
    if ends.known is not None:
        return Turn.objects.get(pk=ends.known, conversation=row)
    if ends.active is not None:
        raise _busy(Turn.objects.get(pk=ends.active, conversation=row))
    version = answerer_choose(tenant, actor, row, assistant=asked.assistant, model=asked.model)
    files = attachments_checked(actor, row, asked.attachments, asked.beside)
    attachments_seen(tenant, files, row.model)
    narrowing = _narrowing(actor, row, version, asked)
    run = _run(tenant, actor, row, version, has_files=ends.has_files, narrowing=narrowing)
    payload: dict[str, int | str] = {"turn_id": ends.turn, "run_id": ends.run}
    job = job_new(tenant=tenant, actor=actor, kind=JOB_KIND, payload=payload)
    job.pk, run.pk = ends.job, ends.run
    run.job = job
    turn = Turn(
        pk=ends.turn,
        tenant=tenant,
        conversation=row,
        run=run,
        parent_id=_parent(row, asked.beside, asked.after),
        assistant_version=version,
        index=0 if ends.newest is None else ends.newest + 1,
        client_id=asked.client_id,
    )
    said = Message(pk=ends.message, tenant=tenant, turn=turn, author=Message.Author.USER, text=asked.text)
    row.title, row.head = row.title or title_of(asked.text), turn
    row.updated_at, row.draft = timezone.now(), draft_after(row.draft, asked.text)
    row.archived_at = None
    trace = audit_event_new(pk=ends.audit, **_submitted(tenant, actor, turn, run))
    fields = [*CHOICE, "title", "updated_at", "draft", "head", "archived_at"]
    rows_insert([job, run, turn, said, trace], changed=row, fields=fields)
    turn.attached = attachments_send(turn, files)
    wake(job)
    turn.asked = asked.text  # what a page and a reply need to show the new turn without reading it back
    related_known(turn, messages=[said], citations=[], attachments=turn.attached)
    return turn


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
    """Decide about a call that a conversation's run waits for; see ``runs.services.call_decide``."""
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
        active = Turn.objects.filter(conversation=conversation, is_active=True).first()
        if active is not None:
            raise _busy(active)
        is_followed = Turn.objects.filter(conversation=conversation, parent=row).exists()
        if is_followed or row.run.status == RunStatus.COMPLETED:
            raise Conflict(
                "turn_not_retryable",
                _(
                    "Only the last question can be asked again in place, and only when its answer failed or was stopped. Regenerate the answer instead."
                ),
            )
        version = answerer_choose(tenant, actor, conversation, model=model)
        files = attachments_checked(actor, conversation, (), row)
        attachments_seen(tenant, files, conversation.model)
        conversation.updated_at, conversation.head = timezone.now(), row
        conversation.save(update_fields=[*CHOICE, "updated_at", "head"])
        row.messages.filter(author=Message.Author.ASSISTANT).delete()
        row.citations.all().delete()
        has_files = Attachment.objects.filter(conversation=conversation).exists()
        narrowing = narrowing_of(row.run)
        row.run = _run(tenant, actor, conversation, version, has_files=has_files, narrowing=narrowing)
        row.run.save()
        row.assistant_version = version
        row.is_active, row.removed_markers = True, 0
        row.save(update_fields=["run", "assistant_version", "is_active", "removed_markers"])
        _start(tenant, actor, row, row.run)
    return row


def _parent(conversation: Conversation, beside: Turn | None, after: Turn | None) -> int | None:
    for turn in (beside, after):
        if turn is not None and turn.conversation_id != conversation.pk:
            raise Missing("turn")
    if beside is not None:
        return beside.parent_id
    return conversation.head_id if after is None else after.pk


def _narrowing(
    actor: Actor, row: Conversation, version: AssistantVersion | None, asked: CheckedQuestion
) -> Narrowing:
    """Return what a question is limited to; what an earlier one was limited to has been checked, and is again when used."""
    if asked.narrowing is not None:
        return narrowing_checked(actor, row, version, asked.narrowing)
    earlier = asked.beside or asked.after
    return Narrowing() if earlier is None else narrowing_of(earlier.run)


def _run(
    tenant: Tenant,
    actor: Actor,
    conversation: Conversation,
    version: AssistantVersion | None,
    *,
    has_files: bool,
    narrowing: Narrowing,
) -> Run:
    facts = {
        "conversation": conversation.pk,
        "assistant_version": None if version is None else version.pk,
        "assistant": None if version is None else version.assistant_id,
        "actor": actor_facts(actor),
        "path": CallPath.CHAT,
        PRIVATE: has_files,
        "request_id": origin.current().request_id,
        **narrowing.facts(),
    }
    return run_new(tenant=tenant, actor=actor, kind=RUN_KIND, model=conversation.model, request=facts)


def _start(tenant: Tenant, actor: Actor, turn: Turn, run: Run) -> None:
    run.job = job_enqueue(
        tenant=tenant, actor=actor, kind=JOB_KIND, payload={"turn_id": turn.pk, "run_id": run.pk}
    )
    run.save(update_fields=["job"])
    audit_record(**_submitted(tenant, actor, turn, run))


def _submitted(tenant: Tenant, actor: Actor, turn: Turn, run: Run) -> dict[str, Any]:
    """Return what the audit trail says of a question."""
    return {
        "tenant": tenant,
        "actor": actor,
        "action": "turn.submit",
        "object": turn,
        "data": {"model": run.model, "run": run.pk},
    }


def _busy(turn: Turn) -> Conflict:
    message = _("The answer to your last question is still being written. Wait for it, or stop it first.")
    waiting = decision_list(turn.run)
    if waiting:
        names = ", ".join(dict.fromkeys(row.name for row in waiting))
        whose = dict.fromkeys(approver_labels(waiting))
        message = _(
            "The answer to your last question is waiting for your decision about %(tools)s. Decide, or stop it first."
        ) % {"tools": names}
        if all(row.approver_kind != ApproverKind.SELF for row in waiting):
            message = (
                _(
                    "The answer to your last question is waiting for approval of %(tools)s by %(people)s. Wait, or stop it first."
                )
            ) % {"tools": names, "people": ", ".join(whose)}
    return Conflict(
        "conversation_busy",
        message,
        data={"turn": turn.pk, "run": turn.run_id, "decisions": [row.pk for row in waiting]},
    )
