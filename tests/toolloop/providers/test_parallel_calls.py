"""Calls of one turn that run at once: every one is answered, in call order, in the form its wire demands."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from tests.toolloop.helpers import loop_values
from tests.toolloop.providers.encodings import Call, Script
from tests.toolloop.providers.wires import ANTHROPIC, GOOGLE, WIRES, Recorder, Wire
from toolloop.events import RunFinished
from toolloop.limits import Limits
from toolloop.loop import run_loop
from toolloop.loop_values import LoopInput, LoopServices
from toolloop.messages import Turn, UserMessage
from toolloop.tools import Toolset, tool

every_wire = pytest.mark.parametrize("wire", WIRES, ids=str)


@tool
async def after(seconds: float) -> str:
    """Answer late.

    Args:
        seconds: how late.
    """
    await asyncio.sleep(seconds)
    return f"after {seconds}"


@tool
def broken() -> str:
    """Fail."""
    raise RuntimeError("password=hunter2")


CALLS = [
    Call("call_a", "after", '{"seconds": 0.05}'),
    Call("call_b", "broken", "{}"),
    Call("call_c", "after", '{"seconds": 30}'),
    Call("call_d", "after", '{"seconds": 0}'),
    Call("call_e", "absent", "{}"),
    Call("call_f", "after", '{"seconds": "soon"}'),
]


@every_wire
async def test_every_call_is_answered_in_call_order_whatever_became_of_it(wire: Wire) -> None:
    recorder = Recorder(wire.encode(Script(calls=CALLS)), wire.encode(Script(text=["done"])))
    provider = wire.provider(recorder)
    stream = run_loop(
        LoopInput(
            model=wire.model,
            system="",
            history=[UserMessage("Go")],
            toolset=Toolset([after, broken]),
            limits=Limits(tool_timeout_s=0.4),
        ),
        LoopServices(provider=provider),
    )
    end = [event async for event in stream][-1]
    await provider.aclose()
    assert isinstance(end, RunFinished)
    assert end.status == "completed"

    results = wire.results(recorder.body)
    assert wire.call_names(recorder.body) == [call.name for call in CALLS]
    ids = [call_id for call_id, _, _ in results]
    assert ids == [call.id for call in CALLS]
    assert [is_error for _, _, is_error in results] == [False, True, True, False, True, True]
    assert results[0][1] == "after 0.05"
    assert results[3][1] == "after 0"
    assert b"hunter2" not in recorder.requests[-1].content
    messages: list[Any] = recorder.body.get("messages") or recorder.body.get("contents") or []
    if wire in (ANTHROPIC, GOOGLE):  # All results stand in one message of the user's.
        assert [message["role"] for message in messages][1:] == [
            "assistant" if wire is ANTHROPIC else "model",
            "user",
        ]


@every_wire
async def test_calls_that_were_stopped_are_answered_when_the_conversation_goes_on(wire: Wire) -> None:
    stop = asyncio.Event()

    @tool
    async def endless() -> str:
        """Never end."""
        stop.set()
        await asyncio.Event().wait()
        return "never"

    calls = [Call("call_a", "endless", "{}"), Call("call_b", "endless", "{}")]
    recorder = Recorder(wire.encode(Script(calls=calls)), wire.encode(Script(text=["done"])))
    provider = wire.provider(recorder)
    given: dict[str, Any] = {"provider": provider, "model": wire.model, "system": ""}
    toolset = Toolset([endless])
    first = run_loop(
        *loop_values(history=[UserMessage("Go")], toolset=toolset, limits=Limits(), stop=stop, **given)
    )
    events = [event async for event in first]
    assert isinstance(events[-1], RunFinished)
    assert events[-1].status == "stopped"

    # What the journal of a stopped run holds: the turn, and no results.
    turn = next(e.turn for e in events if isinstance(getattr(e, "turn", None), Turn))  # type: ignore[union-attr]
    history = [UserMessage("Go"), turn, UserMessage("Never mind. What else?")]
    second = [event async for event in run_loop(*loop_values(history=history, toolset=toolset, **given))]
    await provider.aclose()
    assert isinstance(second[-1], RunFinished)
    assert second[-1].text == "done"
    results = wire.results(json.loads(recorder.requests[-1].content))
    assert [(call_id, is_error) for call_id, _, is_error in results] == [("call_a", True), ("call_b", True)]
