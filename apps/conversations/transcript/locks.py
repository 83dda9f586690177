"""What the writes of conversations check and lock."""

from __future__ import annotations

from collections.abc import Sequence

from django.contrib.humanize.templatetags.humanize import intcomma
from django.db import connection

from apps.collections.models import Collection
from apps.conversations.models import Conversation, ConversationCollection, Project
from apps.conversations.transcript import selectors
from basics.errors import Invalid, Missing
from basics.line_ends import line_ends
from basics.texts import gettext as _
from tenancy.actors import Actor
from tenancy.database.columns import Columns
from tenancy.models import Tenant

MAX_TEXT = 32_000
_TITLE = 80
_TOOLS, _TOOL_NAME = 1000, 200
# With every question and answer: by hand it costs a sixth of what the ORM takes.
OWN = "c.tenant_id = %s AND c.user_id = %s AND c.removed_at IS NULL AND c.id = %s"
"""What ``Conversation.objects.visible_to`` asks of one conversation ``c``, for an actor who isn't limited to collections.

Values: tenant, person, conversation.
"""
_CONVERSATION = Columns(Conversation, "c")
_LOCKED = f"SELECT {_CONVERSATION} FROM conversations_conversation c WHERE {OWN} FOR UPDATE"  # noqa: S608


def advisory_lock(name: str) -> None:
    """Hold a lock of this name until the current transaction ends."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_advisory_xact_lock(hashtextextended(%s, 0))", [name])


def conversation_locked(actor: Actor, pk: int) -> Conversation:
    """Return a conversation of the actor's, locked until the transaction ends. Raises Missing."""
    if actor.collections is None:
        row = _locked(actor, pk)
    else:
        row = Conversation.objects.visible_to(actor).select_for_update().filter(pk=pk).first()
    if row is None:
        raise Missing("conversation")
    return row


def _locked(actor: Actor, pk: int) -> Conversation | None:
    with connection.cursor() as cursor:
        cursor.execute(_LOCKED, [actor.tenant_id, actor.user_id, pk])
        found = cursor.fetchone()
    return None if found is None else _CONVERSATION.take(iter(found))


def project_checked(actor: Actor, pk: int | None) -> Project | None:
    """Return the project of this id, which the actor may see; None for none. Raises Invalid."""
    if pk is None:
        return None
    row: Project | None = Project.objects.visible_to(actor).filter(pk=pk).first()
    if row is None:
        raise Invalid(
            "unknown_project",
            _("The project no longer exists, or isn't shared with you any more. Choose another one."),
            data={"fields": {"project": [_("Unknown project.")]}},
        )
    return row


def project_hold(pk: int | None) -> None:
    """Keep a project, if it is still there, until the transaction ends.

    One order for all: a project before its conversations, and these by their ids. Who changes or deletes a project locks it
    and then those in it; who had locked one of them first, and then needs the project that it names, would wait in a circle.
    """
    if pk is not None:
        with connection.cursor() as cursor:
            cursor.execute(
                "SELECT 1 FROM conversations_project WHERE tenant_id = own_tenant() AND id = %s FOR KEY SHARE",
                [pk],
            )


def project_held(actor: Actor, pk: int | None) -> Project | None:
    """Return a project as ``project_checked`` does, which stays until the transaction ends. Raises Invalid."""
    project_hold(pk)
    return project_checked(actor, pk)


def collections_checked(actor: Actor, pks: Sequence[int]) -> list[Collection]:
    """Return the collections of these ids, which the actor may all see. Raises Invalid."""
    if not pks:
        return []
    found = [c for c in selectors.scope_collections(actor=actor, conversation=None) if c.pk in set(pks)]
    if len(found) != len(set(pks)):
        raise Invalid(
            "unknown_collection",
            _("One of the chosen collections no longer exists. Choose again."),
            data={"fields": {"collections": [_("Unknown collection.")]}},
        )
    return found


def tools_off_checked(names: Sequence[str]) -> list[str]:
    """Return names of tools, each once; one that no tool has does no harm, as tools come and go."""
    if len(names) > _TOOLS or any(not n or len(n) > _TOOL_NAME or "\x00" in n for n in names):
        raise Invalid("unknown_tool", _("One of the switched-off tools does not exist. Choose again."))
    return sorted(set(names))


def scope_write(tenant: Tenant, conversation: Conversation, chosen: Sequence[Collection]) -> None:
    """Store which collections a new conversation searches."""
    ConversationCollection.objects.bulk_create(
        ConversationCollection(tenant=tenant, conversation=conversation, collection=c) for c in chosen
    )


def model_checked(tenant: Tenant, model: str, actor: Actor | None = None) -> str:
    """Return the id of a model that can be asked; "" means the default (of ``actor``, see there). Raises Invalid."""
    models = selectors.model_list(tenant)
    if not model:
        return selectors.model_default(models, actor)
    if model not in {m.id for m in models}:
        raise Invalid(
            "unknown_model",
            _("The model “%(model)s” is not available here. Choose one from the list.") % {"model": model},
            data={"fields": {"model": [_("Not available.")]}},
        )
    return model


def text_plain(text: str) -> str:
    """Return what a person wrote as it is stored, and as limits count it: without NUL, one character for the end of a line."""
    return line_ends(text.replace("\x00", "")).strip()


def text_checked(text: str) -> str:
    """Return a question as it is stored, of 1 to ``MAX_TEXT`` characters. Raises Invalid."""
    text = text_plain(text)
    if not text or len(text) > MAX_TEXT:
        message = _("Write a question of at most %(most)s characters.") % {"most": intcomma(MAX_TEXT)}
        raise Invalid("text_invalid", message, data={"fields": {"text": [message]}})
    return text


def draft_after(draft: str, text: str) -> str:
    """Return what stays of a draft when a question is sent: nothing if it was this question, perhaps not whole yet."""
    return "" if text.startswith(draft.strip()) else draft


def title_checked(title: str) -> str:
    """Return a title in one line, of 200 characters at most; it may be empty. Raises Invalid."""
    title = " ".join(title.replace("\x00", "").split())
    if len(title) > 200:
        message = _("A title can have at most 200 characters.")
        raise Invalid("title_too_long", message, data={"fields": {"title": [message]}})
    return title


def title_of(text: str) -> str:
    """Return the title that a conversation has until it gets one: the first words of its question."""
    line = " ".join(text.split())
    if len(line) <= _TITLE:
        return line
    cut = line[:_TITLE].rsplit(" ", 1)[0] or line[:_TITLE]
    return f"{cut}…"
