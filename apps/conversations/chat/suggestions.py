"""What the lists of the composer offer: prompts for "/", collections and documents for "@", tools for "#"."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from django.db.models import Q

from apps.collections.models import Document, DocumentStatus
from apps.conversations.assistants.selectors import assistant_choices, version_collections
from apps.conversations.chat.tools_offered import tool_lines
from apps.conversations.models import AssistantVersion, Conversation, Project
from apps.conversations.prompts.selectors import prompt_list
from apps.conversations.prompts.variables import variables_of
from apps.conversations.transcript import selectors
from apps.conversations.turns.conversations import project_scope
from basics.errors import Invalid
from basics.texts import gettext as _
from tenancy.actors import Actor

SHOWN = 8
MAX_QUERY = 200


@dataclass(frozen=True, slots=True)
class Suggestion:
    """A line of a list.

    Attributes:
        kind: ``prompt``, ``collection``, ``document`` or ``tool``.
        value: what a form sends for it.
        text, variables: of a prompt; the variables as a JSON list of names.
        mark: a short remark beside it.
    """

    kind: str
    value: str
    title: str
    hint: str = ""
    text: str = ""
    variables: str = ""
    mark: str = ""


@dataclass(frozen=True, slots=True)
class Where:
    """What the lists are for: a conversation, or a new one with what has been chosen for it so far.

    Attributes:
        version: the assistant's that answers; None for the model alone.
        collections: ids of those that a new conversation searches; None for all.
        off: names of tools that are switched off.
    """

    conversation: Conversation | None = None
    version: AssistantVersion | None = None
    collections: Sequence[int] | None = None
    off: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class SuggestionGroup:
    """Lines under one heading; ``is_cut`` says that there are more."""

    label: str
    lines: list[Suggestion] = field(default_factory=list)
    is_cut: bool = False


def where_of(
    *,
    actor: Actor,
    conversation: int | None,
    assistant: str,
    collections: Sequence[int],
    project: int | None = None,
    off: Sequence[str] = (),
) -> Where:
    """Return what a list is for. Raises Missing.

    Args:
        conversation: id; None for a new one.
        assistant: slug of the assistant that a new one asks, "" for none.
        collections: ids of those chosen for a new one; none means the project's, without a project all.
        project: id of the project that a new one belongs to; None for none.
        off: names of tools that a new one doesn't use.
    """
    if conversation is not None:
        row = selectors.conversation_get(actor=actor, pk=conversation)
        version = row.pinned_version or (row.assistant.published if row.assistant else None)
        return Where(row, version, off=row.tools_off)
    folder = None
    if project is not None and not collections:
        folder = Project.objects.visible_to(actor).filter(pk=project, searches_all=False).first()
    searched = list(collections) or None
    if folder is not None:
        searched = [row.pk for row in project_scope(actor, folder)]
    chosen = None
    if assistant:
        chosen = next((a for a in assistant_choices(actor=actor) if a.slug == assistant), None)
    return Where(None, chosen.published if chosen else None, searched, off)


def suggestions(
    *, actor: Actor, what: str, query: str, where: Where, is_menu: bool = False
) -> list[SuggestionGroup]:
    """Return what the actor may choose at this moment that has all words of a query.

    Args:
        what: ``prompts``, ``mentions`` (collections and documents), ``collections`` (all that may be searched) or
            ``tools``.
        is_menu: tools that are switched off too, to switch them on again.

    Raises:
        Invalid: it is none of these.
    """
    words = query.replace("\x00", "").strip()[:MAX_QUERY].casefold().split()
    if what == "prompts":
        return [_prompts(actor, query)]
    if what == "tools":
        return [_tools(actor, words, where, is_menu)]
    if what == "collections":
        return [_collections(selectors.scope_names(actor=actor, conversation=None), words)]
    if what != "mentions":
        raise Invalid("unknown_list", _("There is no such list. Reload the page."))
    only = None if where.version is None else version_collections(where.version)
    scope = selectors.scope_names(actor=actor, conversation=where.conversation, only=only)
    if where.collections is not None:
        scope = {pk: name for pk, name in scope.items() if pk in set(where.collections)}
    return [_collections(scope, words), _documents(actor, scope, words)]


def _prompts(actor: Actor, query: str) -> SuggestionGroup:
    rows = list(prompt_list(actor=actor, query=query)[: SHOWN + 1])
    return SuggestionGroup(
        _("Prompts"), [prompt_suggestion(row) for row in rows[:SHOWN]], is_cut=len(rows) > SHOWN
    )


def prompt_suggestion(row: Any) -> Suggestion:
    """Return the line of a prompt."""
    return Suggestion(
        "prompt",
        str(row.pk),
        row.name,
        row.description,
        text=row.text,
        variables=json.dumps(variables_of(row.text), ensure_ascii=False),
    )


def _collections(scope: dict[int, str], words: Sequence[str]) -> SuggestionGroup:
    found = [(pk, name) for pk, name in scope.items() if all(w in name.casefold() for w in words)]
    lines = [Suggestion("collection", str(pk), name) for pk, name in found[:SHOWN]]
    return SuggestionGroup(_("Collections"), lines, is_cut=len(found) > SHOWN)


def _documents(actor: Actor, scope: dict[int, str], words: Sequence[str]) -> SuggestionGroup:
    rows = (
        Document.objects.visible_to(actor)
        .current()
        .filter(collection__in=list(scope), status=DocumentStatus.READY)
    )
    for word in words:
        rows = rows.filter(Q(name__icontains=word) | Q(title__icontains=word))
    # The newest first: names of a large collection in order would all have to be read.
    found = list(rows.order_by("-pk").values_list("pk", "name", "collection_id")[: SHOWN + 1])
    lines = [Suggestion("document", str(pk), name, scope[home]) for pk, name, home in found[:SHOWN]]
    return SuggestionGroup(_("Documents"), lines, is_cut=len(found) > SHOWN)


def _tools(actor: Actor, words: Sequence[str], where: Where, is_menu: bool) -> SuggestionGroup:
    found = [
        line
        for line in tool_lines(actor=actor, version=where.version, off=where.off)
        if (line.is_on or is_menu)
        and all(w in f"{line.title} {line.name} {line.description}".casefold() for w in words)
    ]
    found.sort(key=lambda line: not all(w in line.title.casefold() for w in words))
    lines = [
        Suggestion("tool", line.name, line.title, line.description, mark=_("asks first") if line.asks else "")
        for line in found[:SHOWN]
    ]
    return SuggestionGroup(_("Tools"), lines, is_cut=len(found) > SHOWN)
