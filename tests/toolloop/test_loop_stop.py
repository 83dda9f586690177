"""Stopping and cancelling: at once, the provider's stream closed, every call answered."""

from __future__ import annotations

import asyncio
import threading
import time
from typing import Any

import pytest

from tests.patience import PATIENCE_S
from tests.toolloop.helpers import Recorder, add, loop_values, wait
from toolloop.errors import BadRequest, RateLimited
from toolloop.events import RunFinished, TextDelta, ToolFinished, ToolRunning
from toolloop.limits import Limits
from toolloop.loop import run_loop
from toolloop.loop_values import LoopInput, LoopServices
from toolloop.messages import UserMessage
from toolloop.providers.scripted import ScriptedProvider, call, calls, fails, hangs, says
from toolloop.tools import Toolset, tool


class Conversation:
    """A run in a task of its own, so that a test can act while it goes on."""

    def __init__(self, script, *tools, **settings) -> None:
        self.provider = ScriptedProvider(script)
        self.journal = Recorder()
        self.stop = asyncio.Event()
        self.events: list[Any] = []
        self.seen: asyncio.Queue[Any] = asyncio.Queue()
        self.stream = run_loop(
            *loop_values(
                model="m",
                system="",
                history=[UserMessage("Hello")],
                toolset=Toolset(tools),
                provider=self.provider,
                journal=self.journal,
                stop=self.stop,
                **settings,
            )
        )
        self.task = asyncio.create_task(self._consume())

    async def _consume(self) -> None:
        async for event in self.stream:
            self.events.append(event)
            self.seen.put_nowait(event)

    async def until(self, kind) -> None:
        async with asyncio.timeout(PATIENCE_S):
            while not isinstance(await self.seen.get(), kind):
                pass

    async def stopped(self) -> RunFinished:
        """Set the stop event and return the end; what hangs here hangs for ever, so that it comes shows that nothing was waited for."""
        self.stop.set()
        await asyncio.wait_for(self.task, PATIENCE_S)
        end = self.events[-1]
        assert isinstance(end, RunFinished)
        return end


async def test_stream_is_closed_and_text_kept_when_stopped_while_the_provider_is_silent():
    run = Conversation([hangs(after="So far")])
    await run.until(TextDelta)
    assert run.provider.open_streams == 1

    end = await run.stopped()

    assert run.provider.open_streams == 0
    assert (end.status, end.stop, end.text) == ("stopped", "stopped", "So far")
    assert run.journal.log == ["turn 0 started"]


async def test_run_is_stopped_and_not_failed_when_the_adapter_takes_the_stop_for_an_error():
    class Confused(ScriptedProvider):
        async def stream(self, request):
            yield TextDelta("So far")
            try:
                await asyncio.sleep(30)
            except asyncio.CancelledError:
                raise BadRequest("connection lost") from None

    stop = asyncio.Event()
    asyncio.get_running_loop().call_later(0.02, stop.set)
    events: list[Any] = [
        event
        async for event in run_loop(
            LoopInput(model="m", system="", history=[UserMessage("a")], toolset=Toolset()),
            LoopServices(provider=Confused([]), stop=stop),
        )
    ]
    assert (events[-1].status, events[-1].text) == ("stopped", "So far")


async def test_run_stops_at_the_next_event_when_the_provider_never_pauses():
    provider = ScriptedProvider([says(["x"] * 1000)])
    stop = asyncio.Event()
    events: list[Any] = []
    async for event in run_loop(
        LoopInput(model="m", system="", history=[UserMessage("a")], toolset=Toolset()),
        LoopServices(provider=provider, stop=stop),
    ):
        events.append(event)
        if len(events) == 10:
            stop.set()
    assert events[-1].status == "stopped"
    assert events[-1].text == "x" * 10
    assert provider.open_streams == 0


async def test_no_model_is_called_when_stopped_before_the_start():
    stop = asyncio.Event()
    stop.set()
    provider = ScriptedProvider([says("never")])
    events: list[Any] = [
        event
        async for event in run_loop(
            LoopInput(model="m", system="", history=[UserMessage("a")], toolset=Toolset()),
            LoopServices(provider=provider, stop=stop),
        )
    ]
    assert [type(event) for event in events] == [RunFinished]
    assert events[0].status == "stopped"
    assert provider.requests == []


