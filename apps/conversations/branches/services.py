"""Writes of branches: edit a question, answer it once more, go on, choose a branch or an answer, fork a conversation."""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Iterator, Sequence
from typing import TypeVar

from django.db import transaction

from apps.conversations.attachments.services import attachments_send
from apps.conversations.feedback.services import feedback_prefer
from apps.conversations.models import Citation, Conversation, Message, Turn
from apps.conversations.transcript.branch_tree import tree_read
from apps.conversations.transcript.locks import conversation_locked, project_hold, scope_write
from apps.conversations.turns.comparison import side_keep, turn_alongside
from apps.conversations.turns.services import turn_submit
from basics.errors import Conflict, Missing
from basics.texts import gettext as _
from runs.models import ACTIVE, RunStatus
from runs.services import run_stop
from tenancy.actors import Actor
from tenancy.models import Tenant
from tenancy.services import audit_record

R = TypeVar("R", Message, Citation)
GO_ON = "Continue exactly where you stopped."


def turn_edit(
    *,
    tenant: Tenant,
    actor: Actor,
    turn: Turn,
    text: str,
    client_id: uuid.UUID,
    model: str = "",
    assistant: str | None = None,
    attachments: Sequence[int] = (),
) -> Turn:
    """Ask a question in other words: a new branch beside the turn, which stays as it was.

    Args:
        assistant, attachments: as for ``turn_submit``; the files of the turn come along anyway.

    Raises:
        Conflict, Invalid, Missing: as ``turn_submit``.
    """
    return turn_submit(
        tenant=tenant,
        actor=actor,
        conversation=turn.conversation,
        text=text,
        client_id=client_id,
        model=model,
        assistant=assistant,
        attachments=attachments,
        beside=turn,
    )


def turn_regenerate(
    *, tenant: Tenant, actor: Actor, turn: Turn, client_id: uuid.UUID, model: str = ""
) -> Turn:
    """Answer a question once more: a new branch beside the turn, which stays as it was.

    Raises:
        Conflict, Invalid, Missing: as ``turn_submit``.
    """
    return turn_edit(
        tenant=tenant, actor=actor, turn=turn, text=_question(turn), client_id=client_id, model=model
    )


def turn_continue(*, tenant: Tenant, actor: Actor, turn: Turn, client_id: uuid.UUID, model: str = "") -> Turn:
    """Have an answer that was stopped, or met a limit, go on in a turn that follows it.

    Raises:
        Conflict: ``turn_not_stopped``; ``conversation_busy``.
    """
    run = turn.run
    if (
        run.status not in (RunStatus.STOPPED, RunStatus.COMPLETED)
        or not run.answer.strip()
        or not (run.status == RunStatus.STOPPED or run.limit_reached)
    ):
        raise Conflict(
            "turn_not_stopped",
            _("Only an answer that was stopped or hit a limit can continue. Ask a question instead."),
        )
    return turn_submit(
        tenant=tenant,
        actor=actor,
        conversation=turn.conversation,
        text=GO_ON,
        client_id=client_id,
        model=model,
        after=turn,
    )


def turn_choose(*, tenant: Tenant, actor: Actor, turn: Turn) -> Conversation:
    """Show the branch of a turn: the newest that goes through it. The next question follows its end."""
    actor.require("conversation.write")
    with transaction.atomic():
        row = conversation_locked(actor, turn.conversation_id)
        row.head_id = tree_read(row).newest_leaf(turn.pk)
        row.save(update_fields=["head"])
        audit_record(
            tenant=tenant, actor=actor, action="conversation.branch", object=row, data={"head": row.head_id}
        )
    return row


