"""What a call costs that we end ourselves: what the provider had counted by then, and an estimate of the rest."""

from __future__ import annotations

import asyncio
from typing import Any

import httpx2
import pytest

from tests.toolloop.helpers import add, converse, loop_values
from tests.toolloop.providers.encodings import Script
from tests.toolloop.providers.wires import ANTHROPIC, COMPATIBLE, GOOGLE, OPENAI, XAI, SlowStream, Wire
from toolloop.errors import ProviderError, ProviderUnavailable
from toolloop.events import ReasoningDelta, RunFinished, TextDelta
from toolloop.fallback import FallbackProvider
from toolloop.intent import calls_plan
from toolloop.limits import Limits
from toolloop.loop import run_loop
from toolloop.loop_values import LoopInput, LoopServices
from toolloop.messages import Turn, UserMessage
from toolloop.metering import UsageEvent
from toolloop.planner_executor import PlannerExecutor
from toolloop.providers.extractive import ExtractiveProvider
from toolloop.providers.profiles import Prices, Profile
from toolloop.providers.scripted import ScriptedProvider, call, calls, fails, hangs, says
from toolloop.tokens import Usage
from toolloop.tools import Toolset

PRICED = Profile(prices=(Prices(1.0, 10.0),))
WORDS = "word " * 300


async def stopped(provider: Any, *, kind: type = TextDelta, **settings: Any) -> RunFinished:
    """Run until the first delta of a kind, stop, and return the end."""
    stop = asyncio.Event()
    end = None
    async for event in run_loop(
        *loop_values(
            history=[UserMessage("Hello " * 50)],
            provider=provider,
            **{"system": "", "model": "m", "toolset": Toolset(), "stop": stop, **settings},
        )
    ):
        if isinstance(event, kind):
            stop.set()
        end = event
    assert isinstance(end, RunFinished)
    assert end.status == "stopped"
    return end


def silent_after_text(wire: Wire) -> Any:
    """Return an adapter whose server sends text and then nothing more."""
    body = wire.encode(Script(text=[WORDS, "rest"]))
    half = body[: body.index(b"rest")].rpartition(b"\n\n")[0] + b"\n\n"

    def handler(request: httpx2.Request) -> httpx2.Response:
        stream = SlowStream([half], then=asyncio.Event().wait)
        return httpx2.Response(200, headers={"content-type": "text/event-stream"}, stream=stream)

    return wire.provider(handler)


@pytest.mark.parametrize("wire", [ANTHROPIC, GOOGLE, OPENAI, XAI, COMPATIBLE], ids=str)
async def test_stopped_turn_is_counted_on_every_wire(wire: Wire) -> None:
    events: list[UsageEvent] = []
    end = await stopped(silent_after_text(wire), model=wire.model, profile=PRICED, on_usage=events.append)
    (event,) = events
    assert (event.is_lost, event.is_estimate, event.usage) == (True, True, end.usage)
    assert event.is_stopped
    assert (event.provider, event.model, end.usage.requests) == (wire.name, wire.model, 1)
    assert end.usage.output_total == len(WORDS) // 3
    if wire is ANTHROPIC:  # It tells in its first event what it has read.
        assert (end.usage.input_total, end.usage.cached_read, end.usage.cache_write) == (100, 40, 7)
    else:
        assert end.usage.input_total >= 100
    assert end.data["cost_usd"] == pytest.approx(event.cost_usd)
    assert (event.cost_usd or 0) > 0
    assert "1 model calls ended" in end.data["notes"][0]


async def test_count_of_the_provider_goes_before_the_estimate_when_it_is_higher() -> None:
    chunk = (
        b'data: {"candidates": [{"content": {"parts": [{"text": "Hi"}]}}], '
        b'"usageMetadata": {"promptTokenCount": 900, "candidatesTokenCount": 70, "thoughtsTokenCount": 30}}\r\n\r\n'
    )

    def handler(request: httpx2.Request) -> httpx2.Response:
        stream = SlowStream([chunk], then=asyncio.Event().wait)
        return httpx2.Response(200, headers={"content-type": "text/event-stream"}, stream=stream)

    end = await stopped(GOOGLE.provider(handler), model=GOOGLE.model)
    assert end.usage == Usage(900, 0, 0, 100, 30, 1)


