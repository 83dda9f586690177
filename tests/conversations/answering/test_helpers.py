"""An assistant asks another one: one run, its journal, its budget, and the narrower rights of the two."""

from __future__ import annotations

import uuid
from concurrent.futures import Executor
from typing import Any

import pytest
from asgiref.sync import sync_to_async

from apps.conversations.answering import helpers
from apps.conversations.assistants import services as assistants_services
from apps.conversations.assistants.options import MAX_HELPER_DEPTH, VersionSpec
from apps.conversations.models import Turn
from apps.conversations.toolset import bundle as tools
from apps.conversations.toolset.results import SCOPE
from apps.conversations.turns import services as turns_services
from runs.models import PendingDecision, ToolCall, UsageRecord
from tenancy.scope import tenant_scope
from tests.cast import Cast
from tests.conversations.answering.test_modes import written
from tests.conversations.support import Library, answer, fresh, make_library
from toolloop.deferred import Decision
from toolloop.messages import ToolResult
from toolloop.providers.scripted import ScriptedProvider, call, calls, says
from toolloop.tools import ToolContext, ToolError, Toolset, tool

__all__ = ["written"]
pytestmark = pytest.mark.django_db(transaction=True)


def asked(cast: Cast, expert: dict[str, Any], **spec: Any) -> Turn:
    """Ask an assistant that has an expert."""
    with tenant_scope(cast.tenant.pk):
        who: Any = {"tenant": cast.tenant, "actor": cast.actor("member")}
        helper = assistants_services.assistant_create(**who, name="Tariff expert", spec=VersionSpec(**expert))
        assistants_services.version_publish(**who, assistant=helper, number=1)
        clerk = assistants_services.assistant_create(
            **who, name="Clerk", spec=VersionSpec(helpers=[helper.pk], **spec)
        )
        assistants_services.version_publish(**who, assistant=clerk, number=1)
        return turns_services.conversation_ask(
            **who, text="How long is the notice?", client_id=uuid.uuid4(), assistant="clerk"
        )


def rows_of(cast: Cast, turn: Turn) -> tuple[list[ToolCall], list[str]]:
    with tenant_scope(cast.tenant.pk):
        run = fresh(turn).run_id
        kinds = UsageRecord.objects.filter(run_id=run).order_by("pk").values_list("kind", flat=True)
        return list(ToolCall.objects.filter(run=run).order_by("pk")), sorted(kinds)


async def test_helper_answers_in_the_same_run_with_the_narrower_rights(
    cast: Cast,
    lane_threads: Executor,
    library: Library,
    found: list[dict[str, Any]],
    written: pytest.MonkeyPatch,
) -> None:
    other = await sync_to_async(make_library)(cast, "Terms")
    mark = f"[c{other.chunks[1].pk}]"
    both = [library.collection.pk, other.collection.pk]
    turn = await sync_to_async(asked)(cast, {"collections": [other.collection.pk]}, collections=both)
    inner = ScriptedProvider(
        [calls(call("search_documents", query="notice period")), says(f"30 days {mark}.")]
    )
    written.setattr(helpers, "provider_for", lambda tenant, model: inner)
    script = [
        calls(call("ask_tariff_expert", question="How long is the notice period?")),
        says(f"The notice period is 30 days {mark}.", expect="30 days"),
    ]
    await answer(turn, lane_threads, written, script)
    done = await sync_to_async(fresh)(turn)
    assert (done.run.status, done.said["assistant"]) == ("completed", "The notice period is 30 days [1].")
    (search,) = found
    assert [c.pk for c in search["collections"]] == [other.collection.pk]
    (ask, nested), kinds = await sync_to_async(rows_of)(cast, turn)
    assert (ask.name, nested.name) == ("ask_tariff_expert", "search_documents")
    assert nested.parent_call_id == ask.call_id
    assert kinds == ["helper", "helper", "turn", "turn"]
    assert done.run.usage["requests"] == 4
    assert inner.closed
    assert [spec.name for spec in inner.requests[0].tools if spec.name.startswith("ask_")] == []
    assert "How long is the notice?" not in str(inner.requests[0].messages)


async def test_assistants_ask_no_deeper_than_allowed(cast: Cast) -> None:
    turn = await sync_to_async(asked)(cast, {})

    def tools_of() -> Any:
        with tenant_scope(cast.tenant.pk):
            version = fresh(turn).assistant_version
            return helpers.helper_tools(version, Toolset)

    (asking,) = await sync_to_async(tools_of)()
    context = ToolContext({SCOPE: None}, depth=MAX_HELPER_DEPTH)
    with pytest.raises(ToolError, match="at most 2 deep"):
        await asking.function(context=context, question="?")


sent: list[str] = []


@tool(side_effects=True, needs_approval=True)
async def send_letter(to: str) -> str:
    """Send a letter.

    Args:
        to: whom.
    """
    sent.append(to)
    return f"sent to {to}"