def turn_keep(*, tenant: Tenant, actor: Actor, turn: Turn, gives_feedback: bool = False) -> Conversation:
    """Continue with one of two answers to a question: its branch is shown, and the other is one of its siblings.

    If the other answer is still being written, it stops. Another choice later replaces this one.

    Args:
        gives_feedback: say too that the answer is the better one; a comment given before stays.

    Raises:
        Conflict: ``turn_not_compared``; ``answer_missing``, there is no finished answer.
        Denied: feedback is a person's, and the actor stands for none.
    """
    actor.require("conversation.write")
    with transaction.atomic():
        row = conversation_locked(actor, turn.conversation_id)
        # As it is under the lock: asked again meanwhile, it has another run and no answer yet.
        turn = Turn.objects.select_related("run").get(pk=turn.pk, conversation=row)
        other = turn_alongside(turn)
        if other is None:
            raise Conflict("turn_not_compared", _("This question has no second answer to choose between."))
        if turn.run.status in ACTIVE or not turn.run.answer.strip():
            raise Conflict("answer_missing", _("There is no finished answer to keep yet."))
        # Before the turns are locked: whoever ends a run locks it first, and its turns then.
        if other.run.status in ACTIVE:
            run_stop(tenant=tenant, actor=actor, run=other.run)
        side_keep(turn)
        row.head_id = tree_read(row).newest_leaf(turn.pk)
        row.save(update_fields=["head"])
        data = {"head": row.head_id, "turn": turn.pk, "other": other.pk}
        audit_record(tenant=tenant, actor=actor, action="conversation.keep", object=row, data=data)
        if gives_feedback:
            feedback_prefer(tenant=tenant, actor=actor, turn=turn)
    return row


def conversation_fork(*, tenant: Tenant, actor: Actor, turn: Turn) -> Conversation:
    """Begin another conversation with a copy of the branch up to and with a turn, and a right of its own to its files.

    Questions, answers and citations are copied. The runs are not: both conversations show the same ones, which never
    change once they have ended, are paid for once, and stay until the last conversation that shows them is deleted.
    Where it ends with two answers of which none is kept yet, both come along: the choice is still to be made there. Of a
    choice that was made, the branch has the one answer that the conversation continued with.

    Raises:
        Conflict: ``turn_active``, the answer is not finished; ``conversation_moved``, it left its project meanwhile.
    """
    actor.require("conversation.write")
    with transaction.atomic():
        here = Conversation.objects.visible_to(actor).filter(pk=turn.conversation_id)
        project_hold(project := here.values_list("project_id", flat=True).first())
        row = conversation_locked(actor, turn.conversation_id)
        if row.project_id != project:
            raise Conflict("conversation_moved", _("The conversation was moved at this moment. Try again."))
        path = tree_read(row).ending(turn.pk)
        turns = list(
            Turn.objects.filter(tenant=tenant, pk__in=path)
            .select_related("run")
            .prefetch_related("messages", "citations")
            .order_by("index")
        )
        if not turns:
            raise Missing("turn")
        if any(old.run.status in ACTIVE for old in turns):
            raise Conflict(
                "turn_active", _("This answer is still being written. Fork from it when it is finished.")
            )
        fork = Conversation.objects.create(
            tenant=tenant,
            user_id=row.user_id,
            title=row.title,
            model=row.model,
            searches_all=row.searches_all,
            assistant_id=row.assistant_id,
            pinned_version_id=row.pinned_version_id,
            forked_from=row,
            project_id=row.project_id,
            tools_off=row.tools_off,
        )
        scope_write(tenant, fork, [chosen.collection for chosen in row.scope.select_related("collection")])
        head = None
        for index, old in enumerate(turns):
            if old.is_undecided and old.side == 2:
                _copy(old, fork, None if head is None else head.parent, index, side=2)
            else:
                head = _copy(old, fork, head, index, side=1 if old.is_undecided else None)
        fork.head = head
        fork.save(update_fields=["head"])
        audit_record(
            tenant=tenant,
            actor=actor,
            action="conversation.fork",
            object=fork,
            data={"conversation": row.pk, "turn": turn.pk},
        )
    return fork


def _copy(old: Turn, fork: Conversation, parent: Turn | None, index: int, *, side: int | None) -> Turn:
    new = Turn.objects.create(
        tenant_id=old.tenant_id,
        conversation=fork,
        parent=parent,
        run_id=old.run_id,
        index=index,
        client_id=uuid.uuid4(),
        is_active=False,
        side=side,
        removed_markers=old.removed_markers,
        assistant_version_id=old.assistant_version_id,
    )
    Message.objects.bulk_create(_moved(old.messages.all(), new))
    Citation.objects.bulk_create(_moved(old.citations.all(), new))
    attachments_send(new, list(old.attachments.order_by("pk")))
    return new


def _moved(rows: Iterable[R], turn: Turn) -> Iterator[R]:
    for row in rows:
        row.pk, row.turn, row._state.adding = None, turn, True
        yield row


def _question(turn: Turn) -> str:
    said = Message.objects.filter(tenant_id=turn.tenant_id, turn=turn, author=Message.Author.USER)
    text: str | None = said.values_list("text", flat=True).first()
    if text is None:
        raise Missing("turn")
    return text
