"""Generators as tools: their pieces are told as they come, the whole is the result, and they are closed in every case."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Generator, Iterator
from typing import Any

import pytest

from tests.patience import PATIENCE_S
from tests.toolloop.helpers import Recorder, converse
from toolloop.events import RunFinished, ToolFinished, ToolProgress, ToolRunning
from toolloop.limits import Limits
from toolloop.loop import run_loop
from toolloop.loop_values import LoopInput, LoopServices
from toolloop.messages import UserMessage
from toolloop.providers.scripted import ScriptedProvider, call, calls, says
from toolloop.tools import Tool, ToolContext, ToolError, ToolOutput, Toolset, streams, tool


def both(make: Any) -> list[Tool]:
    """Return a tool that yields the values of a list, async and plain."""

    @tool(name="act")
    async def act_async():
        """Act."""
        for value in make():
            yield value

    @tool(name="act")
    def act_plain():
        """Act."""
        yield from make()

    return [act_async, act_plain]


@pytest.mark.parametrize("kind", [0, 1])
@pytest.mark.parametrize(
    ("values", "content", "payload", "pieces"),
    [
        (["one ", "two"], "one two", None, ["one ", "two"]),
        ([1, {"a": 2}], '[1, {"a": 2}]', [1, {"a": 2}], ["1\n", '{"a": 2}\n']),
        (["half", ToolOutput("whole", {"n": 1})], "whole", {"n": 1}, ["half", "whole"]),
        ([ToolOutput("whole"), "more"], "whole", None, ["whole", "more"]),
        ([], "Done; there is no output.", None, []),
        (["a\x00\ud800"], "a\ufffd\ufffd", None, ["a\ufffd\ufffd"]),
        ([float("nan")], '["NaN"]', ["NaN"], ['"NaN"\n']),
    ],
)
async def test_pieces_are_told_in_order_and_make_the_result(
    kind: int, values: list[Any], content: str, payload: Any, pieces: list[str]
) -> None:
    made = both(lambda: list(values))[kind]
    dialogue = await converse([calls(call("act")), says("done")], made)
    (result,) = dialogue.told()
    assert (result.content, result.payload, result.is_error) == (content, payload, False)
    assert [event.text for event in dialogue.of(ToolProgress)] == pieces
    kinds = [type(e) for e in dialogue.events if isinstance(e, ToolRunning | ToolProgress | ToolFinished)]
    assert kinds == [ToolRunning, *[ToolProgress] * len(pieces), ToolFinished]


async def test_value_that_a_plain_generator_returns_is_the_result() -> None:
    @tool
    def act() -> Generator[str, None, dict[str, int]]:
        """Act."""
        yield "looking"
        return {"found": 3}

    dialogue = await converse([calls(call("act")), says("done")], act)
    assert dialogue.told()[-1].payload == {"found": 3}
    assert [event.text for event in dialogue.of(ToolProgress)] == ["looking"]


@pytest.mark.parametrize("is_plain", [False, True])
async def test_pieces_come_while_the_tool_still_runs(is_plain: bool) -> None:
    go_on, seen = threading.Event(), asyncio.Event()

    @tool(name="act")
    async def act_async() -> AsyncIterator[str]:
        """Act."""
        yield "first"
        await seen.wait()
        yield "second"

    @tool(name="act")
    def act_plain() -> Iterator[str]:
        """Act."""
        yield "first"
        assert go_on.wait(PATIENCE_S)
        yield "second"

    provider = ScriptedProvider([calls(call("act")), says("done")])
    told: list[str] = []
    async with asyncio.timeout(PATIENCE_S):
        async for event in run_loop(
            LoopInput(
                model="m",
                system="",
                history=[UserMessage("Go.")],
                toolset=Toolset([act_plain if is_plain else act_async]),
            ),
            LoopServices(provider=provider),
        ):
            if isinstance(event, ToolProgress):
                told.append(event.text)
                assert event.call.name == "act"
                go_on.set()
                seen.set()
    assert told == ["first", "second"]


@pytest.mark.parametrize("is_plain", [False, True])
async def test_generator_is_closed_when_the_run_is_stopped(is_plain: bool) -> None:
    stop, closed = asyncio.Event(), threading.Event()

    @tool(name="act")
    async def act_async() -> AsyncIterator[str]:
        """Act."""
        try:
            yield "first"
            await asyncio.sleep(60)
        finally:
            closed.set()

    @tool(name="act")
    def act_plain(ctx: ToolContext) -> Iterator[str]:
        """Act."""
        try:
            yield "first"
            ctx.cancelled.wait(60)
            yield "never told"
        finally:
            closed.set()

    made = act_plain if is_plain else act_async
    events = []
    async for event in run_loop(
        LoopInput(model="m", system="", history=[UserMessage("Go.")], toolset=Toolset([made])),
        LoopServices(provider=ScriptedProvider([calls(call("act")), says("done")]), stop=stop),
    ):
        events.append(event)
        if isinstance(event, ToolProgress):
            stop.set()
    assert await asyncio.to_thread(closed.wait, 10)
    end = events[-1]
    assert isinstance(end, RunFinished)
    assert end.status == "stopped"
    assert [e.text for e in events if isinstance(e, ToolProgress)] == ["first"]


async def test_what_came_before_a_timeout_is_told() -> None:
    closed = asyncio.Event()

    @tool(timeout_s=0.05, side_effects=True)
    async def act() -> AsyncIterator[str]:
        """Act."""
        try:
            yield "row 1"
            await asyncio.sleep(60)
        finally:
            closed.set()

    dialogue = await converse([calls(call("act")), says("done")], act)
    (result,) = dialogue.told()
    assert (result.error_code, closed.is_set()) == ("timeout", True)
    assert result.content.endswith("It may have had an effect already. It had told this much:\nrow 1")


async def test_error_after_pieces_fails_the_call() -> None:
    @tool
    async def act() -> AsyncIterator[str]:
        """Act."""
        yield "row 1"
        raise ToolError("the file ends in the middle")

    dialogue = await converse([calls(call("act")), says("done")], act)
    assert dialogue.told()[-1].content == "the file ends in the middle"


@pytest.mark.parametrize("kind", [0, 1])
async def test_endless_generator_is_closed_at_its_limit(kind: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(streams, "MOST_CHARS", 1000)

    def endless() -> Iterator[str]:
        while True:
            yield "x" * 99

    dialogue = await converse([calls(call("act")), says("done")], both(endless)[kind])
    (result,) = dialogue.told()
    assert "[... stopped after 1,000 characters ...]" in result.content
    assert len(result.content) < 1300


async def test_nested_stream_is_one_result_for_its_caller_and_the_journal() -> None:
    journal = Recorder()

    @tool
    async def rows() -> AsyncIterator[str]:
        """Give rows."""
        yield "a"
        yield "b"

    @tool
    async def outer(ctx: ToolContext) -> str:
        """Call."""
        return (await ctx.call("rows", {})).content

    dialogue = await converse([calls(call("outer")), says("done")], outer, rows, journal=journal)
    assert dialogue.told()[-1].content == "ab"
    assert dialogue.of(ToolProgress) == []
    assert journal.results["call_1.1"].content == "ab"


async def test_streams_side_by_side_keep_their_calls_apart() -> None:
    @tool
    async def count(name: str) -> AsyncIterator[str]:
        """Count.

        Args:
            name: whose.
        """
        for n in range(20):
            yield f"{name}{n} "
            await asyncio.sleep(0)

    script = [calls(call("count", name="a"), call("count", name="b")), says("done")]
    dialogue = await converse(script, count, limits=Limits(max_parallel_tools=2))
    for result in dialogue.told():
        told = "".join(e.text for e in dialogue.of(ToolProgress) if e.call.id == result.call_id)
        assert told == result.content