async def test_every_call_is_answered_when_stopped_while_tools_run():
    run = Conversation(
        [
            calls(
                call("add", a=1, b=1),
                call("wait", seconds=30),
                call("wait", seconds=31),
                call("wait", seconds=32),
            )
        ],
        add,
        wait,
        limits=Limits(max_parallel_tools=2),
    )
    await run.until(ToolFinished)
    await asyncio.sleep(0.05)
    end = await run.stopped()

    assert end.status == "stopped"
    codes = {call_id: result.error_code for call_id, result in run.journal.results.items()}
    assert codes == {"call_1": "", "call_2": "cancelled", "call_3": "cancelled", "call_4": "cancelled"}
    assert "may have had an effect" in run.journal.results["call_2"].content
    assert "was not run" in run.journal.results["call_4"].content
    assert "call_4 started" not in run.journal.log
    assert len([event for event in run.events if isinstance(event, ToolFinished)]) == 4


async def test_stop_is_through_when_a_tool_resists():
    release = asyncio.Event()

    @tool(timeout_s=None)
    async def stubborn() -> str:
        """Ignore the cancellation."""
        try:
            await asyncio.sleep(30)
        except asyncio.CancelledError:
            await release.wait()
        return "late"

    run = Conversation([calls(call("stubborn"))], stubborn)
    await run.until(ToolRunning)
    await asyncio.sleep(0.01)
    end = await run.stopped()
    assert end.status == "stopped"
    assert run.journal.results["call_1"].error_code == "cancelled"
    release.set()


async def test_blocking_tool_is_left_and_told_when_stopped():
    noticed = threading.Event()

    @tool(blocking=True)
    def deaf(ctx_seconds: int) -> str:
        """Sleep in a thread."""
        time.sleep(ctx_seconds)
        noticed.set()
        return "late"

    run = Conversation([calls(call("deaf", ctx_seconds=1))], deaf)
    await run.until(ToolRunning)
    end = await run.stopped()
    assert end.status == "stopped"
    assert not noticed.is_set()
    assert run.journal.results["call_1"].error_code == "cancelled"


async def test_wait_for_a_retry_ends_when_stopped():
    run = Conversation([fails(RateLimited("later", retry_after_s=60), after="Half")])
    await run.until(TextDelta)
    await asyncio.sleep(0.02)
    end = await run.stopped()
    assert (end.status, end.text) == ("stopped", "Half")


async def test_stream_is_closed_and_cancellation_raised_when_the_task_is_cancelled():
    run = Conversation([hangs(after="So far")])
    await run.until(TextDelta)
    run.task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await run.task
    assert run.provider.open_streams == 0
    assert not any(isinstance(event, RunFinished) for event in run.events)


async def test_tools_are_cancelled_and_not_journalled_when_the_task_is_cancelled():
    ended: list[str] = []

    @tool
    async def long() -> str:
        """Take long."""
        try:
            await asyncio.sleep(30)
        finally:
            ended.append("cancelled")
        return "never"

    run = Conversation([calls(call("long"))], long)
    await run.until(ToolRunning)
    await asyncio.sleep(0.01)
    run.task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await run.task
    assert ended == ["cancelled"]
    assert run.journal.results == {}


async def within(seconds: float, stream) -> None:
    async with asyncio.timeout(seconds):
        async for _ in stream:
            pass


async def test_outer_timeout_is_not_mistaken_for_a_stop():
    provider = ScriptedProvider([hangs()])
    stop = asyncio.Event()
    stream = run_loop(
        LoopInput(model="m", system="", history=[UserMessage("a")], toolset=Toolset()),
        LoopServices(provider=provider, stop=stop),
    )
    with pytest.raises(TimeoutError):
        await within(0.05, stream)
    assert provider.open_streams == 0
    task = asyncio.current_task()
    assert task is not None
    assert task.cancelling() == 0


async def test_task_is_left_uncancelled_when_a_run_was_stopped_in_it():
    provider = ScriptedProvider([hangs()])
    stop = asyncio.Event()
    asyncio.get_running_loop().call_later(0.05, stop.set)
    events: list[Any] = [
        event
        async for event in run_loop(
            LoopInput(model="m", system="", history=[UserMessage("a")], toolset=Toolset()),
            LoopServices(provider=provider, stop=stop),
        )
    ]
    task = asyncio.current_task()
    assert task is not None
    assert task.cancelling() == 0
    await asyncio.sleep(0.01)
    assert events[-1].status == "stopped"


async def test_everything_is_closed_when_the_consumer_walks_away():
    provider = ScriptedProvider([hangs(after="So far")])
    stream = run_loop(
        LoopInput(model="m", system="", history=[UserMessage("a")], toolset=Toolset()),
        LoopServices(provider=provider, stop=asyncio.Event()),
    )
    async for _ in stream:
        break
    await stream.aclose()
    await asyncio.sleep(0)
    assert provider.open_streams == 0
    assert len(asyncio.all_tasks()) == 1
