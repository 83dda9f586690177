"""Reads of conversations. A conversation is its owner's alone; a collection is searched with the rights of the moment."""

from __future__ import annotations

import time
from collections.abc import Sequence
from decimal import Decimal
from typing import Any

from django.conf import settings
from django.db import connection
from django.db.models import BooleanField, F, OuterRef, Prefetch, Q, QuerySet, Subquery
from django.db.models.expressions import RawSQL

from apps.collections.models import Collection, EmbeddingSpace
from apps.conversations.citations.markers import passages_of
from apps.conversations.display.figures import figure_annotations
from apps.conversations.display.presentation import TurnView, turn_view_ended, turn_view_live, with_files
from apps.conversations.models import (
    Attachment,
    Citation,
    Conversation,
    Feedback,
    Message,
    QueuedQuestion,
    Turn,
)
from apps.conversations.transcript.branch_tree import branch_before, tree_read, turns_alongside
from apps.conversations.transcript.shown import turns_for
from basics.errors import Missing
from runs.actors import actor_with
from runs.approvals.parking import decided_data
from runs.models import ACTIVE, Run, RunStatus
from runs.providers import models_available
from runs.selectors import (
    decided_prefetch,
    payload_list,
    payloads_named,
    tool_calls_prefetch,
    transcript_read,
)
from runs.usage import conversation_cost
from runs.withheld import NOTHING, Withheld, transcript_withheld
from tenancy.actors import Actor
from tenancy.database.columns import Columns
from tenancy.models import Tenant
from toolloop.providers.registry import ModelInfo
from toolloop.tools.meta_tools import META_TOOLS

RECENT = 15
BUSY = ("running", "waiting")
"""States of ``live_state`` that change by themselves soon."""
LOADED_TURNS = 20


def conversation_list(*, actor: Actor, archived: bool | None = False) -> QuerySet[Conversation]:
    """Return the actor's conversations, the last used first, each with what goes on in it.

    Args:
        archived: those that were put away, in place of the others; None for both.

    ``live_status`` is the status of the run under way, None without one; ``is_answering`` says whether there is one;
    ``is_failed`` that the last answer of the branch shown failed, ``is_news`` that it has ended since its owner looked.
    """
    actor.require("conversation.read")
    active = Turn.objects.filter(conversation=OuterRef("pk"), is_active=True)
    rows = Conversation.objects.visible_to(actor)
    if archived is not None:
        rows = rows.filter(archived_at__isnull=not archived)
    rows = rows.annotate(
        live_status=Subquery(active.values("run__status")[:1]),
        is_answering=Q(live_status__isnull=False),
        is_failed=Q(head__run__status=RunStatus.FAILED),
        is_news=Q(head__run__finished_at__gt=F("seen_at")),
    )
    return rows.order_by("-updated_at", "-pk")


def conversation_list_pinned(*, actor: Actor, archived: bool = False) -> QuerySet[Conversation]:
    """Return the rows of ``conversation_list`` with the pinned ones first, as pages list them."""
    return conversation_list(actor=actor, archived=archived).order_by("-is_pinned", "-updated_at", "-pk")


def live_state(row: Any) -> str:
    """Return what goes on in a conversation of ``conversation_list``: "running", "waiting" (for a decision), "failed" (its
    last answer), "done" (and not looked at yet) or "".
    """
    if row.live_status is not None:
        return "waiting" if row.live_status == RunStatus.PARKED else "running"
    if row.is_failed:
        return "failed"
    return "done" if row.is_news else ""


def conversation_get(*, actor: Actor, pk: int) -> Conversation:
    """Return one of the actor's conversations. Raises Missing."""
    actor.require("conversation.read")
    rows = Conversation.objects.visible_to(actor).select_related("assistant", "pinned_version", "project")
    found = rows.filter(pk=pk).first()
    if found is None:
        raise Missing("conversation")
    return found


def turn_list(*, actor: Actor, conversation: Conversation, all_branches: bool = False) -> QuerySet[Turn]:
    """Return the turns of a conversation's chosen branch in order, with run, messages, citations and tool calls.

    Args:
        all_branches: every turn, in the order in which they were asked.
    """
    rows = _turns(actor, conversation)
    if all_branches:
        return rows
    return rows.filter(pk__in=tree_read(conversation).shown)


