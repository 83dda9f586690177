"""In a run, what was decided about a call of a program is what happens: edits count, and a refused call never runs."""

from __future__ import annotations

from typing import Any

import pytest

from toolloop.code_mode import CodeMode
from toolloop.deferred import Decision, ParkCall
from toolloop.events import RunFinished, ToolFinished, TurnFinished
from toolloop.loop import run_loop
from toolloop.loop_values import LoopInput, LoopServices
from toolloop.messages import ModelMessage, UserMessage
from toolloop.providers.scripted import ScriptedCall, ScriptedProvider, says
from toolloop.tools import ToolContext, tool

done: list[str] = []


@tool(side_effects=True)
async def note(text: str) -> str:
    """Note something.

    Args:
        text: what.
    """
    done.append(text)
    return text


@tool(side_effects=True, needs_approval=True)
async def pay(name: str) -> str:
    """Pay a bill.

    Args:
        name: which.
    """
    done.append(f"paid {name}")
    return f"paid {name}"


@tool(side_effects=True)
async def careful(context: ToolContext) -> str:
    """Ask before the second half."""
    if context.decision is None:
        raise ParkCall("approval", "Really?", {"half": 1})
    done.append(f"{context.decision.kind} {context.decision.state}")
    return "both halves"


@pytest.fixture(autouse=True)
def _nothing_done() -> None:
    done.clear()


async def _run(program: str, decision: Decision | None = None, state: Any = None) -> Any:
    """Run to the pause, or with a decision from there to the end; returns the pending call, or the result's text."""
    script = [says("", ScriptedCall("execute_tools", {"code": program}, "a")), says("end")]
    provider = ScriptedProvider(script, by_history=True)
    mode = CodeMode([note, pay, careful], state_key=b"sixteen bytes at least", binding="run 1")
    history: list[ModelMessage] = [UserMessage("Go.")]
    found: Any = None
    decisions = {}
    if decision is not None:
        history.append(state)
        decisions = {"a": decision}
    async for event in run_loop(
        LoopInput(
            model="any",
            system="",
            history=history,
            toolset=mode.toolset(),
            first_step=len(decisions),
            decisions=decisions,
        ),
        LoopServices(provider=provider),
    ):
        if isinstance(event, TurnFinished) and found is None:
            found = event.turn
        elif isinstance(event, ToolFinished):
            found = event.result.content
        elif isinstance(event, RunFinished) and event.status == "parked":
            return found, event.pending[0]
    return found


async def test_edited_arguments_are_the_ones_that_run() -> None:
    turn, pending = await _run("note('before')\nprint(pay('701'))\nnote('after')")
    await _run("", pending.approve({"name": "702"}), turn)
    assert done == ["before", "paid 702", "after"]


async def test_rejected_call_does_not_run() -> None:
    turn, pending = await _run("note('before')\nprint(pay('701'))\nnote('after')")
    told = await _run("", pending.reject("Too dear."), turn)
    assert done == ["before"]
    assert "Too dear." in told


async def test_rejected_call_does_not_run_when_it_was_made_in_parallel() -> None:
    turn, pending = await _run("print(parallel((note, 'beside'), (pay, '701')))")
    await _run("", pending.reject(), turn)
    assert done == ["beside"]


async def test_answered_call_does_not_run() -> None:
    turn, pending = await _run("print(pay('701'))")
    assert "paid by hand" in await _run("", pending.answer("paid by hand"), turn)
    assert done == []


async def test_tool_that_parked_itself_gets_its_own_state() -> None:
    turn, pending = await _run("print(careful())")
    assert "both halves" in await _run("", pending.approve(), turn)
    assert done == ["approve {'half': 1}"]
