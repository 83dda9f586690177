"""Asking: once however often it is sent, one at a time, answered with sources, ended with a reason."""

from __future__ import annotations

import asyncio
import json
import uuid
from concurrent.futures import Executor, ThreadPoolExecutor
from dataclasses import replace
from typing import Any

import pytest
from asgiref.sync import sync_to_async
from django.db import connections
from django.utils import timezone

from apps.collections.models import Collection, Document
from apps.conversations.answering import tasks
from apps.conversations.answering.tasks import history_of
from apps.conversations.models import Conversation, Message, Turn
from apps.conversations.transcript import selectors, sources
from apps.conversations.transcript.branch_tree import HISTORY_TURNS, branch_before
from apps.conversations.turns import conversations
from apps.conversations.turns import services as turns_services
from basics.errors import Conflict, Denied, Invalid, Missing
from jobs.context import LeaseLost
from jobs.models import Job, JobStatus
from jobs.sweeper import sweep
from runs.models import Run, RunStatus, ToolCall
from tenancy.models import AuditEvent, Membership
from tenancy.scope import platform_scope, tenant_scope
from tests.cast import Cast
from tests.conversations.support import Library, answer, ask, fresh, job_of, make_library
from tests.factories import make_collection
from tests.patience import PATIENCE_S
from tests.runs.support import take, until
from toolloop.errors import AuthFailed
from toolloop.messages import Turn as LoopTurn
from toolloop.messages import UserMessage
from toolloop.providers.scripted import ScriptedProvider, call, calls, fails, hangs, says

pytestmark = pytest.mark.django_db(transaction=True)


def test_question_makes_turn_run_message_job_and_audit_row(cast: Cast) -> None:
    turn = fresh(ask(cast, "  What is\nthe duty?  "))
    assert turn.said == {"user": "What is\nthe duty?"}
    assert (turn.index, turn.is_active, turn.run.status) == (0, True, RunStatus.QUEUED)
    assert turn.conversation.title == "What is the duty?"
    job = job_of(turn)
    assert (job.kind, job.lane, job.status) == ("conversations.turn_run", "loop", "queued")
    assert job.payload == {"turn_id": turn.pk, "run_id": turn.run_id}
    with tenant_scope(cast.tenant.pk):
        assert AuditEvent.objects.filter(action="turn.submit").count() == 1


def test_same_client_id_returns_the_same_turn(cast: Cast) -> None:
    ident = uuid.uuid4()
    first = ask(cast, client_id=ident)
    again = ask(cast, "other words", conversation=first.conversation, client_id=ident)
    assert again.pk == first.pk
    with tenant_scope(cast.tenant.pk):
        assert (Turn.objects.count(), Run.objects.count(), Job.objects.count()) == (1, 1, 1)


def test_one_conversation_comes_of_the_same_question_sent_four_times_at_once(cast: Cast) -> None:
    ident = uuid.uuid4()
    actor = cast.actor("member")

    def send(_: int) -> int:
        try:
            with tenant_scope(cast.tenant.pk):
                return turns_services.conversation_ask(
                    tenant=cast.tenant, actor=actor, text="Hello?", client_id=ident
                ).pk
        finally:
            connections.close_all()

    with ThreadPoolExecutor(4) as pool:
        assert len(set(pool.map(send, range(4)))) == 1
    with tenant_scope(cast.tenant.pk):
        assert (Conversation.objects.count(), Turn.objects.count()) == (1, 1)


def test_one_turn_comes_of_two_questions_sent_at_once(cast: Cast) -> None:
    with tenant_scope(cast.tenant.pk):
        conversation = conversations.conversation_create(tenant=cast.tenant, actor=cast.actor("member"))

    def send(text: str) -> str:
        try:
            ask(cast, text, conversation=conversation)
        except Conflict as error:
            return error.code
        finally:
            connections.close_all()
        return "taken"

    with ThreadPoolExecutor(4) as pool:
        outcomes = sorted(pool.map(send, ["a", "b", "c", "d"]))
    assert outcomes == ["conversation_busy"] * 3 + ["taken"]


@pytest.mark.parametrize("text", ["", "  \n", "\x00", "x" * 32_001])
def test_question_is_refused_and_leaves_nothing(cast: Cast, text: str) -> None:
    with tenant_scope(cast.tenant.pk), pytest.raises(Invalid):
        turns_services.conversation_ask(
            tenant=cast.tenant, actor=cast.actor("member"), text=text, client_id=uuid.uuid4()
        )
    with tenant_scope(cast.tenant.pk):
        assert Conversation.objects.count() == 0


