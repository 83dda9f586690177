"""Two answers to one question, by two models: siblings that were asked at once, until their reader continues with one."""

from __future__ import annotations

import uuid

from apps.conversations.models import AssistantVersion, Conversation, Turn
from apps.conversations.transcript.locks import model_checked
from basics.errors import Invalid
from basics.texts import gettext as _
from runs.models import ACTIVE
from tenancy.models import Tenant


def second_model(
    tenant: Tenant, conversation: Conversation, version: AssistantVersion | None, name: str
) -> str:
    """Return the id of the model that answers as well, "" for none.

    Args:
        conversation: its ``model`` answers first.
        version: the assistant that answers; None for the model alone.
        name: as it was asked for.

    Raises:
        Invalid: the model is unknown here or the first one itself, or an assistant answers and has its own.
    """
    if not name:
        return ""
    problem = ""
    if version is not None:
        problem = _(
            "An assistant answers with its own model, so there is nothing to compare. Use general chat."
        )
    elif model_checked(tenant, name) == conversation.model:
        problem = _("Choose another model to compare with: this one already answers.")
    if problem:
        raise Invalid("compare_invalid", problem, data={"fields": {"compare_with": [problem]}})
    return name


def second_client_id(client_id: uuid.UUID) -> uuid.UUID:
    """Return the id of the second turn of a question, the same each time that the question is sent."""
    return uuid.uuid5(client_id, "second")


def turn_alongside(turn: Turn, *, lock: bool = False) -> Turn | None:
    """Return the other turn of a comparison with its run; None for a turn that is alone.

    Args:
        lock: hold both turns until the current transaction ends, and return the other one as it is then.
    """
    if turn.side is None:
        return None
    rows = Turn.objects.filter(tenant_id=turn.tenant_id, conversation_id=turn.conversation_id)
    other = turn.index + (1 if turn.side == 1 else -1)
    if lock:
        list(rows.filter(index__in=(turn.index, other)).order_by("pk").select_for_update())
    found: Turn | None = (
        rows.select_related("run").filter(index=other).first()
    )  # after the lock: its run as it is by now
    return found


def side_keep(turn: Turn) -> None:
    """Note that the conversation continues with this one of two answers; nothing is noted of a turn that is alone."""
    other = turn_alongside(turn, lock=True)
    if other is not None:
        rows = Turn.objects.filter(tenant_id=turn.tenant_id)
        rows.filter(pk=turn.pk).update(is_kept=True)
        rows.filter(pk=other.pk).update(is_kept=False)


def head_decide(conversation: Conversation) -> int:
    """Return the id of the turn that a question follows which was asked before either answer was kept, and keep that one.

    It is the one that is shown first, unless the other alone has an answer.
    """
    head = Turn.objects.select_related("run").get(pk=conversation.head_id or 0, conversation=conversation)
    other = turn_alongside(head)
    if other is not None and other.run.answer.strip() and not head.run.answer.strip():
        head = other
    side_keep(head)
    return head.pk


def activity_pass(turn: Turn) -> Turn | None:
    """Before a turn's end is written: make the other one of a comparison active, if its answer is still under way.

    Both ends may be written at once: whoever holds the rows second sees what the first has done.

    Returns:
        The other one with its run, both turns locked; None for a turn that is alone.
    """
    other = turn_alongside(turn, lock=True)
    if other is not None and other.run.status in ACTIVE:
        rows = Turn.objects.filter(tenant_id=turn.tenant_id)
        if rows.filter(pk=turn.pk, is_active=True).update(is_active=False):  # first: two are never active
            rows.filter(pk=other.pk).update(is_active=True)
    return other
