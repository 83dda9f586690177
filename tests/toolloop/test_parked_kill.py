"""Kill a run with approvals and nested calls at every write of its journal: nothing is paid twice, nothing unapproved."""

from __future__ import annotations

import json
from collections.abc import Mapping

import pytest

from tests.toolloop.test_loop_resume import DurableJournal, Killed, Store
from toolloop.deferred import Decision, PendingCall
from toolloop.events import RunFinished
from toolloop.loop import run_loop
from toolloop.loop_values import LoopInput, LoopServices
from toolloop.messages import ToolResult
from toolloop.providers.scripted import ScriptedProvider, call, calls, says
from toolloop.tools import Tool, ToolContext, Toolset, tool

SCRIPT = [
    calls(call("pay", to="ann"), call("look"), call("pay", to="bob"), call("errand")),
    calls(call("look")),
    says("All done."),
]


def tools(paid: list[str]) -> Toolset:
    @tool(side_effects=True, needs_approval=True)
    async def pay(to: str, ctx: ToolContext) -> str:
        """Pay."""
        paid.append(f"{to} {ctx.call_id}")
        return f"paid {to}"

    @tool
    async def look() -> str:
        """Look."""
        return "seen"

    @tool(side_effects=True)
    async def note(text: str, ctx: ToolContext) -> str:
        """Note."""
        paid.append(f"note {text} {ctx.call_id}")
        return "noted"

    @tool
    async def errand(ctx: ToolContext) -> str:
        """Note, pay and look."""
        names: list[tuple[str, Mapping[str, str]]] = [
            ("note", {"text": "x"}),
            ("pay", {"to": "cat"}),
            ("look", {}),
        ]
        found = [await ctx.call(name, arguments) for name, arguments in names]
        return ", ".join(result.content for result in found)

    made: list[Tool] = [pay, look, note, errand]
    return Toolset(made)


def decide(pending: PendingCall) -> Decision:
    """Approve all but Bob, as a person would who sees the call after it was stored."""
    stored = PendingCall.from_json(json.loads(json.dumps(pending.to_json())))
    arguments = stored.call.arguments or {}
    return stored.reject("no") if arguments.get("to") == "bob" else stored.approve()


async def run(
    store: Store,
    paid: list[str],
    decisions: Mapping[str, Decision],
    kill_at: int = -1,
    *,
    after: bool = False,
) -> RunFinished:
    last = None
    async for event in run_loop(
        LoopInput(
            model="m",
            system="",
            history=store.history(),
            toolset=tools(paid),
            first_step=len(store.turns),
            usage=store.usage(),
            decisions=decisions,
        ),
        LoopServices(
            provider=ScriptedProvider(SCRIPT, by_history=True),
            journal=DurableJournal(store, kill_at, after=after),
        ),
    ):
        last = event
    assert isinstance(last, RunFinished)
    return last


async def through(store: Store, paid: list[str], kill_at: int, *, after: bool) -> RunFinished:
    """Go on after the one kill and after each parking until the run is through."""
    decisions: dict[str, Decision] = {}
    for _ in range(6):
        try:
            end = await run(store, paid, decisions, kill_at, after=after)
        except Killed:
            continue
        if end.status != "parked":
            return end
        decisions |= {pending.call.id: decide(pending) for pending in end.pending}
    raise AssertionError("the run never ended")


async def test_unbroken_run_parks_once_and_ends() -> None:
    store, paid = Store(), list[str]()
    first = await run(store, paid, {})
    assert [pending.call.name for pending in first.pending] == ["pay", "pay", "errand"]
    assert [entry.split()[0] for entry in paid] == ["note"]
    end = await through(store, paid, -1, after=False)
    assert end.status == "completed"
    assert sorted(entry.split()[0] for entry in paid) == ["ann", "cat", "note"]
    assert store.results["call_1_4.2"]["content"] == "paid cat"


@pytest.mark.parametrize("after", [False, True])
async def test_nothing_happens_twice_when_killed_at_any_write(after: bool) -> None:
    whole, paid = Store(), list[str]()
    await through(whole, paid, -1, after=False)
    assert whole.writes > 15
    for kill_at in range(whole.writes):
        store, paid = Store(), list[str]()
        end = await through(store, paid, kill_at, after=after)
        where = f"killed {'after' if after else 'before'} write {kill_at}"
        assert (end.status, end.text) == ("completed", "All done."), where
        assert len(paid) == len(set(paid)), where
        assert not any(entry.startswith("bob") for entry in paid), where
        answered = [m.call_id for m in store.history() if isinstance(m, ToolResult)]
        asked = [c["id"] for turn in store.turns for c in turn["tool_calls"]]
        assert sorted(answered) == sorted(asked), where
