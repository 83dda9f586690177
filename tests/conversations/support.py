"""Documents, questions and a worker played by the test."""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from concurrent.futures import Executor
from dataclasses import dataclass
from typing import Any

from asgiref.sync import sync_to_async

from apps.collections.models import Chunk, Collection, Document, DocumentStatus
from apps.conversations.answering import tasks
from apps.conversations.models import Conversation, Turn
from apps.conversations.turns.conversations import conversation_create
from apps.conversations.turns.services import turn_submit
from apps.conversations.turns.titles import title_make
from jobs.context import JobContext
from jobs.models import Job
from jobs.runner import _finish
from runs.local_loop import LocalLoop
from tenancy.actors import Actor
from tenancy.scope import tenant_scope
from tests.cast import Cast
from tests.factories import make_collection
from tests.runs.support import take
from toolloop.providers.scripted import ScriptedProvider, ScriptedTurn

TEXTS = (
    "Cars of heading 8703 pay a duty of 2.5 percent. Trucks pay 25 percent.",
    "The notice period is 30 days. It begins on the first of the month.",
    "Quotes are kept for <b>seven</b> years, as the law asks.",
)


@dataclass(frozen=True)
class Library:
    """A ready document in a collection."""

    collection: Collection
    document: Document
    chunks: tuple[Chunk, ...]


def make_library(
    cast: Cast, name: str = "Tariff", document: str = 'Duties "2026" <x>.pdf', texts: Sequence[str] = TEXTS
) -> Library:
    """Return a collection with one document of these passages, a page each."""
    collection = make_collection(cast.tenant, name)
    with tenant_scope(cast.tenant.pk):
        row = Document.objects.create(
            tenant=cast.tenant,
            collection=collection,
            name=document,
            path=uuid.uuid4().hex,
            media_type="text/plain",
            size=1,
            sha256=uuid.uuid4().hex * 2,
            file="x",
            status=DocumentStatus.READY,
            chunk_count=len(texts),
        )
        chunks, at = [], 0
        for index, text in enumerate(texts):
            chunks.append(
                Chunk.objects.create(
                    tenant=cast.tenant,
                    collection=collection,
                    document=row,
                    index=index,
                    text=text,
                    char_start=at,
                    char_end=at + len(text),
                    page_start=index + 1,
                    page_end=index + 1,
                )
            )
            at += len(text) + 2
    return Library(collection, row, tuple(chunks))


def ask(
    cast: Cast,
    text: str = "What is the duty on cars?",
    *,
    role: str = "member",
    actor: Actor | None = None,
    conversation: Conversation | None = None,
    model: str = "",
    client_id: uuid.UUID | None = None,
) -> Turn:
    """Submit a question of a role's person, or of an actor, in a new conversation when none is given."""
    with tenant_scope(cast.tenant.pk):
        actor = actor or cast.actor(role)
        if conversation is None:
            conversation = conversation_create(tenant=cast.tenant, actor=actor)
        return turn_submit(
            tenant=cast.tenant,
            actor=actor,
            conversation=conversation,
            text=text,
            client_id=client_id or uuid.uuid4(),
            model=model,
        )


async def answer(
    turn: Turn, lane: Executor, monkeypatch: Any = None, script: Sequence[ScriptedTurn] | None = None
) -> JobContext:
    """Do the turn's job as a worker would; with a script, that is what the model says."""
    if script is not None:
        provider = ScriptedProvider(script, by_history=True)
        monkeypatch.setattr(tasks, "provider_for", lambda tenant, model: provider)
    job = await sync_to_async(job_of)(turn)
    ctx = await sync_to_async(take)(job, "w1", lane)
    with tenant_scope(turn.tenant_id):
        error: BaseException | None = None
        try:
            await tasks.turn_run(ctx, **job.payload)
        except Exception as raised:  # noqa: BLE001 - the runner's own rules decide
            error = raised
        await ctx.in_db(_finish, ctx, job, error)
    return ctx


def job_of(turn: Turn) -> Job:
    """Return the job of the turn's present run."""
    with tenant_scope(turn.tenant_id):
        job: Job = Turn.objects.select_related("run__job").get(pk=turn.pk).run.job
        return job


def title_made(cast: Cast, turn: Turn) -> str:
    """Return the title that the job which names conversations makes, "" for none."""
    here = LocalLoop()
    return here.run(
        title_make(tenant=cast.tenant, actor=cast.actor("member"), turn_id=turn.pk, in_db=here.in_db)
    )


def fresh(turn: Turn) -> Any:
    """Return the turn as it is stored now, with everything that hangs on it."""
    with tenant_scope(turn.tenant_id):
        row: Any = Turn.objects.select_related("run", "conversation").get(pk=turn.pk)
        row.said = {m.author: m.text for m in row.messages.all()}
        row.cited = list(row.citations.order_by("number"))
        return row
