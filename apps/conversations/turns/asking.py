"""What asking a question writes: its turn and run, and of a comparison both."""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from django.db import models
from django.utils import timezone

from apps.conversations.attachments.services import (
    attachments_checked,
    attachments_seen,
    attachments_send,
)
from apps.conversations.models import AssistantVersion, Conversation, Message, Turn
from apps.conversations.transcript.locks import draft_after, title_of
from apps.conversations.turns.answerer import CHOICE, answerer_choose
from apps.conversations.turns.comparison import head_decide, second_client_id, second_model, side_keep
from apps.conversations.turns.conversations import RUN_KIND
from apps.conversations.turns.ends import TurnEnds, turn_ends
from apps.conversations.turns.narrowing import Narrowing, narrowing_checked, narrowing_of
from basics.errors import Conflict, Missing
from basics.texts import gettext as _
from budgets.ledger import BudgetExceeded
from jobs.services import job_new, wake_with
from runs.actors import actor_facts
from runs.approvals.deciders import approver_labels
from runs.call_log import PRIVATE
from runs.models import ApproverKind, CallPath, Run
from runs.selectors import decision_list
from runs.services import run_new
from tenancy import origin
from tenancy.actors import Actor
from tenancy.inserting import related_known, rows_insert
from tenancy.models import Tenant
from tenancy.services import audit_event_new

JOB_KIND = "conversations.turn_run"


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
    compare_with: str = ""


def turn_add(tenant: Tenant, actor: Actor, row: Conversation, ends: TurnEnds, asked: CheckedQuestion) -> Turn:
    """Do what ``turn_submit`` does, in its transaction and under the conversation's lock."""
    if ends.known is not None:
        return Turn.objects.get(pk=ends.known, conversation=row)
    if ends.active is not None:
        raise turn_busy(Turn.objects.get(pk=ends.active, conversation=row))
    version = answerer_choose(tenant, actor, row, assistant=asked.assistant, model=asked.model)
    names = [row.model]
    if second := second_model(tenant, row, version, asked.compare_with):
        names.append(second)
    files = attachments_checked(actor, row, asked.attachments, asked.beside)
    for name in names:
        attachments_seen(tenant, files, name)
    narrowing = _narrowing(actor, row, version, asked)
    runs = _runs(tenant, actor, row, version, names, has_files=ends.has_files, narrowing=narrowing)
    parent = _parent(row, ends, asked)
    turn, rows = _rows(tenant, actor, row, version, ends, runs[0], asked, parent)
    jobs = [runs[0].job]
    if second:
        other = replace(asked, client_id=second_client_id(asked.client_id))
        more = replace(turn_ends(row, other.client_id), newest=turn.index)
        turn.second, added = _rows(tenant, actor, row, version, more, runs[1], other, parent)
        turn.side, turn.second.side, turn.second.is_active = 1, 2, False
        rows += added
        jobs.append(runs[1].job)
    row.title, row.head = row.title or title_of(asked.text), turn
    row.updated_at, row.draft = timezone.now(), draft_after(row.draft, asked.text)
    row.archived_at = None
    fields = [*CHOICE, "title", "updated_at", "draft", "head", "archived_at"]
    rows_insert(rows, changed=row, fields=fields, beside=wake_with(jobs))
    turn.attached = attachments_send(turn, files)
    if turn.second is not None and files:
        turn.second.attached = attachments_send(turn.second, list(turn.attachments.order_by("pk")))
    if turn.second is not None:
        turn.alongside_id, turn.second.alongside_id = turn.second.pk, turn.pk
    turn.asked = asked.text  # what a page and a reply need to show the new turn without reading it back
    said = [one for one in rows if isinstance(one, Message) and one.turn_id == turn.pk]
    related_known(turn, messages=said, citations=[], attachments=turn.attached)
    turn.has_decided = ends.is_undecided
    return turn


