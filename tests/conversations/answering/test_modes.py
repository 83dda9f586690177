"""Assistants of every mode, asked over the worker's own path."""

from __future__ import annotations

import json
import uuid
from concurrent.futures import Executor
from typing import Any

import pytest
from asgiref.sync import sync_to_async
from django.test import Client
from django.urls import reverse

from apps.conversations.assistants import services as assistants_services
from apps.conversations.assistants.options import VersionSpec
from apps.conversations.models import Message, Turn
from apps.conversations.traces.selectors import trace_get
from apps.conversations.transcript import selectors
from apps.conversations.turns import services as turns_services
from apps.tools.replay.services import recorded_run_replay
from basics.errors import Missing
from runs.models import RunStatus, ToolCall
from runs.services import Replay
from tenancy.scope import tenant_scope
from tests.cast import Cast
from tests.conversations.support import Library, answer, fresh
from toolloop.providers.scripted import ScriptedTurn, call, calls, says

pytestmark = pytest.mark.django_db(transaction=True)
PLAN = {
    "schema_version": "1.0",
    "reasoning": "Two searches.",
    "steps": [
        {"action": "search_documents", "description": "Find the duty", "inputs": {}},
        {"action": "search_documents", "description": "Find the period", "inputs": {}},
    ],
}


def asked(cast: Cast, text: str = "What is the duty on cars?", **spec: Any) -> Turn:
    """Ask a new, published assistant."""
    with tenant_scope(cast.tenant.pk):
        who: Any = {"tenant": cast.tenant, "actor": cast.actor("member")}
        row = assistants_services.assistant_create(**who, name="Clerk", spec=VersionSpec(**spec))
        assistants_services.version_publish(**who, assistant=row, number=1)
        return turns_services.conversation_ask(**who, text=text, client_id=uuid.uuid4(), assistant=row.slug)


