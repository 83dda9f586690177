"""Hand out a conversation as a file, and note that somebody has taken it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from django.db import transaction
from django.utils.translation import gettext as _

from apps.conversations.models import Conversation
from apps.conversations.sharing.exports import export_json, export_markdown, export_name
from basics.errors import Invalid
from tenancy.actors import Actor
from tenancy.models import Tenant
from tenancy.services import audit_record


@dataclass(frozen=True, slots=True)
class Export:
    """An exported conversation: ``markdown``, or ``conversation`` as plain values, as was asked."""

    name: str
    markdown: str
    conversation: dict[str, Any] | None


def conversation_export(*, tenant: Tenant, actor: Actor, conversation: Conversation, form: str) -> Export:
    """Export a conversation that was read for the actor.

    Args:
        form: ``json`` (all branches) or ``markdown`` (the branch that is shown, with its sources).

    Raises:
        Invalid: another form.
    """
    actor.require("conversation.read")
    if form not in ("json", "markdown"):
        raise Invalid(
            "invalid", _("Choose json or markdown."), data={"fields": {"form": [_("json or markdown.")]}}
        )
    with transaction.atomic():
        audit_record(
            tenant=tenant, actor=actor, action="conversation.export", object=conversation, data={"form": form}
        )
        if form == "json":
            return Export(
                export_name(conversation, "json"), "", export_json(actor=actor, conversation=conversation)
            )
        return Export(
            export_name(conversation, "md"), export_markdown(actor=actor, conversation=conversation), None
        )
