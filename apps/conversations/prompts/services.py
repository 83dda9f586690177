"""Writes of prompts. Everyone who may ask keeps their own; shared ones are written by those who may write assistants."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from django.contrib.humanize.templatetags.humanize import intcomma
from django.db import transaction

from apps.conversations.models import Prompt
from apps.conversations.prompts.selectors import may_edit, may_share
from apps.conversations.prompts.variables import MOST_VARIABLES, variables_of
from apps.conversations.transcript.locks import advisory_lock, text_plain
from basics.errors import Conflict, Denied, Invalid, Missing
from basics.texts import gettext as _
from tenancy.actors import Actor
from tenancy.models import Tenant, User
from tenancy.services import audit_record

MAX_NAME, MAX_DESCRIPTION, MAX_TEXT = 80, 300, 20_000
MAX_PROMPTS = 500
"""Prompts of one person, shared ones included."""


def prompt_create(
    *, tenant: Tenant, actor: Actor, name: str, text: str, description: str = "", is_shared: bool = False
) -> Prompt:
    """Keep a prompt.

    Args:
        text: with ``{name}`` for what is filled in when it is used; plain text, nothing in it is evaluated.
        is_shared: every member of the workspace can use it, and who may write assistants can change it.

    Raises:
        Denied: without the right ``conversation.write``; to share, without ``assistant.write``; the actor stands for no
            person.
        Invalid: a field is empty or too long.
        Conflict: ``prompts_full``.
    """
    actor.require("conversation.write")
    if actor.user_id is None or actor.collections is not None:
        raise Denied("person_needed", _("A prompt belongs to a person. Use a key that acts for a person."))
    if is_shared:
        actor.require("assistant.write")
    values = {"name": _name(name), "description": _description(description), "text": _text(text)}
    with transaction.atomic():
        advisory_lock(f"prompts:{tenant.pk}:{actor.user_id}")
        if Prompt.objects.filter(tenant=tenant, user_id=actor.user_id).count() >= MAX_PROMPTS:
            raise Conflict(
                "prompts_full",
                _("You already have %(count)s prompts. Delete one first.") % {"count": MAX_PROMPTS},
            )
        row: Prompt = Prompt.objects.create(
            tenant=tenant, user_id=actor.user_id, is_shared=is_shared, **values
        )
        audit_record(
            tenant=tenant, actor=actor, action="prompt.create", object=row, data={"is_shared": is_shared}
        )
    return row


def prompt_update(
    *,
    tenant: Tenant,
    actor: Actor,
    prompt: Prompt,
    name: str | None = None,
    text: str | None = None,
    description: str | None = None,
    is_shared: bool | None = None,
) -> Prompt:
    """Change a prompt, share it or make it private again; None leaves a field as it is.

    Raises:
        Denied: somebody else's shared prompt without the right ``assistant.write``; sharing is for who made it.
        Missing: no such prompt for the actor.
        Invalid: a field is empty or too long.
    """
    actor.require("conversation.write")
    with transaction.atomic():
        row = _locked(actor, prompt)
        before = row.is_shared
        if is_shared is not None and is_shared != row.is_shared:
            if not may_share(actor, row):
                raise Denied(
                    "prompt_share_denied",
                    _("Only the person who made a prompt can share it, with the right to edit assistants."),
                )
            row.is_shared = is_shared
        row.name = row.name if name is None else _name(name)
        row.description = row.description if description is None else _description(description)
        row.text = row.text if text is None else _text(text)
        row.save(update_fields=["name", "description", "text", "is_shared", "updated_at"])
        audit_record(
            tenant=tenant,
            actor=actor,
            action="prompt.update",
            object=row,
            data={"before": {"is_shared": before}, "after": {"is_shared": row.is_shared}},
        )
    return row


def prompt_delete(*, tenant: Tenant, actor: Actor, prompt: Prompt) -> None:
    """Delete a prompt. Raises Denied, Missing as ``prompt_update``."""
    actor.require("conversation.write")
    with transaction.atomic():
        row = _locked(actor, prompt)
        audit_record(
            tenant=tenant, actor=actor, action="prompt.delete", object=row, data={"is_shared": row.is_shared}
        )
        row.delete()


def person_prompts_erase(person: User) -> Mapping[str, int]:
    """Delete a person's own prompts in every workspace; shared ones are the workspace's and stay without their name."""
    return {"conversations.Prompt": Prompt.objects.filter(user=person, is_shared=False).delete()[0]}


def prompts_unnamed(actor: Actor, pks: Collection[int]) -> set[int]:
    """Return those of some prompts whose names the actor may not see in the audit trail: other people's own, and deleted ones."""
    seen = Prompt.objects.visible_to(actor).filter(pk__in=pks).values_list("pk", flat=True)
    return {*pks} - {*seen}


def _locked(actor: Actor, prompt: Prompt) -> Prompt:
    row: Prompt | None = Prompt.objects.visible_to(actor).select_for_update().filter(pk=prompt.pk).first()
    if row is None:
        raise Missing("prompt")
    if not may_edit(actor, row):
        raise Denied(
            "prompt_edit_denied",
            _("You can use this prompt, but not change it. Ask a member with write access."),
        )
    return row


def _name(name: str) -> str:
    name = " ".join(name.replace("\x00", "").split())
    if not 1 <= len(name) <= MAX_NAME:
        raise _refused("name", _("Enter a name of 1 to %(most)s characters.") % {"most": MAX_NAME})
    return name


def _description(text: str) -> str:
    text = " ".join(text.replace("\x00", "").split())
    if len(text) > MAX_DESCRIPTION:
        message = _("A description can have at most %(most)s characters.") % {"most": MAX_DESCRIPTION}
        raise _refused("description", message)
    return text


def _text(text: str) -> str:
    text = text_plain(text)
    if not 1 <= len(text) <= MAX_TEXT:
        message = _("Write a text of at most %(most)s characters.") % {"most": intcomma(MAX_TEXT)}
        raise _refused("text", message)
    if len(variables_of(text)) > MOST_VARIABLES:
        raise _refused("text", _("A prompt can have at most %(most)s variables.") % {"most": MOST_VARIABLES})
    return text


def _refused(field: str, message: str) -> Invalid:
    return Invalid("invalid", message, data={"field": field, "fields": {field: [message]}})
