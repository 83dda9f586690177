"""The job that answers a question."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from django.conf import settings
from django.db import connection
from django.db.models import Value

from apps.conversations.answering.closing import turn_close
from apps.conversations.answering.helpers import helper_tools
from apps.conversations.answering.prepare import Answering, answering_execute, answering_of
from apps.conversations.assistants.selectors import version_collections, version_tools
from apps.conversations.attachments.selectors import FilesInScope, attachments_of, given_of
from apps.conversations.attachments.services import unreadable
from apps.conversations.display.attached_files import problem_of, state_of
from apps.conversations.memory.selectors import asks_in_person, told_columns, told_take
from apps.conversations.models import Attachment, Conversation, Message, Mode, Turn
from apps.conversations.pictures.services import PictureKeeper
from apps.conversations.projects.selectors import project_instructions
from apps.conversations.toolset import bundle as tools
from apps.conversations.transcript import selectors
from apps.conversations.transcript.branch_tree import HISTORY_TURNS, branch_before
from apps.conversations.transcript.shown import conversation_tainted, conversation_withheld
from apps.conversations.turns.asking import JOB_KIND
from apps.conversations.turns.narrowing import NarrowedNow, narrowing_now, narrowing_of, tools_narrowed
from apps.tools.toolset.guard import Guard
from apps.tools.toolset.model_calls import PROGRAM_TOOL
from apps.tools.toolset.selectors import guard_for
from basics.errors import Invalid
from jobs.context import JobContext, JobPostponed
from jobs.models import Job
from jobs.registry import job
from runs.actors import is_person
from runs.call_log import PRIVATE
from runs.models import ACTIVE, Run
from runs.providers import loop_model, provider_for
from runs.services import run_abandon
from runs.withheld import Withheld
from tenancy.actors import Actor
from tenancy.database.columns import Columns
from tenancy.models import Tenant
from toolloop.events import RunFinished
from toolloop.media import Media
from toolloop.messages import ModelMessage, UserMessage
from toolloop.messages import Turn as LoopTurn
from toolloop.providers.profiles import Profile
from toolloop.providers.registry import parse_model

READING_S = 2.0
"""Seconds after which a question looks again whether its files have been read."""
_TURN, _RUN = Columns(Turn, "t"), Columns(Run, "r")
_CONVERSATION, _TENANT = Columns(Conversation, "c"), Columns(Tenant, "w")
_QUESTION = f"""
SELECT {_TURN}, {_RUN}, {_CONVERSATION}, {_TENANT},
    (SELECT m.text FROM conversations_message m WHERE m.tenant_id = t.tenant_id AND m.turn_id = t.id AND m.author = 'user'),
    {told_columns("t.tenant_id", "c.user_id")}
FROM conversations_turn t JOIN runs_run r ON r.id = t.run_id AND r.tenant_id = t.tenant_id JOIN tenancy_tenant w ON w.id = t.tenant_id
    JOIN conversations_conversation c ON c.id = t.conversation_id AND c.tenant_id = t.tenant_id
WHERE t.tenant_id = %s AND t.id = %s AND t.run_id = %s
"""  # noqa: S608 - names of columns


def turn_ended(ended: Job) -> None:
    """End run and turn of a job that ended without them (worker lost, cancelled in the queue)."""
    for run in run_abandon(job=ended):
        turn_close(run)


@dataclass(frozen=True, slots=True)
class _Prepared:
    tenant: Tenant
    turn: Turn
    run: Run
    actor: Actor
    answering: Answering
    guard: Guard
    collections: list[int]
    narrowed: NarrowedNow
    given: FilesInScope
    along: selectors.ScopeAlong


@job(JOB_KIND, lane="loop", max_attempts=3, on_end=turn_ended)
async def turn_run(ctx: JobContext, *, turn_id: int, run_id: int) -> None:
    """Answer a turn's question with the loop; safe to run again at any point."""
    prepared = await ctx.in_db(_prepare, ctx.tenant_id, turn_id, run_id)
    if prepared is None:
        return
    run, turn = prepared.run, prepared.turn
    scope = tools.Scope(
        prepared.tenant,
        turn.conversation,
        run,
        ctx.in_db,
        prepared.guard,
        prepared.narrowed.collections,
        given=prepared.given,
        documents=prepared.narrowed.documents,
        along=prepared.along,
    )
    await answering_execute(
        ctx,
        prepared.answering,
        scope,
        prepared.collections,
        cache_key=f"groundwork-{run.tenant_id}-{turn.conversation_id}",
        user_key=_user_key(run),
        before_finish=partial(_close, ctx),
        file_keeper=PictureKeeper(ctx, run),
        actor=prepared.actor,
    )


def _close(ctx: JobContext, run: Run, finished: RunFinished) -> None:
    turn_close(run, ctx)


