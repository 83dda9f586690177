"""Calls that wait for approval or for an answer: the run parks, holds nothing, and goes on with the decisions."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from tests.toolloop.helpers import Dialogue, Recorder, add, converse
from toolloop.deferred import Decision, ParkCall, PendingCall
from toolloop.events import CallParked, RunFinished, ToolRunning
from toolloop.limits import Limits
from toolloop.messages import ModelMessage, ToolResult, Turn, UserMessage, message_from_json
from toolloop.providers.scripted import ScriptedCall, call, calls, says
from toolloop.tools import Tool, ToolContext, tool

SENT: list[tuple[str, int]] = []


@tool(side_effects=True, needs_approval=True)
def pay(to: str, amount: int) -> str:
    """Pay.

    Args:
        to: who.
        amount: how much.
    """
    SENT.append((to, amount))
    return f"paid {amount} to {to}"


@tool(external=True)
def ask_person(question: str) -> str:
    """Ask a person.

    Args:
        question: what.
    """
    raise AssertionError("an external tool must never be run")


@pytest.fixture(autouse=True)
def nothing_sent() -> None:
    SENT.clear()


class Parking(Recorder):
    """A journal that takes part in parking."""

    async def call_parked(self, step: int, pending: PendingCall) -> None:
        self.log.append(f"{pending.call.id} parked")


def stored(dialogue: Dialogue, journal: Recorder, *before: ModelMessage) -> list[ModelMessage]:
    """Rebuild the history from what was journalled, through JSON, as another process would."""
    messages: list[ModelMessage] = list(before) or [UserMessage("Hello")]
    for turn in journal.turns:
        messages.append(turn)
        messages += [journal.results[c.id] for c in turn.tool_calls if c.id in journal.results]
    return [message_from_json(json.loads(json.dumps(m.to_json()))) for m in messages]


async def parked(
    *made: Any, tools: Sequence[Tool] = (pay, ask_person, add), **settings: Any
) -> tuple[Dialogue, list[ModelMessage], Recorder]:
    journal = Recorder()
    dialogue = await converse([calls(*made)], *tools, journal=journal, **settings)
    return dialogue, stored(dialogue, journal), journal


async def resumed(
    history: Sequence[ModelMessage],
    decisions: Mapping[str, Decision],
    *script: Any,
    tools: Sequence[Tool] = (pay, ask_person, add),
    **settings: Any,
) -> Dialogue:
    decided = {
        call_id: Decision.from_json(json.loads(json.dumps(decision.to_json())))
        for call_id, decision in decisions.items()
    }
    steps = sum(isinstance(message, Turn) for message in history)
    return await converse(
        script or [says("done")], *tools, history=history, decisions=decided, first_step=steps, **settings
    )


async def test_run_parks_when_a_call_needs_approval_and_the_others_run() -> None:
    dialogue, history, journal = await parked(
        call("pay", to="ann", amount=5), call("add", a=1, b=2), call("ask_person", question="ok?")
    )
    assert dialogue.end.status == "parked"
    assert [(p.call.name, p.kind) for p in dialogue.end.pending] == [
        ("pay", "approval"),
        ("ask_person", "external"),
    ]
    assert [event.pending for event in dialogue.of(CallParked)] == list(dialogue.end.pending)
    assert [event.call.name for event in dialogue.of(ToolRunning)] == ["add"]
    assert SENT == []
    assert journal.results.keys() == {"call_2"}
    assert isinstance(history[-1], ToolResult)


async def test_run_goes_on_when_all_calls_are_decided() -> None:
    first, history, _ = await parked(
        call("pay", to="ann", amount=5),
        call("pay", to="bob", amount=7),
        call("pay", to="cat", amount=9),
        call("ask_person", question="ok?"),
    )
    ann, bob, cat, person = first.end.pending
    dialogue = await resumed(
        history,
        {
            ann.call.id: ann.approve(),
            bob.call.id: bob.reject("Bob left."),
            cat.call.id: cat.approve({"to": "cat", "amount": 1}),
            person.call.id: person.answer("yes, go on", {"by": 7}),
        },
    )
    assert dialogue.end.status == "completed"
    assert dialogue.end.data["notes"] == []
    assert SENT == [("ann", 5), ("cat", 1)]
    told = dialogue.told()
    assert [r.call_id for r in told] == [p.call.id for p in first.end.pending]
    assert told[0].content == "paid 5 to ann"
    assert (told[1].error_code, told[1].is_error) == ("rejected", True)
    assert "Bob left." in told[1].content
    assert told[2].content.startswith('[A person changed the arguments to {"to": "cat", "amount": 1}]')
    assert (told[3].content, told[3].payload) == ("yes, go on", {"by": 7})


async def test_run_parks_again_when_only_some_calls_are_decided() -> None:
    first, history, _ = await parked(call("pay", to="ann", amount=5), call("pay", to="bob", amount=7))
    journal = Recorder()
    second = await resumed(history, {"call_1": first.end.pending[0].approve()}, journal=journal)
    assert second.end.status == "parked"
    assert [p.call.id for p in second.end.pending] == ["call_2"]
    assert SENT == [("ann", 5)]
    third = await resumed([*history, journal.results["call_1"]], {"call_2": second.end.pending[0].approve()})
    assert third.end.status == "completed"
    assert SENT == [("ann", 5), ("bob", 7)]


async def test_decision_counts_once_when_the_same_resume_comes_again() -> None:
    first, history, _ = await parked(call("pay", to="ann", amount=5))
    journal = Recorder()
    decision = {"call_1": first.end.pending[0].approve()}
    await resumed(history, decision, journal=journal)
    again = await resumed([*history, journal.results["call_1"]], decision)
    assert again.end.status == "completed"
    assert SENT == [("ann", 5)]
    assert "call_1 was not used" in again.end.data["notes"][0]


async def test_decision_does_not_pass_to_a_later_call_that_bears_the_same_id() -> None:
    first, history, _ = await parked(call("pay", to="ann", amount=5))
    again = calls(ScriptedCall("pay", {"to": "eve", "amount": 9999}, id="call_1"))
    dialogue = await resumed(history, {"call_1": first.end.pending[0].approve()}, again)
    assert dialogue.end.status == "parked"
    assert SENT == [("ann", 5)]
    fresh = await converse([again], pay, decisions={"call_1": Decision("approve")})
    assert fresh.end.status == "parked"
    assert SENT == [("ann", 5)]
    assert "was not used" not in str(dialogue.end.data["notes"])


async def test_call_stays_pending_when_edited_arguments_do_not_fit() -> None:
    first, history, _ = await parked(call("pay", to="ann", amount=5))
    wrong = first.end.pending[0].approve({"to": "ann", "amount": "much"})
    dialogue = await resumed(history, {"call_1": wrong})
    assert dialogue.end.status == "parked"
    assert "expected integer" in dialogue.end.pending[0].reason
    assert dialogue.end.pending[0].call.arguments == {"to": "ann", "amount": 5}
    assert SENT == []


async def test_external_call_cannot_be_approved_into_running() -> None:
    _, history, _ = await parked(call("ask_person", question="ok?"))
    dialogue = await resumed(history, {"call_1": Decision("approve")})
    assert dialogue.end.status == "parked"
    assert "answered or rejected" in dialogue.end.pending[0].reason


def test_unknown_decision_is_refused() -> None:
    with pytest.raises(ValueError, match="unknown decision"):
        Decision.from_json({"kind": "aprove"})


async def test_bad_arguments_go_back_to_the_model_and_not_to_a_person() -> None:
    dialogue = await converse([calls(call("pay", to="ann")), says("sorry")], pay)
    assert dialogue.end.status == "completed"
    assert dialogue.told()[-1].error_code == "invalid_arguments"


async def test_rule_decides_which_calls_need_approval() -> None:
    def big(arguments: Mapping[str, Any], ctx: ToolContext) -> bool:
        return bool(arguments["amount"] > ctx.data["free_below"])

    ruled = Tool("pay", "Pay.", pay.parameters, pay.function, needs_approval=big)
    dialogue = await converse(
        [calls(call("pay", to="ann", amount=5), call("pay", to="bob", amount=500))],
        ruled,
        context={"free_below": 100},
    )
    assert [p.call.id for p in dialogue.end.pending] == ["call_2"]
    assert SENT == [("ann", 5)]


async def test_person_decides_when_the_rule_itself_fails() -> None:
    def broken(arguments: Mapping[str, Any], ctx: ToolContext) -> bool:
        raise KeyError("free_below")

    ruled = Tool("pay", "Pay.", pay.parameters, pay.function, needs_approval=broken)
    dialogue = await converse([calls(call("pay", to="ann", amount=5))], ruled)
    assert dialogue.end.status == "parked"
    assert SENT == []


async def test_tool_parks_itself_and_gets_its_state_back() -> None:
    seen: list[Decision | None] = []

    @tool(side_effects=True)
    async def transfer(amount: int, ctx: ToolContext) -> str:
        """Transfer.

        Args:
            amount: how much.
        """
        seen.append(ctx.decision)
        if ctx.decision is None:
            raise ParkCall("approval", f"{amount} is a lot", {"quote": 17})
        return f"{ctx.decision.kind} {ctx.decision.state}"

    journal = Parking()
    first = await converse([calls(call("transfer", amount=9))], transfer, journal=journal)
    pending = first.end.pending[0]
    assert (pending.reason, pending.state) == ("9 is a lot", {"quote": 17})
    assert journal.log[-2:] == ["call_1 started", "call_1 parked"]
    pending = PendingCall.from_json(json.loads(json.dumps(pending.to_json())))
    history = stored(first, journal)
    second = await resumed(history, {"call_1": pending.reject("no")}, tools=[transfer])
    assert second.told()[-1].content == "reject {'quote': 17}"


async def test_parked_calls_are_answered_as_cancelled_when_the_run_is_stopped() -> None:
    stop = asyncio.Event()

    @tool
    async def stopper() -> str:
        """Stop the run."""
        stop.set()
        await asyncio.sleep(5)
        return ""

    journal = Recorder()
    dialogue = await converse(
        [calls(call("pay", to="ann", amount=5), call("stopper"))], pay, stopper, journal=journal, stop=stop
    )
    assert dialogue.end.status == "stopped"
    assert {r.error_code for r in journal.results.values()} == {"cancelled"}
    assert journal.results.keys() == {"call_1", "call_2"}


async def test_pending_calls_still_park_when_time_runs_out_beside_them() -> None:
    @tool
    async def slow() -> str:
        """Take long."""
        await asyncio.sleep(5)
        return ""

    dialogue = await converse(
        [calls(call("pay", to="ann", amount=5), call("slow"))], pay, slow, limits=Limits(max_seconds=0.05)
    )
    assert dialogue.end.status == "parked"
    assert [p.call.id for p in dialogue.end.pending] == ["call_1"]


async def test_nothing_needs_approval_and_nothing_happens_in_mock_mode() -> None:
    mocked = Tool(
        "pay", "Pay.", pay.parameters, pay.function, needs_approval=True, mock=lambda to, amount: f"mock {to}"
    )
    dialogue = await converse(
        [
            calls(call("pay", to="ann", amount=5), call("add", a=1, b=2), call("add", a="x", b=2)),
            says("done"),
        ],
        mocked,
        add,
        mock_tools=True,
    )
    assert SENT == []
    told = dialogue.told()
    assert told[0].content == "mock ann"
    assert told[1].payload == {"mock": True, "tool": "add", "arguments": {"a": 1, "b": 2}}
    assert told[2].error_code == "invalid_arguments"


async def test_turn_text_and_usage_are_kept_when_a_run_parks() -> None:
    dialogue = await converse([says("I will pay.", call("pay", to="ann", amount=5))], pay)
    assert (dialogue.end.text, dialogue.end.usage.requests) == ("I will pay.", 1)
    assert isinstance(dialogue.events[-1], RunFinished)
