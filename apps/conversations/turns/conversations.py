"""Writes of conversations: create, name, choose what is searched, delete."""

from __future__ import annotations

from collections.abc import Sequence

from django.db import transaction

from apps.collections.models import Collection
from apps.conversations.attachments.services import attachments_forget
from apps.conversations.models import Conversation, Project
from apps.conversations.transcript.locks import (
    collections_checked,
    conversation_locked,
    project_checked,
    project_held,
    scope_write,
    title_checked,
    tools_off_checked,
)
from apps.conversations.transcript.selectors import scope_collections
from apps.conversations.turns.answerer import answerer_choose
from basics.errors import Denied, Invalid
from basics.texts import gettext as _
from runs.models import Run
from runs.services import runs_stop
from tenancy.actors import Actor
from tenancy.models import Tenant
from tenancy.services import audit_record

RUN_KIND = "conversation"


def conversation_create(
    *,
    tenant: Tenant,
    actor: Actor,
    collections: Sequence[int] = (),
    model: str = "",
    title: str = "",
    assistant: str = "",
    assistant_version: int | None = None,
    tools_off: Sequence[str] = (),
    project: int | None = None,
) -> Conversation:
    """Create an empty conversation.

    Args:
        collections: ids of those to search; none means the project's, without a project all, also ones that come later.
        model: routing name; "" takes the default, or the assistant's.
        assistant: slug of the assistant that answers; "" for the model alone.
        assistant_version: number of the version to try in place of the published one.
        tools_off: names of tools not to use.
        project: id of the project that it belongs to; None for none.

    Raises:
        Denied: the actor may not, or stands for no person (a key without an owner).
        Invalid: a collection, the project or the model is unknown.
        Missing, Conflict: as ``answerer_choose`` says of the assistant.
    """
    actor.require("conversation.write")
    if actor.user_id is None:
        raise Denied(
            "person_needed", _("A conversation belongs to a person. Use a key that acts for a person.")
        )
    folder = project_checked(actor, project)
    chosen = collections_checked(actor, collections) or project_scope(actor, folder)
    conversation = Conversation(
        tenant=tenant,
        user_id=actor.user_id,
        title=title_checked(title),
        searches_all=not chosen and (folder is None or folder.searches_all),
        tools_off=tools_off_checked(tools_off),
        project=folder,
    )
    answerer_choose(tenant, actor, conversation, assistant=assistant, number=assistant_version, model=model)
    with transaction.atomic():
        project_held(actor, project)  # it may be gone by now
        conversation.save(force_insert=True)
        scope_write(tenant, conversation, chosen)
        audit_record(tenant=tenant, actor=actor, action="conversation.create", object=conversation)
    return conversation


def project_scope(actor: Actor, project: Project | None) -> list[Collection]:
    """Return the collections that a conversation in a project begins with, as far as the actor may read them now.

    None are returned for a project that searches all, for one without any that is left, and without a project.
    """
    if project is None or project.searches_all:
        return []
    pks = set(project.scope.values_list("collection_id", flat=True))
    return [row for row in scope_collections(actor=actor, conversation=None) if row.pk in pks]


def conversation_rename(
    *, tenant: Tenant, actor: Actor, conversation: Conversation, title: str
) -> Conversation:
    """Give a conversation another title. Raises Invalid for an empty or too long one."""
    actor.require("conversation.write")
    title = title_checked(title)
    if not title:
        raise Invalid("title_empty", _("Enter a title."), data={"fields": {"title": [_("Enter a title.")]}})
    with transaction.atomic():
        row = conversation_locked(actor, conversation.pk)
        row.title = title
        row.save(update_fields=["title"])
        audit_record(tenant=tenant, actor=actor, action="conversation.rename", object=row)
    return row


def conversation_pin(
    *, tenant: Tenant, actor: Actor, conversation: Conversation, is_pinned: bool
) -> Conversation:
    """Keep a conversation at the top of its owner's list, or no longer. Raises Missing."""
    actor.require("conversation.write")
    with transaction.atomic():
        row = conversation_locked(actor, conversation.pk)
        if row.is_pinned != is_pinned:
            row.is_pinned = is_pinned
            row.save(update_fields=["is_pinned"])
            data = {"is_pinned": is_pinned}
            audit_record(tenant=tenant, actor=actor, action="conversation.pin", object=row, data=data)
    return row


def conversation_delete(*, tenant: Tenant, actor: Actor, conversation: Conversation) -> None:
    """Delete a conversation with its turns and runs; a run under way is stopped.

    What a fork of it shows stays: its turns hold the runs.
    """
    actor.require("conversation.write")
    with transaction.atomic():
        row = conversation_locked(actor, conversation.pk)
        audit_record(tenant=tenant, actor=actor, action="conversation.delete", object=row)
        conversation_remove(tenant, actor, row)


def conversation_remove(tenant: Tenant, actor: Actor, row: Conversation) -> None:
    """Delete a conversation whose lock is held, and its runs as far as no other conversation shows them."""
    # Not only by way of the turns: a question that was asked again has left runs behind that no turn names.
    runs = Run.objects.filter(tenant=tenant, kind=RUN_KIND)
    begun = runs.filter(user_id=row.user_id, request__conversation=row.pk)
    shown = runs.filter(turns__conversation=row)
    pks = {*begun.values_list("pk", flat=True), *shown.values_list("pk", flat=True)}
    runs_stop(tenant=tenant, actor=actor, runs=Run.objects.filter(pk__in=pks))
    files = list(row.attachments.values_list("document_id", flat=True))
    row.delete()
    attachments_forget(tenant, actor, files)
    Run.objects.filter(tenant=tenant, pk__in=pks, turns=None).delete()


def scope_set(
    *, tenant: Tenant, actor: Actor, conversation: Conversation, collections: Sequence[int]
) -> list[Collection]:
    """Choose the collections a conversation searches from the next question on; none means all."""
    actor.require("conversation.write")
    chosen = collections_checked(actor, collections)
    with transaction.atomic():
        row = conversation_locked(actor, conversation.pk)
        row.scope.all().delete()
        scope_write(tenant, row, chosen)
        row.searches_all = not chosen
        row.save(update_fields=["searches_all"])
        audit_record(
            tenant=tenant,
            actor=actor,
            action="conversation.scope",
            object=row,
            data={"collections": [c.pk for c in chosen]},
        )
    return chosen


def tools_off_set(
    *, tenant: Tenant, actor: Actor, conversation: Conversation, names: Sequence[str]
) -> list[str]:
    """Choose the tools that a conversation does not use from the next question on. Raises Invalid for too many names."""
    actor.require("conversation.write")
    off = tools_off_checked(names)
    with transaction.atomic():
        row = conversation_locked(actor, conversation.pk)
        row.tools_off = off
        row.save(update_fields=["tools_off"])
        audit_record(tenant=tenant, actor=actor, action="conversation.tools", object=row, data={"off": off})
    return off