@pytest.mark.parametrize(
    ("decision", "done", "told"),
    [
        (Decision("approve"), ["Ann"], "sent to Ann"),
        (Decision("approve", arguments={"to": "Bob"}), ["Bob"], "sent to Bob"),
        (Decision("reject", reason="Not her."), [], "Not her."),
    ],
    ids=["approve", "approve_edited", "reject"],
)
async def test_helpers_call_waits_for_a_person_and_the_helper_goes_on_from_there(
    cast: Cast,
    lane_threads: Executor,
    library: Library,
    found: list[dict[str, Any]],
    written: pytest.MonkeyPatch,
    decision: Decision,
    done: list[str],
    told: str,
) -> None:
    """Nothing but rows is left between: the second half has a loop, providers and tools of its own, as after a restart."""
    sent.clear()
    written.setattr(tools, "TOOLSET", Toolset([*tools.TOOLSET, send_letter]))
    turn = await sync_to_async(asked)(cast, {})
    clerk = [
        calls(call("ask_tariff_expert", question="Write to Ann about the notice.")),
        says("The expert has answered."),
    ]
    first = ScriptedProvider(
        [calls(call("search_documents", query="notice")), calls(call("send_letter", to="Ann"))]
    )
    written.setattr(helpers, "provider_for", lambda tenant, model: first)
    await answer(turn, lane_threads, written, clerk)
    assert ((await sync_to_async(fresh)(turn)).run.status, sent) == ("parked", [])
    waiting = await sync_to_async(decide)(cast, turn, decision)
    assert (waiting.name, waiting.arguments) == ("send_letter", {"to": "Ann"})

    second = ScriptedProvider([says("It is done.")])  # asked anew, it would not write at all
    written.setattr(helpers, "provider_for", lambda tenant, model: second)
    await answer(turn, lane_threads, written, clerk)
    row = await sync_to_async(fresh)(turn)
    assert (row.run.status, row.said["assistant"]) == ("completed", "The expert has answered.")
    assert sent == done
    (request,) = second.requests
    last = request.messages[-1]
    assert isinstance(last, ToolResult)
    assert told in last.content
    assert "30 days" in str(request.messages), "what was found before is there"
    made, kinds = await sync_to_async(rows_of)(cast, turn)
    assert [c.name for c in made] == ["ask_tariff_expert", "search_documents", "send_letter"]
    assert kinds == ["helper", "helper", "helper", "turn", "turn"]


async def test_calls_that_wait_side_by_side_are_decided_one_by_one_and_run_once_each(
    cast: Cast,
    lane_threads: Executor,
    library: Library,
    found: list[dict[str, Any]],
    written: pytest.MonkeyPatch,
) -> None:
    """Two of them are the same letter to the same person: each is asked about, and each decision counts for one."""
    sent.clear()
    written.setattr(tools, "TOOLSET", Toolset([*tools.TOOLSET, send_letter]))
    turn = await sync_to_async(asked)(cast, {})
    clerk = [calls(call("ask_tariff_expert", question="Write letters.")), says("All is done.")]
    at_once = [
        call("send_letter", to="Ann"),
        call("search_documents", query="notice"),
        call("send_letter", to="Bob"),
        call("send_letter", to="Ann"),
    ]
    helper = ScriptedProvider([calls(*at_once)])
    written.setattr(helpers, "provider_for", lambda tenant, model: helper)
    await answer(turn, lane_threads, written, clerk)
    for decision, to, done in (
        (Decision("approve"), "Ann", ["Ann"]),
        (Decision("reject", reason="Not him."), "Bob", ["Ann"]),
        (Decision("approve"), "Ann", ["Ann", "Ann"]),
    ):
        assert (await sync_to_async(fresh)(turn)).run.status == "parked"
        waiting = await sync_to_async(decide)(cast, turn, decision)
        assert (waiting.name, waiting.arguments) == ("send_letter", {"to": to})
        helper = ScriptedProvider([says("Two letters went out.")])
        await answer(turn, lane_threads, written, clerk)
        assert sent == done
    row = await sync_to_async(fresh)(turn)
    assert (row.run.status, row.said["assistant"]) == ("completed", "All is done.")
    (request,) = helper.requests
    told = [m.content for m in request.messages if isinstance(m, ToolResult)]
    assert [("sent" in t, "30 days" in t, "Not him." in t) for t in told] == [
        (True, False, False),
        (False, True, False),
        (False, False, True),
        (True, False, False),
    ]
    made, kinds = await sync_to_async(rows_of)(cast, turn)
    assert sorted(c.name for c in made) == ["ask_tariff_expert", "search_documents", *["send_letter"] * 3]
    assert len(found) == 1
    assert kinds == ["helper", "helper", "turn", "turn"]


def decide(cast: Cast, turn: Turn, decision: Decision) -> PendingDecision:
    with tenant_scope(cast.tenant.pk):
        row = PendingDecision.objects.select_related("run").get(run=turn.run_id, status="pending")
        decided: PendingDecision = turns_services.call_decide(
            tenant=cast.tenant, actor=cast.actor("member"), run=row.run, decision_id=row.pk, decision=decision
        )
        return decided
