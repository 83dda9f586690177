"""Writes of what people think of answers."""

from __future__ import annotations

from django.contrib.humanize.templatetags.humanize import intcomma
from django.db import transaction

from apps.conversations.feedback.selectors import PREFERRED, REASONS, reasons_offered
from apps.conversations.models import Conversation, Feedback, Turn
from apps.conversations.transcript.locks import text_plain
from basics.errors import Conflict, Denied, Invalid, Missing
from basics.texts import gettext as _
from tenancy.actors import Actor
from tenancy.models import Tenant
from tenancy.services import audit_record

MAX_COMMENT = 4_000


def feedback_give(
    *, tenant: Tenant, actor: Actor, turn: Turn, verdict: str, reason: str = "", comment: str = ""
) -> Feedback:
    """Say what one thinks of an answer; said again, it replaces what was said before.

    Args:
        verdict: ``good`` or ``bad``.
        reason: a code of ``reasons_offered`` for this verdict; "" for none.

    Raises:
        Conflict: ``answer_missing``, there is no finished answer.
        Invalid: verdict or reason is unknown, or the comment too long.
        Missing: the turn is not the actor's.
    """
    user_id = _person(actor, turn)
    if verdict not in REASONS:
        raise _invalid("verdict", _("Choose good or bad."))
    offered = reasons_offered(turn, verdict)
    if reason and reason not in offered:
        raise _invalid("reason", _("Choose one of: %(reasons)s.") % {"reasons": ", ".join(offered)})
    comment = text_plain(comment)
    if len(comment) > MAX_COMMENT:
        raise _invalid("comment", _("Write at most %(most)s characters.") % {"most": intcomma(MAX_COMMENT)})
    with transaction.atomic():
        if turn.is_active or not turn.run.answer.strip():
            raise Conflict("answer_missing", _("There is no finished answer to rate."))
        row, _is_new = Feedback.objects.update_or_create(
            tenant=tenant,
            turn=turn,
            user_id=user_id,
            defaults={"verdict": verdict, "reason": reason, "comment": comment},
        )
        audit_record(
            tenant=tenant,
            actor=actor,
            action="feedback.give",
            object=row,
            data={"turn": turn.pk, "verdict": verdict, "reason": reason},
        )
    return row


def feedback_prefer(*, tenant: Tenant, actor: Actor, turn: Turn) -> Feedback:
    """Say that one of two answers to a question is the better one; what was commented before stays.

    Raises:
        DomainError: as ``feedback_give``.
    """
    said = Feedback.objects.filter(tenant=tenant, turn=turn, user_id=actor.user_id or 0)
    comment = said.values_list("comment", flat=True).first() or ""
    return feedback_give(
        tenant=tenant, actor=actor, turn=turn, verdict="good", reason=PREFERRED, comment=comment
    )


def feedback_withdraw(*, tenant: Tenant, actor: Actor, turn: Turn) -> None:
    """Take back what one has said about an answer; harmless when nothing was said. Raises Missing."""
    user_id = _person(actor, turn)
    with transaction.atomic():
        row = Feedback.objects.filter(tenant=tenant, turn=turn, user_id=user_id).first()
        if row is not None:
            audit_record(
                tenant=tenant, actor=actor, action="feedback.withdraw", object=row, data={"turn": turn.pk}
            )
            row.delete()


def _person(actor: Actor, turn: Turn) -> int:
    actor.require("conversation.write")
    if actor.user_id is None:
        raise Denied("person_needed", _("Only a person can rate answers. Use a key that acts for a person."))
    if not Conversation.objects.visible_to(actor).filter(pk=turn.conversation_id).exists():
        raise Missing("turn")
    return actor.user_id


def _invalid(field: str, message: str) -> Invalid:
    return Invalid("invalid", message, data={"fields": {field: [message]}})
