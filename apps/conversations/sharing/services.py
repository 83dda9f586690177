"""Writes of shares: a snapshot of a conversation under a link that members of the workspace can open."""

from __future__ import annotations

import uuid
from typing import Any

from django.db import transaction
from django.utils import timezone

from apps.conversations.display.answer_forms import shown_text
from apps.conversations.display.figures import turn_figures
from apps.conversations.display.marks import compared_of
from apps.conversations.models import Conversation, ConversationShare, Message, ShareReader, Turn
from apps.conversations.sharing.selectors import models_compared, share_get
from apps.conversations.transcript import selectors
from apps.conversations.transcript.locks import conversation_locked
from basics.errors import Conflict, Denied, Missing
from basics.texts import gettext as _
from tenancy.actors import Actor
from tenancy.models import Tenant
from tenancy.services import audit_record

MOST_SHARES = 50


def share_create(*, tenant: Tenant, actor: Actor, conversation: Conversation) -> ConversationShare:
    """Make a link to what a conversation says now: the finished answers of the branch that is shown.

    What is asked later is not in it. Members who open it read the answers; of each source they see what they may see
    when they look.

    Raises:
        Conflict: ``nothing_to_share``; ``share_limit``.
        Missing: the conversation is not the actor's.
    """
    actor.require("conversation.write")
    if actor.user_id is None:
        raise Denied("person_needed", _("Only a person can create a link. Use a key that acts for a person."))
    with transaction.atomic():
        row = conversation_locked(actor, conversation.pk)
        found = [
            turn
            for turn in selectors.turn_list(actor=actor, conversation=row)
            if not turn.is_active and turn.run.answer.strip()
        ]
        compared = models_compared(found)
        turns = [_snapshot(turn, compared.get(turn.pk, "")) for turn in found]
        if not turns:
            raise Conflict("nothing_to_share", _("There is no finished answer to share yet."))
        if row.shares.filter(revoked_at=None).count() >= MOST_SHARES:
            raise Conflict(
                "share_limit",
                _("There are already %(count)s links. Revoke one first.") % {"count": MOST_SHARES},
            )
        share: ConversationShare = ConversationShare.objects.create(
            tenant=tenant,
            conversation=row,
            key=uuid.uuid4(),
            title=row.title,
            snapshot={"turns": turns},
            created_by_id=actor.user_id,
        )
        audit_record(
            tenant=tenant,
            actor=actor,
            action="share.create",
            object=share,
            data={"conversation": row.pk, "turns": len(turns)},
        )
    return share


def share_revoke(*, tenant: Tenant, actor: Actor, conversation: Conversation, pk: int) -> None:
    """Make a link work no more; harmless when it does not. What it showed is forgotten. Raises Missing."""
    actor.require("conversation.write")
    with transaction.atomic():
        row = conversation_locked(actor, conversation.pk)
        share = ConversationShare.objects.filter(tenant=tenant, conversation=row, pk=pk).first()
        if share is None:
            raise Missing("share")
        if share.revoked_at is None:
            share.revoked_at, share.snapshot = timezone.now(), {"turns": []}
            share.save(update_fields=["revoked_at", "snapshot"])
            audit_record(tenant=tenant, actor=actor, action="share.revoke", object=share)


def share_open(*, tenant: Tenant, actor: Actor, key: uuid.UUID) -> ConversationShare:
    """Return the share of a link, and note for its owner who has opened it. Raises Missing."""
    share = share_get(actor=actor, key=key)
    if actor.user_id is not None and actor.user_id != share.created_by_id:
        ShareReader.objects.get_or_create(tenant=tenant, share=share, user_id=actor.user_id)
    return share


def _snapshot(turn: Turn, other_model: str) -> dict[str, Any]:
    said = {message.author: message for message in turn.messages.all()}
    question, answer = said.get(Message.Author.USER), said.get(Message.Author.ASSISTANT)
    return {
        "question": "" if question is None else question.text,
        "answer": shown_text(turn.run.answer, answer is not None and answer.was_formed),
        "marks": [] if answer is None else answer.unsupported,
        "compared": compared_of(answer),
        "model": turn.run.model,
        "other_model": other_model,
        "is_kept": turn.is_kept,
        "asked_at": turn.created_at.isoformat(),
        "figures": [figure.to_json() for figure in turn_figures(turn)],
        "citations": [
            {
                "number": c.number,
                "chunk_ref": c.chunk_ref,
                "document_id": c.document_id,
                "collection_name": c.collection_name,
                "page": c.page,
                "quote": c.quote,
                "header": c.header,
                "markers": c.markers,
            }
            for c in turn.citations.all()
        ],
    }