@pytest.fixture
def written(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    """Let the script stand for a language model, although the run's model is the one that needs no key."""
    for module in ("apps.conversations.answering.prepare", "apps.conversations.answering.closing"):
        monkeypatch.setattr(f"{module}.is_extractive", lambda model: False)
    return monkeypatch


def follow(cast: Cast, turn: Turn, text: str) -> Turn:
    with tenant_scope(cast.tenant.pk):
        return turns_services.turn_submit(
            tenant=cast.tenant,
            actor=cast.actor("member"),
            conversation=turn.conversation,
            text=text,
            client_id=uuid.uuid4(),
        )


def view_of(cast: Cast, turn: Turn) -> Any:
    with tenant_scope(cast.tenant.pk):
        actor = cast.actor("member")
        return selectors.turn_view(
            selectors.turn_get(actor=actor, conversation=turn.conversation, pk=turn.pk)
        )


def message_of(cast: Cast, turn: Turn) -> Message:
    with tenant_scope(cast.tenant.pk):
        return Message.objects.get(turn=turn, author="assistant")


def replayed(cast: Cast, run_pk: int) -> Replay:
    with tenant_scope(cast.tenant.pk):
        return recorded_run_replay(tenant=cast.tenant, actor=cast.actor("member"), pk=run_pk)[1]


def call_names(cast: Cast, turn: Turn) -> list[str]:
    with tenant_scope(cast.tenant.pk):
        rows = ToolCall.objects.filter(run=fresh(turn).run_id).order_by("pk")
        return list(rows.values_list("name", flat=True))


async def test_quick_searches_with_its_own_settings_and_rewrites_a_follow_up(
    cast: Cast,
    lane_threads: Executor,
    library: Library,
    found: list[dict[str, Any]],
    written: pytest.MonkeyPatch,
) -> None:
    only = {"document_id": {"in": [7]}, "attributes.team": "customs"}
    options = {"top_k": 3, "neighbours": 1, "document_types": ["tariff"], "filters": only}
    turn = await sync_to_async(asked)(cast, mode="quick", options=options)
    mark = f"[c{library.chunks[0].pk}]"
    script = [says(""), says(f"Cars pay 2.5 percent {mark}.")]
    await answer(turn, lane_threads, written, script)
    (search,) = found
    assert (search["query"], search["k"], search["expand"]) == ("What is the duty on cars?", 3, 1)
    assert search["filters"] == {**only, "document_type": {"in": ["tariff"]}}
    done = await sync_to_async(fresh)(turn)
    assert (done.run.status, done.said["assistant"]) == ("completed", "Cars pay 2.5 percent [1].")
    second = await sync_to_async(follow)(cast, turn, "And on trucks?")
    script = [says("What is the duty on trucks?"), says(f"Trucks pay 25 percent {mark}.")]
    await answer(second, lane_threads, written, script)
    assert found[1]["query"] == "What is the duty on trucks?"
    done = await sync_to_async(fresh)(second)
    assert (done.said["assistant"], done.run.usage["requests"]) == ("Trucks pay 25 percent [1].", 2)


async def test_planned_answer_shows_its_plan_and_only_the_answer_is_text(
    cast: Cast,
    lane_threads: Executor,
    library: Library,
    found: list[dict[str, Any]],
    written: pytest.MonkeyPatch,
) -> None:
    turn = await sync_to_async(asked)(cast, mode="planned")
    mark = f"[c{library.chunks[0].pk}]"
    script: list[ScriptedTurn] = [
        says("Thinking.", call("plan", **PLAN)),
        calls(call("search_documents", query="duty")),
        calls(call("search_documents", query="period")),
        says(f"Cars pay 2.5 percent {mark}."),
    ]
    await answer(turn, lane_threads, written, script)
    done = await sync_to_async(fresh)(turn)
    assert (done.run.status, done.run.answer) == ("completed", f"Cars pay 2.5 percent {mark}.")
    assert await sync_to_async(call_names)(cast, turn) == ["plan", *["search_documents"] * 2]
    view = await sync_to_async(view_of)(cast, turn)
    assert [(s.description, s.status) for s in view.plan.steps] == [
        ("Find the duty", "ok"),
        ("Find the period", "ok"),
    ]
    assert view.plan.reasoning == "Two searches."
    assert [card.name for card in view.tool_cards] == ["search_documents"] * 2
    replay = await sync_to_async(replayed, thread_sensitive=False)(cast, done.run_id)
    assert replay.is_equal, "the plan's own tool is no tool that is gone"


async def test_structured_answer_is_stored_as_data_and_shown_as_a_panel(
    cast: Cast,
    client: Client,
    lane_threads: Executor,
    library: Library,
    found: list[dict[str, Any]],
    written: pytest.MonkeyPatch,
) -> None:
    turn = await sync_to_async(asked)(cast, mode="quick", output="structured")
    chunk = library.chunks[0].pk
    value = {
        "schema_version": "1.0",
        "answer": f"Cars pay 2.5 percent [c{chunk}] and [c999999].",
        "citations": [f"c{chunk}"],
        "confidence": "high",
        "follow_up_questions": ["And trucks?"],
    }
    script = [says(""), says(json.dumps(value))]
    await answer(turn, lane_threads, written, script)
    message = await sync_to_async(message_of)(cast, turn)
    assert message.text == "Cars pay 2.5 percent [1] and.\n\n## Citations\n\n[1]"
    assert message.problem == ""
    assert message.data is not None
    assert message.data["answer"] == "Cars pay 2.5 percent [1] and."
    assert message.data["citations"] == ["[1]"]
    done = await sync_to_async(fresh)(turn)
    assert done.removed_markers == 1
    await sync_to_async(client.force_login)(cast.member.user)
    url = reverse("conversations:detail", args=[cast.tenant.slug, turn.conversation_id])
    page = (await sync_to_async(client.get)(url)).content.decode()
    assert "Confidence: high" in page
    assert 'data-follow-up="And trucks?"' in page
    assert "schema_version" not in page


async def test_answer_that_never_fits_is_shown_as_text_with_the_problem(
    cast: Cast,
    lane_threads: Executor,
    library: Library,
    found: list[dict[str, Any]],
    written: pytest.MonkeyPatch,
) -> None:
    schema = {"type": "object", "properties": {"rate": {"type": "number"}}, "required": ["rate"]}
    turn = await sync_to_async(asked)(cast, output="schema", output_name="t", output_schema=schema)
    script = [says('{"rate": "low"}'), says('{"rate": "still low"}')]
    await answer(turn, lane_threads, written, script)
    done = await sync_to_async(fresh)(turn)
    assert (done.run.status, done.run.usage["requests"]) == (RunStatus.COMPLETED, 2)
    message = await sync_to_async(message_of)(cast, turn)
    assert (message.data, message.text) == (None, "## Rate\n\nstill low")
    assert "rate" in message.problem
    view = await sync_to_async(view_of)(cast, turn)
    assert view.problem == message.problem
    assert view.is_unsourced
    replay = await sync_to_async(replayed, thread_sensitive=False)(cast, done.run_id)
    assert replay.is_equal, "a repaired answer is replayed to its end"


async def test_programs_need_their_grant(
    cast: Cast, lane_threads: Executor, written: pytest.MonkeyPatch
) -> None:
    turn = await sync_to_async(asked)(cast, mode="code")
    await answer(turn, lane_threads, written, [says("x")])
    done = await sync_to_async(fresh)(turn)
    assert (done.run.status, done.run.error_code) == ("failed", "programs_not_allowed")
    assert "the group code_mode under Tools" in done.run.error_message


async def test_extractive_model_plans_by_rule_and_says_so(
    cast: Cast, lane_threads: Executor, library: Library, found: list[dict[str, Any]]
) -> None:
    turn = await sync_to_async(asked)(cast, mode="planned", model="extractive", output="structured")
    await answer(turn, lane_threads)
    done = await sync_to_async(fresh)(turn)
    assert done.run.status == "completed"
    view = await sync_to_async(view_of)(cast, turn)
    assert "without a language model" in view.plan.reasoning
    assert [step.status for step in view.plan.steps] == ["ok"]
    assert "No language model" in view.problem
    assert view.citations


async def test_trace_tells_how_the_answer_came_about(
    cast: Cast,
    client: Client,
    lane_threads: Executor,
    library: Library,
    found: list[dict[str, Any]],
    written: pytest.MonkeyPatch,
) -> None:
    turn = await sync_to_async(asked)(cast, mode="quick")
    mark = f"[c{library.chunks[1].pk}]"
    await answer(turn, lane_threads, written, [says(""), says(f"It is 30 days {mark}.")])
    second = await sync_to_async(follow)(cast, turn, "And then?")
    script = [says("What follows the notice period?"), says(f"The first {mark} [c99999999].")]
    await answer(second, lane_threads, written, script)
    trace = await sync_to_async(trace_of)(cast, second, "member")
    assert (trace["question"], trace["searched_for"]) == ("And then?", "What follows the notice period?")
    assert (trace["status"], trace["removed_citations"], trace["plan"]) == ("completed", 1, None)
    first, last = trace["steps"]
    assert [first["stop"], last["stop"]] == ["tools", "end"]
    assert first["input_tokens"] == 10
    (search,) = first["calls"]
    assert [hit["citation"] for hit in search["results"]] == [None, 1, None]
    assert [hit["rank"] for hit in search["results"]] == [1, 2, 3]
    assert "text" not in search["results"][0]
    assert (await sync_to_async(trace_of)(cast, turn, "member"))["steps"][0]["is_by_rule"]
    with pytest.raises(Missing):
        await sync_to_async(trace_of)(cast, second, "owner")
    await sync_to_async(client.force_login)(cast.member.user)
    where = [cast.tenant.slug, second.conversation_id, second.run_id]
    page = await sync_to_async(client.get)(reverse("conversations:run-trace", args=where))
    assert "What follows the notice period?" in page.content.decode()
    assert reverse("tools:run-replay", args=[cast.tenant.slug, second.run_id]) in page.content.decode()


def trace_of(cast: Cast, turn: Turn, role: str) -> dict[str, Any]:
    with tenant_scope(cast.tenant.pk):
        return trace_get(actor=cast.actor(role), run_pk=turn.run_id)
