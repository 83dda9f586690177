"""Reads of projects. A project gives no right: collections and conversations are read with those that the reader has."""

from __future__ import annotations

from typing import Any

from django.db.models import Count, Exists, IntegerField, OuterRef, Prefetch, Q, QuerySet, Subquery
from django.db.models.functions import Coalesce

from apps.collections.models import Collection
from apps.conversations.models import Conversation, Project, ProjectCollection, ProjectMember, Sharing
from apps.conversations.transcript.selectors import conversation_list_pinned
from basics.errors import Missing
from tenancy.actors import Actor
from tenancy.models import Membership, User


def project_list(*, actor: Actor) -> QuerySet[Project]:
    """Return the projects that the actor sees, by name, with their owners.

    ``conversation_count`` is how many of the actor's own conversations are in each, without archived ones;
    ``is_editable`` whether the actor may change it.
    """
    actor.require("conversation.read")
    mine = Conversation.objects.visible_to(actor).filter(project=OuterRef("pk"), archived_at=None)
    count = mine.order_by().values("project").annotate(n=Count("pk")).values("n")
    rows = Project.objects.visible_to(actor).select_related("user")
    rows = rows.annotate(
        conversation_count=Coalesce(Subquery(count, output_field=IntegerField()), 0),
        is_editable=editable_by(actor),
    )
    return rows.order_by("name", "pk")


def project_get(*, actor: Actor, pk: int) -> Project:
    """Return a row of ``project_list`` with its chosen collections and people. Raises Missing."""
    row = project_rows(actor=actor).filter(pk=pk).first()
    if row is None:
        raise Missing("project")
    return row


def project_rows(*, actor: Actor) -> QuerySet[Project]:
    """Return the rows of ``project_list``, each with ``scope`` and ``members`` as far as the actor may know of them."""
    there = Membership.objects.filter(tenant_id=actor.tenant_id, user_id=OuterRef("user_id"))
    people = ProjectMember.objects.visible_to(actor).filter(Exists(there)).select_related("user")
    if not actor.can(
        "member.read"
    ):  # others' addresses are not theirs to read, but of those they chose themselves
        people = people.filter(Q(user_id=actor.user_id) | Q(project__user_id=actor.user_id))
    chosen = ProjectCollection.objects.visible_to(actor).filter(
        collection__in=Collection.objects.visible_to(actor)
    )
    parts: Any = (  # two kinds of rows, for which a list has no type
        Prefetch("members", queryset=people.order_by("user__email")),
        Prefetch("scope", queryset=chosen.select_related("collection").order_by("collection__name")),
    )
    return project_list(actor=actor).prefetch_related(*parts)


def editable_by(actor: Actor) -> Q:
    """Return the condition that the actor may change a project that they see: owners, and admins if others see it too."""
    if not actor.can("conversation.write"):
        return Q(pk__in=[])
    own = Q(user_id=actor.user_id, user_id__isnull=False)
    return own | ~Q(sharing=Sharing.OWNER) if actor.can("member.manage") else own


def project_conversations(
    *, actor: Actor, project: Project, archived: bool = False
) -> QuerySet[Conversation]:
    """Return the actor's own conversations in a project, pinned ones first, as ``conversation_list_pinned`` does."""
    return conversation_list_pinned(actor=actor, archived=archived).filter(project=project)


def project_present(*, actor: Actor, conversation_pk: int) -> int | None:
    """Return the id of the project that a conversation of the actor's is in; None for none, and without such a conversation."""
    rows = Conversation.objects.visible_to(actor).filter(pk=conversation_pk)
    present: int | None = rows.values_list("project_id", flat=True).first()
    return present


def people_choices(*, actor: Actor) -> list[User]:
    """Return the members, with whom a project can be shared; none without the right to see them."""
    if not actor.can("member.read"):
        return []
    rows = Membership.objects.visible_to(actor).select_related("user")
    return [row.user for row in rows.order_by("user__email")]


def project_instructions(*, actor: Actor, conversation: Conversation) -> str:
    """Return what a conversation's project tells the model; "" without one, or if the actor doesn't see it any more."""
    if conversation.project_id is None:
        return ""
    rows = Project.objects.visible_to(actor).filter(pk=conversation.project_id)
    return rows.values_list("instructions", flat=True).first() or ""