def _rows(
    tenant: Tenant,
    actor: Actor,
    row: Conversation,
    version: AssistantVersion | None,
    ends: TurnEnds,
    run: Run,
    asked: CheckedQuestion,
    parent: int | None,
) -> tuple[Turn, list[models.Model]]:
    """Return a new turn, and all rows that are to be stored for it."""
    payload: dict[str, int | str] = {"turn_id": ends.turn, "run_id": ends.run}
    job = job_new(tenant=tenant, actor=actor, kind=JOB_KIND, payload=payload)
    job.pk, run.pk = ends.job, ends.run
    run.job = job
    turn = Turn(
        pk=ends.turn,
        tenant=tenant,
        conversation=row,
        run=run,
        parent_id=parent,
        assistant_version=version,
        index=0 if ends.newest is None else ends.newest + 1,
        client_id=asked.client_id,
    )
    said = Message(pk=ends.message, tenant=tenant, turn=turn, author=Message.Author.USER, text=asked.text)
    trace = audit_event_new(pk=ends.audit, **submitted(tenant, actor, turn, run))
    return turn, [job, run, turn, said, trace]


def _parent(conversation: Conversation, ends: TurnEnds, asked: CheckedQuestion) -> int | None:
    """Return the turn that a question follows. What follows one of two answers keeps that one."""
    for turn in (asked.beside, asked.after):
        if turn is not None and turn.conversation_id != conversation.pk:
            raise Missing("turn")
    if asked.beside is not None:
        return asked.beside.parent_id
    if asked.after is not None:
        if asked.after.is_undecided:
            side_keep(asked.after)
        return asked.after.pk
    return head_decide(conversation) if ends.is_undecided else conversation.head_id


def _narrowing(
    actor: Actor, row: Conversation, version: AssistantVersion | None, asked: CheckedQuestion
) -> Narrowing:
    """Return what a question is limited to; what an earlier one was limited to has been checked, and is again when used."""
    if asked.narrowing is not None:
        return narrowing_checked(actor, row, version, asked.narrowing)
    earlier = asked.beside or asked.after
    return Narrowing() if earlier is None else narrowing_of(earlier.run)


def _runs(
    tenant: Tenant,
    actor: Actor,
    row: Conversation,
    version: AssistantVersion | None,
    names: Sequence[str],
    *,
    has_files: bool,
    narrowing: Narrowing,
) -> list[Run]:
    """Return a run for each model. One of two that no budget has room for fails by itself and says why.

    Raises:
        BudgetExceeded: none of them can be paid for.
    """
    runs, refused = list[Run](), list[BudgetExceeded]()
    given: dict[str, Any] = {"has_files": has_files, "narrowing": narrowing}
    for name in names:
        try:
            runs.append(run_of(tenant, actor, row, version, name, **given))
        except BudgetExceeded as error:
            refused.append(error)
            if len(refused) == len(names):
                raise
            runs.append(run_of(tenant, actor, row, version, name, **given, checks_budget=False))
    return runs


def run_of(
    tenant: Tenant,
    actor: Actor,
    conversation: Conversation,
    version: AssistantVersion | None,
    model: str,
    *,
    has_files: bool,
    narrowing: Narrowing,
    checks_budget: bool = True,
) -> Run:
    """Return a new run that answers a question, not stored yet; errors are those of ``run_new``."""
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
    return run_new(
        tenant=tenant, actor=actor, kind=RUN_KIND, model=model, request=facts, checks_budget=checks_budget
    )


def submitted(tenant: Tenant, actor: Actor, turn: Turn, run: Run) -> dict[str, Any]:
    """Return what the audit trail says of a question."""
    return {
        "tenant": tenant,
        "actor": actor,
        "action": "turn.submit",
        "object": turn,
        "data": {"model": run.model, "run": run.pk},
    }


def turn_busy(turn: Turn) -> Conflict:
    """Return the refusal of what has to wait until an answer has ended."""
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
