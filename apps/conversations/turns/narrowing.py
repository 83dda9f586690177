"""What one message is limited to: collections or documents that its answer searches, and tools that it uses."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from apps.collections.file_tools.toolset import FILE_TOOLS
from apps.collections.models import Document
from apps.conversations.assistants.selectors import version_collections, version_tools
from apps.conversations.display.narrowing import NARROWED
from apps.conversations.models import AssistantVersion, Conversation
from apps.conversations.transcript import selectors
from apps.tools.toolset.selectors import guard_for
from basics.errors import Invalid
from basics.texts import gettext as _
from runs.models import Run
from tenancy.actors import Actor

MOST_NARROWED = 20
"""Collections, documents or tools that one message names."""
_KINDS = ("collections", "documents", "tools")


@dataclass(frozen=True, slots=True)
class Narrowing:
    """What a message names.

    Attributes:
        collections: ids of the only collections to search; none for all of the conversation.
        documents: ids of the only documents to search and read; none for all. Never with ``collections``.
        tools: names of the only tools to use beside those that search and read documents; none for all.
    """

    collections: tuple[int, ...] = ()
    documents: tuple[int, ...] = ()
    tools: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        """Tell whether it limits anything."""
        return bool(self.collections or self.documents or self.tools)

    def facts(self) -> dict[str, Any]:
        """Return it as the request of a run or of a waiting question keeps it; empty where it limits nothing."""
        return {NARROWED: {kind: list(getattr(self, kind)) for kind in _KINDS}} if self else {}


def narrowing_kept(request: Mapping[str, Any]) -> Narrowing:
    """Return what ``Narrowing.facts`` has put into a request."""
    kept = request.get(NARROWED) or {}
    return Narrowing(**{kind: tuple(kept.get(kind, ())) for kind in _KINDS})


def narrowing_checked(
    actor: Actor, conversation: Conversation, version: AssistantVersion | None, narrowing: Narrowing
) -> Narrowing:
    """Return a narrowing of what the conversation has, each part once.

    Its parts are looked at again when the answer is written, with the rights of that moment: see ``narrowing_now``.

    Args:
        version: who answers; None for the model alone.

    Raises:
        Invalid: it names too much, collections and documents at once, or what the actor cannot ask about here.
    """
    if not narrowing:
        return narrowing
    found = Narrowing(**{kind: tuple(dict.fromkeys(getattr(narrowing, kind))) for kind in _KINDS})
    if max(map(len, (found.collections, found.documents, found.tools))) > MOST_NARROWED:
        raise _refused(
            "narrowing_too_long", _("Name at most %(most)s in one message.") % {"most": MOST_NARROWED}
        )
    if found.collections and found.documents:
        raise _refused("narrowing_mixed", _("Name collections or documents in one message, not both."))
    only = None if version is None else version_collections(version)
    scope = selectors.scope_names(actor=actor, conversation=conversation, only=only)
    if set(found.collections) - set(scope):
        raise _refused(
            "unknown_collection", _("This conversation doesn't search one of the collections you named.")
        )
    if found.documents:
        rows = Document.objects.visible_to(actor).filter(pk__in=found.documents, collection__in=list(scope))
        if rows.count() != len(found.documents):
            raise _refused(
                "unknown_document", _("This conversation doesn't search one of the documents you named.")
            )
    if found.tools:
        allowed = None if version is None else version_tools(version, scope)
        guard = guard_for(actor=actor, scope=scope, tools=allowed, off=conversation.tools_off)
        callable_ = {tool.name for tool in guard.tools()}
        if set(found.tools) - callable_:
            raise _refused("unknown_tool", _("You can't use one of the tools you named. Remove it."))
    return found


@dataclass(frozen=True, slots=True)
class NarrowedNow:
    """What a narrowing comes to when the answer is written.

    Attributes:
        collections: ids of the only collections to search; None for all.
        documents: ids of the only documents, in the versions of now; None for all, empty where none is there any more.
        off: names of tools that cannot keep to documents.
    """

    collections: frozenset[int] | None = None
    documents: frozenset[int] | None = None
    off: frozenset[str] = frozenset()


def narrowing_now(actor: Actor, narrowing: Narrowing, version_only: frozenset[int] | None) -> NarrowedNow:
    """Return where an answer may look, with the rights and the documents of this moment.

    Args:
        version_only: ids of the collections of the assistant that answers; None for all.
    """
    if narrowing.documents:
        chosen = Document.objects.visible_to(actor).filter(pk__in=narrowing.documents)
        places = list(chosen.values_list("collection_id", "path"))
        now = Document.objects.visible_to(actor).current()
        now = now.filter(collection__in={c for c, _path in places}, path__in={p for _c, p in places})
        there = {
            pk: collection
            for pk, collection, path in now.values_list("pk", "collection_id", "path")
            if (collection, path) in set(places)
        }
        return NarrowedNow(
            _both(frozenset(there.values()), version_only), frozenset(there), frozenset(FILE_TOOLS.names())
        )
    if narrowing.collections:
        return NarrowedNow(_both(frozenset(narrowing.collections), version_only))
    return NarrowedNow(version_only)


def tools_narrowed(
    allowed: frozenset[str] | None, narrowing: Narrowing, kept: Sequence[str]
) -> frozenset[str] | None:
    """Return the names of the only tools that an answer may use; None for all.

    Args:
        allowed: those of the assistant; None for all.
        kept: those that stay whatever the message names: without a search an answer could rest on nothing.
    """
    if not narrowing.tools:
        return allowed
    named = frozenset({*narrowing.tools, *kept})
    return named if allowed is None else named & allowed


def narrowing_of(run: Run) -> Narrowing:
    """Return what the question of a run was limited to."""
    return narrowing_kept(run.request)


def _both(one: frozenset[int], other: frozenset[int] | None) -> frozenset[int]:
    return one if other is None else one & other


def _refused(code: str, message: str) -> Invalid:
    return Invalid(code, message, data={"fields": {NARROWED: [message]}})