async def test_reasoning_counts_when_stopped_before_the_first_word() -> None:
    provider = ScriptedProvider([hangs(reasoning="x" * 600)])
    end = await stopped(provider, kind=ReasoningDelta)
    assert end.usage.output_total == 200


async def test_input_counts_when_stopped_while_the_provider_is_silent() -> None:
    stop = asyncio.Event()
    asyncio.get_running_loop().call_later(0.02, stop.set)
    dialogue = await converse([hangs()], stop=stop)
    assert dialogue.end.usage.input_total > 0
    assert dialogue.end.usage.output_total == 0


async def test_nothing_counts_when_stopped_before_anything_was_sent() -> None:
    stop = asyncio.Event()
    stop.set()
    assert (await converse([says("never")], stop=stop)).end.usage == Usage()


async def test_turn_that_ran_out_of_time_counts_beside_the_final_answer() -> None:
    events: list[UsageEvent] = []
    script = [hangs(reasoning="x" * 300), says("That is all.", usage=Usage(7, 0, 0, 3, 0, 1))]
    dialogue = await converse(script, limits=Limits(max_seconds=0.05), on_usage=events.append)
    assert (dialogue.end.limit, dialogue.end.text) == ("max_seconds", "That is all.")
    assert [(e.is_lost, e.is_estimate, e.step) for e in events] == [(True, True, 0), (False, False, 0)]
    assert not any(event.is_stopped for event in events), "it failed: nobody stopped it"
    assert events[0].usage.output_total == 100
    assert dialogue.end.usage == events[0].usage + events[1].usage


async def test_money_cannot_be_spent_without_end_by_stopping_again_and_again() -> None:
    limits, usage, rounds = Limits(max_cost_usd=0.05), Usage(), 0
    for _ in range(100):
        provider = ScriptedProvider([hangs(after="w" * 3000)])
        try:
            end = await stopped(provider, profile=PRICED, limits=limits, usage=usage)
        except AssertionError:
            break  # The limit ended the run: nothing more was asked for.
        usage, rounds = end.usage, rounds + 1
    assert 0 < rounds <= 5
    assert provider.requests == []


@pytest.mark.parametrize("way", ["leave", "cancel"])
async def test_usage_is_reported_when_the_reader_goes_away(way: str) -> None:
    events: list[UsageEvent] = []
    begun = asyncio.Event()

    async def read() -> None:
        stream = run_loop(
            LoopInput(model="m", system="", history=[UserMessage("Hello")], toolset=Toolset()),
            LoopServices(provider=ScriptedProvider([hangs(after="x" * 30)]), on_usage=events.append),
        )
        async for event in stream:
            if isinstance(event, TextDelta):
                begun.set()
                if way == "leave":
                    break
        await stream.aclose()

    task = asyncio.create_task(read())
    await begun.wait()
    if way == "cancel":
        await asyncio.sleep(0)
        task.cancel()
    await asyncio.wait({task})
    assert [(e.is_lost, e.usage.output_total) for e in events] == [(True, 10)]


async def test_finished_turn_is_not_counted_twice_when_its_tool_is_stopped() -> None:
    stop = asyncio.Event()
    script = [calls(call("add", a=1, b=1), usage=Usage(50, 0, 0, 20, 0, 1)), hangs(after="xyz")]
    events: list[UsageEvent] = []
    stream = run_loop(
        LoopInput(model="m", system="", history=[UserMessage("Hello")], toolset=Toolset([add])),
        LoopServices(provider=ScriptedProvider(script), stop=stop, on_usage=events.append),
    )
    async for event in stream:
        if isinstance(event, TextDelta):
            stop.set()
        end = event
    assert isinstance(end, RunFinished)
    assert [e.is_lost for e in events] == [False, True]
    # The provider counted the past: only what came since is estimated.
    assert 70 < events[1].usage.input_total < 100
    assert end.usage.requests == 2