def _has(table: str, column: str, own: str) -> RawSQL:
    """Return the condition that a turn of ``_turns`` has rows of a table; made by the ORM it costs as much as a statement."""
    return RawSQL(  # noqa: S611 - constants of this module
        f"EXISTS (SELECT FROM {table} part WHERE part.tenant_id = conversations_turn.tenant_id"
        f" AND part.{column} = conversations_turn.{own})",
        [],
        output_field=BooleanField(),
    )


# The same for everybody, and dear to make: an answer that was streamed asks for it when it ends.
_PARTS = {
    "citations": (
        _has("conversations_citation", "turn_id", "id"),
        Prefetch("citations", queryset=Citation.objects.order_by("number")),
    ),
    "files": (
        _has("conversations_attachment", "turn_id", "id"),
        Prefetch("attachments", queryset=Attachment.objects.select_related("document").order_by("pk")),
    ),
    "calls": (
        _has("runs_toolcall", "run_id", "run_id"),
        tool_calls_prefetch("run__tool_calls", **figure_annotations()),
    ),
    "decisions": (_has("runs_pendingdecision", "run_id", "run_id"), decided_prefetch("run__decisions")),
}
_SAID = Message.objects.defer("words").order_by("pk")
_ALONGSIDE = Subquery(turns_alongside().values("pk")[:1])


def _turns(actor: Actor, conversation: Conversation, withheld: Withheld | None = None) -> QuerySet[Turn]:
    actor.require("conversation.read")
    rows = turns_for(actor, conversation.pk, withheld).with_parts(_PARTS)
    rows = rows.annotate(alongside_id=_ALONGSIDE)  # type: ignore[no-redef]
    said = Prefetch("messages", queryset=_SAID.all())
    return rows.select_related("run", "assistant_version").prefetch_related(said).order_by("index")


def turn_get(
    *, actor: Actor, conversation: Conversation, withheld: Withheld | None = None, **where: Any
) -> Turn:
    """Return one turn of a conversation, of whatever branch, by ``pk`` or ``run_id``. Raises Missing.

    Args:
        withheld: what the actor may not see of the conversation at this moment, for who knows that; None to ask.
    """
    found = _turns(actor, conversation, withheld).filter(**where).first()
    if found is None:
        raise Missing("turn")
    return found


def turn_view(turn: Turn) -> TurnView:
    """Return what a page shows of a turn of ``turn_list``."""
    return with_files(_turn_view(turn), turn.attachments.all())


def _turn_view(turn: Turn) -> TurnView:
    run = turn.run
    said = {message.author: message for message in turn.messages.all()}
    text = said[Message.Author.USER].text if Message.Author.USER in said else ""
    if run.status not in ACTIVE:
        return turn_view_ended(
            turn,
            run,
            text,
            answer=said.get(Message.Author.ASSISTANT),
            citations=turn.citations.all(),
            calls=run.calls_shown,
            decided=[decided_data(row) for row in run.decisions_shown],
        )
    # No events after the run's row was read: its calls were read then, and the stream sends what came since. With newer events a
    # page would never be told of a call that began or ended in between.
    found: Withheld = getattr(turn, "withheld", NOTHING)
    transcript = transcript_withheld(transcript_read(run, upto=run.last_seq), found)
    passages = passages_of(found.value(payload_list(run)))
    return turn_view_live(turn, run, text, transcript=transcript, passages=passages, calls=run.calls_shown)


def turn_views(*, actor: Actor, conversation: Conversation) -> list[TurnView]:
    """Return what the page of a conversation shows: its chosen branch, and at each turn what else there is."""
    tree = tree_read(conversation)
    rows = _turns(actor, conversation).filter(pk__in=tree.shown)
    views = [turn_view(turn) for turn in rows]
    mine = Feedback.objects.filter(tenant_id=actor.tenant_id, turn__in=tree.shown, user_id=actor.user_id or 0)
    said = {row.turn_id: row for row in mine}
    for view in views:
        view.siblings, view.feedback = tree.siblings(view.pk), said.get(view.pk)
    if views and views[-1].pk in tree.undecided.values():
        views[-1].second = views.pop()  # Python pops it first
    return views


def cost_of(*, actor: Actor, conversation: Conversation) -> Decimal | None:
    """Return what a conversation of ``conversation_get`` has cost in USD; None where no price is known.

    All branches, its title and answers that were asked for again count. A fork does not count the answers it has taken
    over: they were paid for where they were asked.
    """
    actor.require("conversation.read")
    return conversation_cost(
        tenant_id=conversation.tenant_id,
        user_id=conversation.user_id,
        conversation=conversation.pk,
        since=conversation.created_at,
    )