def test_unknown_model_is_refused(cast: Cast) -> None:
    with pytest.raises(Invalid, match="not available"):
        ask(cast, model="openai/gpt-none")


@pytest.mark.parametrize("role", ["owner", "admin", "outsider"])
def test_conversation_does_not_exist_for_anybody_else(cast: Cast, role: str) -> None:
    turn = ask(cast)
    other = cast.actor(role)
    with tenant_scope(other.tenant_id):
        with pytest.raises(Missing):
            selectors.conversation_get(actor=other, pk=turn.conversation_id)
        with pytest.raises(Missing):
            turns_services.turn_submit(
                tenant=cast.tenant,
                actor=other,
                conversation=turn.conversation,
                text="x",
                client_id=uuid.uuid4(),
            )
        with pytest.raises(Missing):
            conversations.conversation_delete(tenant=cast.tenant, actor=other, conversation=turn.conversation)
        with pytest.raises(Missing):
            selectors.stream_target(actor=other, conversation_pk=turn.conversation_id, run_id=turn.run_id)


async def test_answer_is_stored_with_its_sources(
    cast: Cast, library: Library, found: Any, lane_threads: Executor, monkeypatch: Any
) -> None:
    first, second, _ = library.chunks
    turn = await sync_to_async(ask)(cast)
    await answer(
        turn,
        lane_threads,
        monkeypatch,
        [
            says("Let me look.", call("search_documents", query="duty on cars")),
            says(
                [
                    "Cars pay 2.5 percent [c",
                    f"{first.pk}]. Notice is 30 days [c{second.pk}, c{first.pk}]. ",
                    "Gold is free [c999999].",
                ]
            ),
        ],
    )
    done = await sync_to_async(fresh)(turn)
    assert done.said["assistant"] == (
        "Let me look.\n\nCars pay 2.5 percent [1]. Notice is 30 days [2][1]. Gold is free."
    )
    assert (done.is_active, done.removed_markers, done.run.status) == (False, 1, "completed")
    assert f"[c{first.pk}]" in done.run.answer
    one, two = done.cited
    assert (one.number, one.chunk_id, one.document_id, one.page) == (1, first.pk, library.document.pk, 1)
    assert one.quote == "Cars of heading 8703 pay a duty of 2.5 percent."
    assert two.quote == "The notice period is 30 days."
    assert (two.char_start, two.char_end) == (second.char_start, second.char_start + len(two.quote))
    assert one.collection_name == "Tariff"
    assert (await sync_to_async(job_of)(turn)).status == JobStatus.SUCCEEDED


async def test_extractive_model_answers_through_the_real_loop(
    cast: Cast, library: Library, found: Any, lane_threads: Executor
) -> None:
    turn = await sync_to_async(ask)(cast, "What is the duty on cars?", model="extractive")
    await answer(turn, lane_threads)
    done = await sync_to_async(fresh)(turn)
    assert "Cars of heading 8703 pay a duty of 2.5 percent" in done.said["assistant"]
    assert "[1]" in done.said["assistant"]
    assert done.removed_markers == 0
    assert done.cited[0].chunk_id == library.chunks[0].pk


async def test_search_has_the_rights_of_the_moment(
    cast: Cast, library: Library, found: list[Any], lane_threads: Executor, monkeypatch: Any
) -> None:
    turn = await sync_to_async(ask)(cast)

    def leave() -> None:
        with platform_scope():
            Membership.objects.filter(pk=cast.member.pk).delete()

    class Leaves(ScriptedProvider):
        async def stream(self, request: Any) -> Any:
            await sync_to_async(leave)()
            async for event in super().stream(request):
                yield event

    provider = Leaves([calls(call("search_documents", query="x")), says("I could not look.")])
    monkeypatch.setattr(tasks, "provider_for", lambda tenant, model: provider)
    await answer(turn, lane_threads)
    assert found == []
    with tenant_scope(cast.tenant.pk):
        row = await sync_to_async(ToolCall.objects.get)()
        run = await sync_to_async(Run.objects.get)(pk=turn.run_id)
    # The word that rights were lost may come before the call asks for them, or after: the call says the same.
    assert row.status == "failed"
    assert "no longer a member" in row.content
    assert (run.status, run.error_code) == ("failed", "actor_gone")


