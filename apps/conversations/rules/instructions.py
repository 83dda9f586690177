"""What a workspace tells every model first, and whether its people can have a memory."""

from __future__ import annotations

from dataclasses import dataclass

from django.contrib.humanize.templatetags.humanize import intcomma
from django.db import transaction

from apps.conversations.models import ConversationRules
from apps.conversations.transcript.locks import text_plain
from basics.errors import Invalid
from basics.texts import gettext as _
from tenancy.actors import Actor
from tenancy.models import Tenant
from tenancy.services import audit_record

MAX_INSTRUCTIONS = 8_000


@dataclass(frozen=True, slots=True)
class Instructions:
    """What a workspace says to models.

    Attributes:
        text: its instructions, "" for none.
        allows_memory: its people can keep notes that models are given.
    """

    text: str = ""
    allows_memory: bool = True


def instructions_get(*, actor: Actor) -> Instructions:
    """Return what the actor's workspace says to models: everybody who asks there may know. Raises Denied."""
    actor.require("conversation.read")
    row = ConversationRules.objects.visible_to(actor).first()
    return Instructions() if row is None else Instructions(row.instructions, row.allows_memory)


def instructions_set(
    *, tenant: Tenant, actor: Actor, text: str | None = None, allows_memory: bool | None = None
) -> Instructions:
    """Set what the workspace says to models; it holds from the next question on. The audit trail keeps each version.

    Args:
        text: "" for none; None leaves it as it is.
        allows_memory: False keeps every note from every model; nobody's notes are deleted. None leaves it as it is.

    Raises:
        Denied: without the right ``instruction.manage``, which no key has.
        Invalid: the text is too long.
    """
    actor.require("instruction.manage")
    if text is not None:
        text = text_plain(text)
        if len(text) > MAX_INSTRUCTIONS:
            problem = _("Instructions have at most %(most)s characters; these have %(length)s.") % {
                "most": intcomma(MAX_INSTRUCTIONS),
                "length": intcomma(len(text)),
            }
            raise Invalid("invalid", problem, data={"field": "text", "fields": {"text": [problem]}})
    with transaction.atomic():
        ConversationRules.objects.get_or_create(tenant=tenant)
        row = ConversationRules.objects.select_for_update().get(tenant=tenant)
        before = Instructions(row.instructions, row.allows_memory)
        after = Instructions(
            before.text if text is None else text,
            before.allows_memory if allows_memory is None else allows_memory,
        )
        if after != before:
            row.instructions, row.allows_memory = after.text, after.allows_memory
            row.save(update_fields=["instructions", "allows_memory", "updated_at"])
            audit_record(
                tenant=tenant,
                actor=actor,
                action="instruction.set",
                object=row,
                data={
                    name: {"text": one.text, "allows_memory": one.allows_memory}
                    for name, one in (("before", before), ("after", after))
                },
            )
    return after