def queued_list(*, actor: Actor, conversation: Conversation) -> QuerySet[QueuedQuestion]:
    """Return the questions that wait in a conversation of the actor's, in the order in which they will be asked."""
    actor.require("conversation.read")
    rows: QuerySet[QueuedQuestion] = QueuedQuestion.objects.visible_to(actor).filter(
        conversation=conversation, conversation__in=Conversation.objects.visible_to(actor)
    )
    return rows.order_by("pk")


# When a stream is opened. The conditions are those of ``Turn.objects.visible_to``, and that the conversation is the person's.
_WATCHED = """
SELECT t.id, t.side, t.is_kept, r.model, v.output
FROM conversations_turn t
JOIN conversations_conversation c ON c.tenant_id = t.tenant_id AND c.id = t.conversation_id
JOIN runs_run r ON r.tenant_id = t.tenant_id AND r.id = t.run_id
LEFT JOIN conversations_assistantversion v ON v.tenant_id = t.tenant_id AND v.id = t.assistant_version_id
WHERE t.tenant_id = %s AND t.conversation_id = %s AND t.run_id = %s AND c.user_id = %s AND c.removed_at IS NULL
"""


def stream_target(*, actor: Actor, conversation_pk: int, run_id: int) -> tuple[Turn, str, str]:
    """Return (turn, as far as frames need it, model, output) of a run the actor may watch, by one query. Raises Missing."""
    actor.require("conversation.read")
    if actor.user_id is None:
        raise Missing("run")
    with connection.cursor() as cursor:
        cursor.execute(_WATCHED, [actor.tenant_id, conversation_pk, run_id, actor.user_id])
        found = cursor.fetchone()
    if found is None:
        raise Missing("run")
    pk, side, is_kept, model, output = found
    return Turn(pk=pk, side=side, is_kept=is_kept), model, output or "text"


# Asked at every tool call, and before each answer: by hand it costs a sixth of what the ORM takes. The conditions are those
# of ``Collection.objects.visible_to``.
_COLLECTION, _SPACE = Columns(Collection, "c"), Columns(EmbeddingSpace, "s")
_IN_SCOPE = """
FROM collections_collection c JOIN collections_embeddingspace s ON s.id = c.space_id
WHERE c.tenant_id = %(tenant)s AND c.owner_id IS NULL
    AND ({key} IS NULL OR c.id = ANY ({key}))
    AND (%(conversation)s::bigint IS NULL OR c.id IN (SELECT collection_id FROM conversations_conversationcollection
        WHERE tenant_id = %(tenant)s AND conversation_id = %(conversation)s))
"""
_SCOPE, _SCOPE_OF_CALLER = _IN_SCOPE.format(key="%(key)s::bigint[]"), _IN_SCOPE.format(key="me.collections")
_PLACE = "SELECT row_number() OVER (ORDER BY c.name) AS place"
_SCOPE_NOW = f"{_PLACE}, {_COLLECTION}, {_SPACE} {_SCOPE_OF_CALLER}"
_NAMES_NOW = f"{_PLACE}, c.id, c.name {_SCOPE_OF_CALLER}"
_SCOPE_ALONG = _SCOPE_NOW.replace(" AS place", " AS at")
FRESH_S = 0.5
"""Seconds since a call was let in for which it takes what it may search as it was then."""


def scope_collections(*, actor: Actor, conversation: Conversation | None) -> list[Collection]:
    """Return the collections a conversation searches that the actor may read now (None: all there are)."""
    return [_collection(row) for row in _scope(f"{_COLLECTION}, {_SPACE}", actor, conversation)]


def run_scope_now(run: Run, conversation: Conversation | None) -> tuple[Actor, list[Collection]]:
    """Return whom a run acts for with the rights of now, and what ``scope_collections`` returns for them; by one statement.

    Raises:
        Denied: ``actor_gone``; no right to read collections.
    """
    actor, rows = actor_with(run, _SCOPE_NOW, _scope_values(run.tenant_id, conversation))
    actor.require("collection.read")
    return actor, [_collection(row) for row in rows]