async def test_search_stays_inside_the_chosen_collections(
    cast: Cast, library: Library, found: list[Any], lane_threads: Executor, monkeypatch: Any
) -> None:
    other = await sync_to_async(make_library)(cast, "Secret", "secret.txt", ("Hidden words here.",))
    turn = await sync_to_async(ask)(cast)

    def choose() -> None:
        with tenant_scope(cast.tenant.pk):
            conversations.scope_set(
                tenant=cast.tenant,
                actor=cast.actor("member"),
                conversation=turn.conversation,
                collections=[library.collection.pk],
            )

    await sync_to_async(choose)()
    await answer(
        turn,
        lane_threads,
        monkeypatch,
        [
            calls(
                call("search_documents", query="x"),
                call("search_documents", query="x", collections=["Secret"]),
                call("get_chunk", chunk_id=f"c{other.chunks[0].pk}"),
                call("get_chunk", chunk_id=f"c{library.chunks[1].pk}"),
                call("get_chunk", chunk_id="nonsense"),
            ),
            says(f"[c{other.chunks[0].pk}] [c{library.chunks[2].pk}]"),
        ],
    )
    assert [[c.pk for c in made["collections"]] for made in found] == [[library.collection.pk]]
    with tenant_scope(cast.tenant.pk):
        rows = await sync_to_async(lambda: list(ToolCall.objects.order_by("call_id")))()
    assert [r.status for r in rows] == ["succeeded", "failed", "failed", "succeeded", "failed"]
    assert "Hidden" not in json.dumps([r.content for r in rows])
    neighbours = [p["id"] for p in json.loads(rows[3].content)["results"]]
    assert neighbours == [f"c{c.pk}" for c in library.chunks]
    done = await sync_to_async(fresh)(turn)
    assert [c.chunk_id for c in done.cited] == [library.chunks[2].pk]


async def test_history_has_the_answers_as_they_were_written(
    cast: Cast, library: Library, found: Any, lane_threads: Executor, monkeypatch: Any
) -> None:
    turn = await sync_to_async(ask)(cast, "First?", model="")
    chunk = library.chunks[0]
    script = [calls(call("search_documents", query="q")), says(f"One [c{chunk.pk}].")]
    await answer(turn, lane_threads, monkeypatch, script)
    second = await sync_to_async(ask)(cast, "Fails?", conversation=turn.conversation)
    await answer(second, lane_threads, monkeypatch, [fails(AuthFailed("no key"))])
    third = await sync_to_async(ask)(cast, "Third?", conversation=turn.conversation)
    with tenant_scope(cast.tenant.pk):
        before = await sync_to_async(branch_before)(third, HISTORY_TURNS - 1)
        history = await sync_to_async(history_of)(third, "Third?", before, {})
    assert history == [
        UserMessage("First?"),
        LoopTurn(provider="extractive", model="extractive", text=f"One [c{chunk.pk}]."),
        UserMessage("Third?"),
    ]


async def test_failed_turn_can_be_asked_again(cast: Cast, lane_threads: Executor, monkeypatch: Any) -> None:
    turn = await sync_to_async(ask)(cast)
    await answer(turn, lane_threads, monkeypatch, [fails(AuthFailed("no key"), after="Half ")])
    failed = await sync_to_async(fresh)(turn)
    assert (failed.run.status, failed.run.error_code, failed.said["assistant"]) == (
        "failed",
        "auth_failed",
        "Half ",
    )

    def retry() -> Turn:
        with tenant_scope(cast.tenant.pk):
            return turns_services.turn_retry(tenant=cast.tenant, actor=cast.actor("member"), turn=failed)

    again = await sync_to_async(retry)()
    with pytest.raises(Conflict, match="still being written"):
        await sync_to_async(retry)()
    await answer(again, lane_threads, monkeypatch, [says("Whole.")])
    done = await sync_to_async(fresh)(turn)
    assert done.said == {"user": "What is the duty on cars?", "assistant": "Whole."}
    assert done.run_id != failed.run_id
    with pytest.raises(Conflict, match="Only the last"):
        await sync_to_async(retry)()


