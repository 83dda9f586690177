"""Reads of prompts: a person's own and those that are shared with the workspace."""

from __future__ import annotations

from django.db.models import Case, IntegerField, Q, QuerySet, Value, When

from apps.conversations.models import Prompt
from basics.errors import Missing
from tenancy.actors import Actor

MAX_QUERY = 200


def prompt_list(*, actor: Actor, query: str = "") -> QuerySet[Prompt]:
    """Return the prompts that the actor may use, by name; with a query first those whose name begins with it.

    Args:
        query: words that name or description contain, all of them; "" for all prompts.
    """
    actor.require("conversation.read")
    rows: QuerySet[Prompt] = Prompt.objects.visible_to(actor).select_related("user")
    query = query.replace("\x00", "").strip()[:MAX_QUERY]
    for word in query.split():
        rows = rows.filter(Q(name__icontains=word) | Q(description__icontains=word))
    if query:
        begins = When(name__istartswith=query, then=Value(0))
        rows = rows.annotate(place=Case(begins, default=Value(1), output_field=IntegerField()))
        return rows.order_by("place", "name", "pk")
    return rows.order_by("name", "pk")


def prompt_get(*, actor: Actor, pk: int) -> Prompt:
    """Return a prompt that the actor may use. Raises Missing."""
    found = prompt_list(actor=actor).filter(pk=pk).first()
    if found is None:
        raise Missing("prompt")
    return found


def may_edit(actor: Actor, prompt: Prompt) -> bool:
    """Tell whether the actor may change a prompt that they see: their own, and with ``assistant.write`` shared ones."""
    if not actor.can("conversation.write"):
        return False
    return actor.can("assistant.write") if prompt.is_shared else _is_own(actor, prompt)


def may_share(actor: Actor, prompt: Prompt | None = None) -> bool:
    """Tell whether the actor may share a prompt, or make a shared one private again: who made it, with ``assistant.write``.

    Args:
        prompt: None for one that they are about to make.
    """
    return actor.can("assistant.write") and (prompt is None or _is_own(actor, prompt))


def _is_own(actor: Actor, prompt: Prompt) -> bool:
    return actor.user_id is not None and prompt.user_id == actor.user_id