class ScopeAlong:
    """What a run may search, read by the statement that lets a call in; see ``apps.tools.toolset.rights.ReadAlong``.

    Args:
        tools: names of those that begin with ``run_scope_now``.
    """

    query = _SCOPE_ALONG

    def __init__(self, run: Run, conversation: Conversation | None, tools: Sequence[str]) -> None:
        self.values, self.tools = _scope_values(run.tenant_id, conversation), tools
        self._found: tuple[float, Actor, list[tuple[Any, ...]]] | None = None

    def put(self, actor: Actor, rows: list[tuple[Any, ...]]) -> None:
        """Keep what was read as a call was let in."""
        self._found = time.monotonic(), actor, rows

    def take(self) -> tuple[Actor, list[Collection]] | None:
        """Return what ``run_scope_now`` does, for a call that was just let in; None where it has to ask.

        Calls of one step take what was read as the last of them was let in: no call takes what is older than its own look.

        Raises:
            Denied: no right to read collections.
        """
        found = self._found
        if found is None or time.monotonic() - found[0] > FRESH_S:
            return None
        _, actor, rows = found
        actor.require("collection.read")
        return actor, [_collection(row) for row in rows]


def run_names_now(run: Run, conversation: Conversation | None) -> tuple[Actor, dict[int, str]]:
    """Return whom a run acts for with the rights of now, and what ``scope_names`` returns for them; by one statement.

    Raises:
        Denied: ``actor_gone``; no right to read collections.
    """
    actor, rows = actor_with(run, _NAMES_NOW, _scope_values(run.tenant_id, conversation))
    actor.require("collection.read")
    return actor, dict(rows)


def _collection(row: tuple[Any, ...]) -> Collection:
    values = iter(row)
    collection: Collection = _COLLECTION.take(values)
    collection.space = _SPACE.take(values)
    return collection


def scope_names(
    *, actor: Actor, conversation: Conversation | None, only: frozenset[int] | None = None
) -> dict[int, str]:
    """Return id and name of what ``scope_collections`` does, in its order; of ``only`` these, where that is not None."""
    found = _scope("c.id, c.name", actor, conversation)
    return {pk: name for pk, name in found if only is None or pk in only}


def _scope(columns: str, actor: Actor, conversation: Conversation | None) -> list[tuple[Any, ...]]:
    actor.require("collection.read")
    limited = None if actor.collections is None else list(actor.collections)
    values = {**_scope_values(actor.tenant_id, conversation), "key": limited}
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT {columns} {_SCOPE} ORDER BY c.name", values)
        found: list[tuple[Any, ...]] = cursor.fetchall()
    return found


def _scope_values(tenant_id: int, conversation: Conversation | None) -> dict[str, Any]:
    if conversation is not None and conversation.searches_all:
        conversation = None
    return {"tenant": tenant_id, "conversation": None if conversation is None else conversation.pk}


def scope_pks(conversation: Conversation) -> list[int]:
    """Return the ids of the chosen collections."""
    return list(conversation.scope.values_list("collection_id", flat=True))


def tools_loaded(turn: Turn) -> list[dict[str, Any]]:
    """Return what the turns before this one in its branch loaded from the catalog of tools and unloaded, oldest first."""
    before = Turn.objects.filter(tenant_id=turn.tenant_id, pk__in=branch_before(turn, LOADED_TURNS))
    runs = Run.objects.filter(tenant_id=turn.tenant_id, pk__in=before.values("run_id"))
    return payloads_named(runs, META_TOOLS)


def model_list(tenant: Tenant) -> list[ModelInfo]:
    """Return the models a conversation of this workspace can use; ``extractive`` is always the last."""
    return models_available(tenant)


def model_default(models: list[ModelInfo], actor: Actor | None = None) -> str:
    """Return the model a new conversation starts with.

    The operator's choice if it is there, else the one that the actor has asked last outside of assistants, else the first.

    Args:
        actor: who begins it; None where the answer must be the same for everybody.
    """
    ids = [model.id for model in models]
    if settings.DEFAULT_MODEL in ids:
        return settings.DEFAULT_MODEL
    if actor is not None and actor.user_id is not None:
        own = Conversation.objects.visible_to(actor).filter(
            assistant=None, pinned_version=None, model__in=ids, head__isnull=False
        )
        last = own.order_by("-updated_at").values_list("model", flat=True).first()
        if last is not None:
            return str(last)
    return ids[0]