async def test_turn_ends_when_its_worker_is_lost_for_good(
    cast: Cast, lane_threads: Executor, monkeypatch: Any
) -> None:
    turn = await sync_to_async(ask)(cast)
    provider = ScriptedProvider([hangs(after="As far as ")])
    monkeypatch.setattr(tasks, "provider_for", lambda tenant, model: provider)
    job = await sync_to_async(job_of)(turn)
    ctx = await sync_to_async(take)(job, "dead", lane_threads)
    with tenant_scope(cast.tenant.pk):
        task = asyncio.create_task(tasks.turn_run(ctx, **job.payload))
        await until(turn.run, "text")
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)

    def expire() -> None:
        with tenant_scope(cast.tenant.pk):
            Job.objects.update(attempts=3, deaths=2, lease_expires_at=timezone.now())
        sweep()

    await sync_to_async(expire)()
    done = await sync_to_async(fresh)(turn)
    assert (done.is_active, done.run.status, done.run.error_code) == (False, "failed", "worker_lost")
    assert done.said["assistant"] == "As far as "
    assert done.run.is_retryable


def test_waiting_turn_ends_at_once_when_it_is_stopped(cast: Cast) -> None:
    turn = ask(cast)
    conversation = turn.conversation
    with tenant_scope(cast.tenant.pk):
        stopped = turns_services.turn_stop(tenant=cast.tenant, actor=cast.actor("member"), turn=turn)
    assert (stopped.is_active, fresh(turn).run.status) == (False, "stopped")
    assert ask(cast, conversation=conversation).index == 1


def test_conversation_goes_with_its_runs_when_it_is_deleted(cast: Cast) -> None:
    turn = ask(cast)
    with tenant_scope(cast.tenant.pk):
        conversations.conversation_delete(
            tenant=cast.tenant, actor=cast.actor("member"), conversation=turn.conversation
        )
        assert not Conversation.objects.exists()
        assert not Run.objects.exists()
        assert not Message.objects.exists()
        assert Job.objects.get().status == JobStatus.CANCELLED


async def test_sources_stay_named_when_the_document_is_deleted(
    cast: Cast, library: Library, found: Any, lane_threads: Executor, monkeypatch: Any
) -> None:
    turn = await sync_to_async(ask)(cast)
    chunk = library.chunks[0]
    script = [calls(call("search_documents", query="q")), says(f"Cars pay 2.5 percent [c{chunk.pk}].")]
    await answer(turn, lane_threads, monkeypatch, script)

    def delete_and_read() -> Any:
        with tenant_scope(cast.tenant.pk):
            Document.objects.all().delete()
            actor = cast.actor("member")
            (view,) = selectors.turn_views(actor=actor, conversation=turn.conversation)
            with pytest.raises(Missing):
                sources.source_get(actor=actor, conversation=turn.conversation, run_id=turn.run_id, number=1)
            return view

    view = await sync_to_async(delete_and_read)()
    assert view.citations[0].document_name == library.document.name
    assert 'class="cite"' in view.blocks[0].html


def test_unknown_or_foreign_collections_are_refused(cast: Cast) -> None:
    theirs = make_collection(cast.other_tenant)
    with tenant_scope(cast.tenant.pk), pytest.raises(Invalid, match="no longer exists"):
        conversations.conversation_create(
            tenant=cast.tenant, actor=cast.actor("member"), collections=[theirs.pk]
        )


def test_key_without_a_person_cannot_converse(cast: Cast) -> None:
    key = replace(cast.actor("member"), kind="api_key", user_id=None, api_key_id=1)
    with tenant_scope(cast.tenant.pk), pytest.raises(Denied):
        conversations.conversation_create(tenant=cast.tenant, actor=key)


async def test_search_does_not_widen_when_the_chosen_collection_is_deleted(
    cast: Cast, library: Library, found: list[Any], lane_threads: Executor, monkeypatch: Any
) -> None:
    chosen = await sync_to_async(make_library)(cast, "Chosen", "chosen.txt", ("Some words here.",))
    turn = await sync_to_async(ask)(cast)

    def choose_and_delete() -> None:
        with tenant_scope(cast.tenant.pk):
            conversations.scope_set(
                tenant=cast.tenant,
                actor=cast.actor("member"),
                conversation=turn.conversation,
                collections=[chosen.collection.pk],
            )
            chosen.collection.delete()

    await sync_to_async(choose_and_delete)()
    script = [calls(call("search_documents", query="x")), says("Nothing.")]
    await answer(turn, lane_threads, monkeypatch, script)
    assert found == []
    with tenant_scope(cast.tenant.pk):
        row = await sync_to_async(ToolCall.objects.get)()
    assert "no collection to search" in row.content


