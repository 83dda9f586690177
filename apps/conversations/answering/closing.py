"""End the turn of a run that has ended: its answer and citations become rows."""

from __future__ import annotations

from typing import Any

from django.conf import settings
from django.db import connection
from django.utils.translation import gettext_noop

from apps.conversations.answering.listeners import answer_tell, wanted_column
from apps.conversations.citations.markers import (
    CitablePassage,
    Cited,
    answer_cite,
    chunks_named,
    numbers_of,
    passages_of,
)
from apps.conversations.display.answer_forms import form_of, shown_text, value_cited
from apps.conversations.display.marks import named_around
from apps.conversations.models import Citation, Message, Turn
from apps.conversations.support.sentences import compared_with, unsupported_find
from apps.conversations.support.services import JOB_KIND as SUPPORT_JOB
from apps.conversations.turns.comparison import activity_pass
from apps.conversations.turns.queue import JOB_KIND as QUEUE_JOB
from apps.conversations.turns.titles import JOB_KIND as TITLE_JOB
from basics.texts import shortened
from jobs.context import JobContext
from jobs.models import Job
from jobs.services import job_enqueue, job_follow
from notices.services import notice_put
from runs.actors import is_person
from runs.models import Run, RunStatus
from runs.providers import is_extractive
from runs.selectors import cited_columns, cited_take
from tenancy.actors import Actor, system_actor
from tenancy.database.columns import Columns
from tenancy.inserting import rows_insert
from tenancy.models import Tenant
from toolloop.output import Output
from toolloop.storable import text_storable

_PROBLEM_MOST = 1_000
_TOGETHER = 20
"""Rows that one statement stores: it has a part for each."""
_TOLD = (RunStatus.COMPLETED, RunStatus.FAILED)
"""What its person is told of; who stopped an answer knows."""
# By hand, because every answer ends with them.
_TURN, _TENANT = Columns(Turn, "t"), Columns(Tenant, "w")
_CLOSING = f"""
SELECT {_TURN}, {_TENANT},
    (SELECT m.text FROM conversations_message m WHERE m.tenant_id = t.tenant_id AND m.turn_id = t.id AND m.author = 'user'),
    (SELECT c.support_model FROM conversations_conversationrules c WHERE c.tenant_id = t.tenant_id),
    {cited_columns("t.tenant_id", "t.run_id", "%s")}
FROM conversations_turn t JOIN tenancy_tenant w ON w.id = t.tenant_id
WHERE t.tenant_id = %s AND t.run_id = %s ORDER BY t.id LIMIT 1
"""  # noqa: S608 - names of columns
_ALIVE = """
SELECT id, document_id FROM collections_chunk WHERE tenant_id = %s AND id = ANY (%s) ORDER BY id FOR KEY SHARE
"""
_END = """
UPDATE conversations_turn t SET is_active = false, removed_markers = %s WHERE tenant_id = %s AND id = %s
RETURNING EXISTS (SELECT FROM conversations_queuedquestion q
    WHERE q.tenant_id = t.tenant_id AND q.conversation_id = t.conversation_id)"""


def turn_close(run: Run, ctx: JobContext | None = None) -> None:
    """End the turn of a run that has ended: answer and citations as rows, in the current transaction.

    Args:
        ctx: of the run's job, where that ends with the transaction.
    """
    found = _turn(run)
    if found is None:
        return
    turn, question, support_model, passages = found
    form = form_of(turn.assistant_version)
    cited = answer_cite(shown_text(run.answer, form is not None), passages)
    rows: list[Message | Citation | Job] = [
        *_answer(run, turn, question, cited, form),
        *_citations(run, turn, cited),
    ]
    other = activity_pass(turn) if turn.side is not None else None
    if cited.text.strip() and not is_extractive(run.model) and _is_namesake(turn, other):
        rows += job_follow(
            ctx, tenant=turn.tenant, actor=_system(run), kind=TITLE_JOB, payload={"turn_id": turn.pk}
        )
    for begin in range(0, len(rows), _TOGETHER):
        rows_insert(rows[begin : begin + _TOGETHER])
    turn.is_active, turn.removed_markers = False, cited.removed
    with connection.cursor() as cursor:
        cursor.execute(f"{_END}, {wanted_column()}", [cited.removed, turn.tenant_id, turn.pk])
        is_queue, wanted = cursor.fetchone()
    if cited.text.strip():
        answer_tell(turn, wanted)
    if run.status in _TOLD and is_person(run):
        notice_put(
            tenant_id=run.tenant_id,
            people=[run.user_id],
            kind="answer",
            pk=turn.conversation_id,
            state=str(run.status),
        )
    if cited.sources and not is_extractive(run.model) and (support_model or settings.SUPPORT_NLI):
        job_enqueue(
            tenant=turn.tenant,
            actor=_system(run),
            kind=SUPPORT_JOB,
            payload={"turn_id": turn.pk, "run_id": run.pk},
        )
    if is_queue:
        # No dedupe key: a job that is just ending may have looked before this turn ended.
        job_enqueue(
            tenant=turn.tenant,
            actor=_system(run),
            kind=QUEUE_JOB,
            payload={"conversation_id": turn.conversation_id},
        )