def _prepare(tenant_id: int, turn_id: int, run_id: int) -> _Prepared | None:
    """Read everything a run needs in one go; None when there is nothing to do any more.

    Raises:
        JobPostponed: an attached file is still being read.
        DomainError: the person has left, the model has no key any more, or a file that came with the question could not
            be read; the run fails with that reason.
    """
    found = _question(tenant_id, turn_id, run_id)
    if found is None or found[0].run.status not in ACTIVE:
        return None
    turn, question, values = found
    run: Run = turn.run
    branch = [*branch_before(turn, HISTORY_TURNS - 1), turn.pk]
    files = _files_read(turn, branch)
    actor, collections = selectors.run_names_now(run, turn.conversation)
    version = turn.assistant_version
    narrowing = narrowing_of(run)
    narrowed = narrowing_now(actor, narrowing, None if version is None else version_collections(version))
    if narrowed.collections is not None:
        collections = {pk: name for pk, name in collections.items() if pk in narrowed.collections}
    allowed = None if version is None else version_tools(version, collections)
    kept = [*tools.TOOLSET.names(), *([PROGRAM_TOOL] if version and version.mode == Mode.CODE else [])]
    along = selectors.ScopeAlong(run, turn.conversation, tools.TOOLSET.names())
    guard = guard_for(
        actor=actor,
        scope=collections,
        tools=tools_narrowed(allowed, narrowing, kept),
        off=narrowed.off.union(turn.conversation.tools_off),
        along=along,
    )
    instructions = project_instructions(actor=actor, conversation=turn.conversation)
    provider = provider_for(turn.tenant, run.model)
    profile = loop_model(provider, run.model)[1]
    given = given_of(files, parse_model(run.model)[0], profile or Profile())
    answering = answering_of(
        version,
        run=run,
        model=run.model,
        provider=provider,
        guard=guard,
        history=history_of(turn, question, branch[:-1], given.media, reader=actor),
        collections=collections,
        native=profile is not None and profile.deferred_tools,
        loaded=lambda: selectors.tools_loaded(turn),
        told=told_take(values, is_asker=is_person(run) and asks_in_person(actor, turn.conversation.user_id)),
        beside=[] if version is None or narrowing.tools else helper_tools(version, lambda: answering.toolset),
        given=given,
        project=instructions,
        is_narrowed=bool(narrowing.documents),
    )
    return _Prepared(
        tenant=turn.tenant,
        turn=turn,
        run=run,
        actor=actor,
        answering=answering,
        guard=guard,
        collections=list(collections),
        narrowed=narrowed,
        given=given,
        along=along,
    )


def _question(tenant_id: int, turn_id: int, run_id: int) -> tuple[Turn, str, Iterator[Any]] | None:
    """Return a turn that has this run, with its run, conversation and tenant, the question, and what ``told_take`` reads."""
    with connection.cursor() as cursor:
        cursor.execute(_QUESTION, [tenant_id, turn_id, run_id])
        row = cursor.fetchone()
    if row is None:
        return None
    values = iter(row)
    turn = _TURN.take(values)
    turn.run, turn.conversation = _RUN.take(values), _CONVERSATION.take(values)
    turn.tenant = _TENANT.take(values)
    return turn, next(values), values


def _files_read(turn: Turn, branch: Sequence[int]) -> list[Attachment]:
    """Return the files of a branch, all of which have been read or never will be. Raises JobPostponed, Invalid."""
    if not turn.run.request.get(PRIVATE):  # the conversation had no file when this was asked
        return []
    files = attachments_of(branch, tenant_id=turn.tenant_id)
    if any(state_of(row) == "reading" for row in files):
        raise JobPostponed(READING_S)
    for row in files:
        if row.turn_id == turn.pk and (problem := problem_of(row)):
            raise Invalid("attachment_unreadable", unreadable(row.name, problem))
    return files


def history_of(
    turn: Turn,
    question: str,
    before: Sequence[int],
    media: Mapping[int, tuple[Media, ...]],
    *,
    reader: Actor | None = None,
) -> list[ModelMessage]:
    """Return a branch up to and with a turn's question: answers as they were written, markers included.

    Args:
        before: ids of the turns that it follows, the oldest first.
        media: what the model is shown beside questions, by turn.
        reader: who asks; the model is not told again what they may not see any more. None for all that was said.
    """
    asked = UserMessage(question, parts=media.get(turn.pk, ()))
    if not before:
        return [asked]
    said = Message.objects.filter(tenant_id=turn.tenant_id, turn_id__in=before, author=Message.Author.USER)
    lost: Any = Value(value=False)
    if reader is not None:
        lost = conversation_tainted(reader, turn.conversation_id)
    rows = (
        said.annotate(is_tainted=lost)
        .order_by("turn__index")
        .values_list("text", "turn__run__model", "turn__run__answer", "turn_id", "is_tainted")
    )
    withheld: Withheld | None = None
    history: list[ModelMessage] = []
    for text, model, answer, turn_id, is_tainted in rows:
        if reader is not None and is_tainted and withheld is None:
            withheld = conversation_withheld(reader, turn.conversation_id)
        if withheld is not None:
            answer = withheld.text(answer)
        if answer.strip():
            provider, bare = parse_model(model)
            history += [
                UserMessage(text, parts=media.get(turn_id, ())),
                LoopTurn(provider=provider, model=bare, text=answer),
            ]
    return [*history, asked]


def _user_key(run: Run) -> str:
    """Return a stable identifier of the person that tells a provider nothing about them."""
    plain = f"{settings.SECRET_KEY}:{run.tenant_id}:{run.user_id}"
    return hashlib.sha256(plain.encode()).hexdigest()[:32]