async def test_worker_gives_up_quietly_when_the_conversation_is_deleted_under_it(
    cast: Cast, lane_threads: Executor, monkeypatch: Any
) -> None:
    turn = await sync_to_async(ask)(cast)
    provider = ScriptedProvider([hangs(after="As far as ")])
    monkeypatch.setattr(tasks, "provider_for", lambda tenant, model: provider)
    job = await sync_to_async(job_of)(turn)
    ctx = await sync_to_async(take)(job, "w1", lane_threads)

    def delete() -> None:
        with tenant_scope(cast.tenant.pk):
            conversations.conversation_delete(
                tenant=cast.tenant, actor=cast.actor("member"), conversation=turn.conversation
            )

    with tenant_scope(cast.tenant.pk):
        work = asyncio.create_task(tasks.turn_run(ctx, **job.payload))
        await until(turn.run, "text")
        await sync_to_async(delete)()
        with pytest.raises(LeaseLost):
            await asyncio.wait_for(work, PATIENCE_S)
        assert provider.open_streams == 0
        again = await sync_to_async(take)(job, "w2", lane_threads)
        await tasks.turn_run(again, **job.payload)  # nothing left to do
        assert not await sync_to_async(Run.objects.exists)()


def test_conversation_searches_what_its_person_may_see_of_what_was_chosen(cast: Cast) -> None:
    """The statement is made by hand: it must agree with ``Collection.objects.visible_to``, whoever asks."""
    b, a = make_collection(cast.tenant, "B"), make_collection(cast.tenant, "A")
    make_collection(cast.tenant, "Private", owner=cast.user("member"))
    theirs = make_collection(cast.other_tenant, "Theirs")
    member = cast.actor("member")
    with tenant_scope(cast.tenant.pk):
        chosen = conversations.conversation_create(tenant=cast.tenant, actor=member, collections=[b.pk])
        everything = conversations.conversation_create(tenant=cast.tenant, actor=member)
        for actor in (
            member,
            cast.actor("owner"),
            replace(member, collections=frozenset({a.pk, theirs.pk})),
            replace(member, collections=frozenset()),
        ):
            visible = Collection.objects.visible_to(actor).select_related("space").order_by("name")
            for conversation in (None, everything):
                found = selectors.scope_collections(actor=actor, conversation=conversation)
                assert [vars(row) | {"_state": None} for row in found] == [
                    vars(row) | {"_state": None} for row in visible
                ]
                assert [row.space for row in found] == [row.space for row in visible]
            named = selectors.scope_names(actor=actor, conversation=chosen)
            assert named == dict(visible.filter(pk=b.pk).values_list("pk", "name"))
        assert list(selectors.scope_names(actor=member, conversation=None)) == [a.pk, b.pk]


def test_new_conversation_begins_with_the_model_asked_last(
    cast: Cast, monkeypatch: pytest.MonkeyPatch, settings: Any
) -> None:
    monkeypatch.setenv("GROUNDWORK_COMPATIBLE_BASE_URL", "http://127.0.0.1:9/v1")
    monkeypatch.setenv("GROUNDWORK_COMPATIBLE_MODELS", "a-first,b-second")
    settings.DEFAULT_MODEL = ""
    actor, other = cast.actor("member"), cast.actor("owner")
    with tenant_scope(cast.tenant.pk):
        models = selectors.model_list(cast.tenant)
        chosen = next(m.id for m in models if m.id == "compatible/b-second")
        assert selectors.model_default(models, actor) == models[0].id != chosen
        begun = conversations.conversation_create(tenant=cast.tenant, actor=actor, model=chosen)
        assert selectors.model_default(models, actor) == models[0].id, "nothing was asked yet"
        ask(cast, conversation=begun)
        assert selectors.model_default(models, actor) == chosen
        assert conversations.conversation_create(tenant=cast.tenant, actor=actor).model == chosen
        assert selectors.model_default(models, other) == models[0].id, "another person's choice"
        assert selectors.model_default(models) == models[0].id
        settings.DEFAULT_MODEL = models[-1].id
        assert selectors.model_default(models, actor) == models[-1].id, "the operator's choice"
        assert selectors.model_default(models[:1], actor) == models[0].id, "a model that has gone"