def _system(run: Run) -> Actor:
    return system_actor(run.tenant_id, run.user_id)


def _answer(run: Run, turn: Turn, question: str, cited: Cited, form: Output | None) -> list[Message]:
    """Return the answer as a row that isn't stored yet; none where nothing was said."""
    if not cited.text.strip():
        return []
    data, problem = _formed(run, form)
    if data is not None:
        told = ((s.passage.chunk_id, s.number, s.markers) for s in cited.sources)
        data = value_cited(data, numbers_of(told))
    said = Message(
        tenant_id=run.tenant_id,
        turn=turn,
        author=Message.Author.ASSISTANT,
        text=cited.text,
        data=data,
        problem=problem,
        unsupported=unsupported_find(
            cited,
            {s.number: s.passage.text for s in cited.sources},
            named_around(question, cited.sources),
        ),
        compared=compared_with(len({s.passage.chunk_id for s in cited.sources})),
    )
    return [said]


def _citations(run: Run, turn: Turn, cited: Cited) -> list[Citation]:
    """Return what an answer cites as rows that aren't stored yet; its passages stay until the commit."""
    if not cited.sources:
        return []
    alive = _alive(run.tenant_id, [s.passage.chunk_id for s in cited.sources])
    return [
        Citation(
            tenant_id=run.tenant_id,
            turn=turn,
            number=s.number,
            chunk_ref=s.passage.chunk_id,
            chunk_id=s.passage.chunk_id if s.passage.chunk_id in alive else None,
            document_id=alive.get(s.passage.chunk_id),
            document_name=s.passage.document_name[:255],
            collection_name=s.passage.collection_name[:120],
            page=s.page,
            quote=s.quote,
            header=s.header,
            markers=s.markers,
            char_start=s.char_start,
            char_end=s.char_end,
        )
        for s in cited.sources
    ]


def _turn(run: Run) -> tuple[Turn, str, str, dict[int, CitablePassage]] | None:
    """Return the turn whose run this is, with it and its tenant, its question, the model that checks answers again, and
    the passages that its answer names.

    None when the turn has another run by now.
    """
    with connection.cursor() as cursor:
        # Whether the answer has a form is only known from the turn: JSON may write a marker's letters another way.
        both = f"{run.answer}\n{shown_text(run.answer, formed=True)}"
        named = [str(pk) for pk in chunks_named(both)]
        cursor.execute(_CLOSING, [named, run.tenant_id, run.pk])
        row = cursor.fetchone()
    if row is None:
        return None
    values = iter(row)
    turn = _TURN.take(values)
    turn.run, turn.tenant = run, _TENANT.take(values)
    question, support_model = next(values) or "", next(values) or ""
    return turn, question, support_model, passages_of(*cited_take(values))


def _is_namesake(turn: Turn, other: Turn | None) -> bool:
    """Tell whether the conversation may be named after a turn that has an answer: its first question, however often asked.

    Args:
        other: of a comparison, locked: only the one that has an answer first names the conversation, as both would be paid for.
    """
    if turn.parent_id is not None:
        return False
    if other is None or is_extractive(other.run.model):
        return True
    said = Message.objects.filter(tenant_id=turn.tenant_id, turn=other, author=Message.Author.ASSISTANT)
    return not said.exists()


def _formed(run: Run, form: Output | None) -> tuple[Any, str]:
    """Return the value of an answer that was to have a form, or why there is none."""
    if form is None:
        return None, ""
    if is_extractive(run.model):
        return (
            None,
            gettext_noop(
                "No language model wrote this answer, so it isn't in the required format: it quotes the documents."
            ),
        )
    value, problem = form.parse(run.answer)
    if problem and run.status != RunStatus.COMPLETED:
        problem = gettext_noop("The answer ended before it was complete.")
    return value, shortened(text_storable(problem), _PROBLEM_MOST)


def _alive(tenant_id: int, chunk_ids: list[int]) -> dict[int, int]:
    """Return chunk id to document id of the chunks that still exist, locked so that they stay until the commit.

    Others may cite them meanwhile: many are asked about the same passage at once.
    """
    with connection.cursor() as cursor:
        cursor.execute(_ALIVE, [tenant_id, chunk_ids])
        return dict(cursor.fetchall())