async def test_extractive_answers_cost_nothing_when_stopped() -> None:
    end = await stopped(ExtractiveProvider(), model="extractive")
    assert end.usage == Usage(requests=1)
    assert end.data["notes"] == []


async def test_calls_of_a_planner_add_up_when_its_executor_is_stopped() -> None:
    plan = '{"calls": [{"tool": "add", "task": "add 1 and 2"}], "answer": ""}'
    stop = asyncio.Event()

    class Silent(ScriptedProvider):
        async def stream(self, request: Any) -> Any:
            request.meter.begin("other", "small", lambda: Usage(40, 0, 0, 5, 0, 1))
            asyncio.get_running_loop().call_later(0.01, stop.set)
            await asyncio.Event().wait()
            yield TextDelta("never")

    class Planner(ScriptedProvider):
        async def stream(self, request: Any) -> Any:
            request.meter.begin("first", "big", lambda: Usage(100, 0, 0, 30, 0, 1))
            async for event in super().stream(request):
                yield event

    events: list[UsageEvent] = []
    provider = PlannerExecutor(Planner([says(plan)]), executor=Silent([]), executor_model="small")
    end = await stopped_by(provider, stop, toolset=Toolset([add]), on_usage=events.append)
    assert end.usage == Usage(140, 0, 0, 35, 0, 2)
    assert (events[0].provider, events[0].model) == ("other", "small")


async def stopped_by(provider: Any, stop: asyncio.Event, **settings: Any) -> RunFinished:
    end = None
    async for event in run_loop(
        *loop_values(
            model="m", system="", history=[UserMessage("Hello")], provider=provider, stop=stop, **settings
        )
    ):
        end = event
    assert isinstance(end, RunFinished)
    return end


async def test_fallback_is_priced_by_the_facts_given() -> None:
    first = ScriptedProvider([fails(ProviderUnavailable("busy"))], name="first")
    second = ScriptedProvider([says("ok", usage=Usage(1_000_000, 0, 0, 0, 0, 1))], name="second")
    asked: list[tuple[str, str]] = []

    def profiles(provider: str, model: str) -> Profile:
        asked.append((provider, model))
        return Profile(prices=(Prices(3.0, 1.0),))

    provider = FallbackProvider([(first, "m"), (second, "n")], profiles=profiles)
    *_, end = [
        event
        async for event in run_loop(
            LoopInput(model="m", system="", history=[UserMessage("Hello")], toolset=Toolset()),
            LoopServices(provider=provider, profile=PRICED, profiles=profiles),
        )
    ]
    assert isinstance(end, RunFinished)
    assert end.data["cost_usd"] == pytest.approx(3.0)
    assert set(asked) == {("second", "n")}
    assert second.requests[0].profile == profiles("second", "n")
    assert first.requests[0].profile == PRICED


async def test_turns_of_a_fallback_are_priced_so_when_a_run_is_resumed() -> None:
    turn = Turn("second", "n", text="Hm.", stop="pause", usage=Usage(1_000_000, 0, 0, 0, 0, 1))
    dialogue = await converse(
        [says("ok", usage=Usage())],
        history=[UserMessage("Hello"), turn],
        first_step=1,
        usage=turn.usage,
        profile=PRICED,
        profiles=lambda provider, model: Profile(prices=(Prices(5.0, 1.0),)),
    )
    assert dialogue.end.data["cost_usd"] == pytest.approx(5.0)


async def test_intent_that_fails_says_what_it_cost() -> None:
    events: list[UsageEvent] = []
    with pytest.raises(ProviderError) as caught:
        await calls_plan(
            provider=ScriptedProvider([hangs(after="x" * 30)]),
            model="m",
            history=[UserMessage("Hello")],
            toolset=Toolset([add]),
            limits=Limits(max_seconds=0.05, final_seconds=0.05),
            on_usage=events.append,
        )
    assert caught.value.usage is not None
    assert caught.value.usage == events[0].usage
    assert events[0].usage.output_total == 10
