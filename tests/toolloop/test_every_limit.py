"""Every field of ``Limits``, in plain and in streamed form. ``test_loop_limits.py`` holds what the loop does around them."""

from __future__ import annotations

import asyncio
import itertools
import threading
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, fields
from typing import Any, Literal

import pytest

from tests.patience import PATIENCE_S
from tests.toolloop.helpers import add, broken, wait
from toolloop.client import Client
from toolloop.errors import ProviderUnavailable
from toolloop.events import Event, LimitReached, RunFinished, StepReset, TextDelta, TurnFinished
from toolloop.generation import Generation, RunFailed
from toolloop.limits import Limits
from toolloop.messages import ToolResult, Turn
from toolloop.providers.profiles import Prices, Profile
from toolloop.providers.scripted import ScriptedProvider, call, calls, fails, hangs, says
from toolloop.tokens import Usage
from toolloop.tools import Tool, ToolContext, ToolOutput, tool

Form = Literal["plain", "streamed"]
DEAR = Profile(max_output_tokens=8_000, prices=(Prices(10.0, 50.0),))
BUSY = ProviderUnavailable("busy")
VERDICT = {"type": "object", "properties": {"ok": {"type": "boolean"}}, "required": ["ok"]}


@dataclass
class Outcome:
    """A run that has ended, in either form."""

    provider: ScriptedProvider
    events: list[Event]
    generation: Generation
    error_code: str = ""

    @property
    def told(self) -> list[ToolResult]:
        return [m for m in self.generation.messages if isinstance(m, ToolResult)]


@dataclass
class Run:
    """Runs a script in one form."""

    form: Form

    async def __call__(
        self, script: Any, *tools: Tool, limits: Limits, profile: Profile | None = None, **options: Any
    ) -> Outcome:
        provider = ScriptedProvider(script)
        client = Client("m", tools=tools, provider=provider, limits=limits, profile=profile)
        events: list[Event] = []
        try:
            if self.form == "plain":
                return Outcome(provider, [], await client.generate("Hello", **options))
            async with client.stream("Hello", **options) as stream:
                events = [event async for event in stream]
            self.check(events)
            return Outcome(provider, events, stream.generation)
        except RunFailed as failed:
            return Outcome(provider, events, failed.generation, failed.code)

    @staticmethod
    def check(events: list[Event]) -> None:
        """What every stream keeps: one end, and text that adds up to the answer."""
        assert [isinstance(event, RunFinished) for event in events].count(True) == 1
        end = events[-1]
        assert isinstance(end, RunFinished)
        shown: list[str] = []
        for event in events:
            if isinstance(event, TextDelta):
                shown.append(event.text)
            elif isinstance(event, StepReset) or (isinstance(event, TurnFinished) and event.turn.tool_calls):
                shown.clear()
        assert "".join(shown) == end.text


def tireless(name: str, usage: Usage, **arguments: Any) -> Callable[[Any], Any]:
    """A model that calls and calls, until tools are taken away."""
    numbers = itertools.count()

    def turn(request: Any) -> Any:
        if request.tool_choice == "none":
            return says("My best answer.", usage=usage)
        fresh = {"a": next(numbers), "b": 0} if name == "add" and not arguments else arguments
        return calls(call(name, **fresh), usage=usage)

    return turn


SMALL, LARGE = Usage(10, 0, 0, 5, 0, 1), Usage(800, 0, 0, 200, 0, 1)
# name -> limits, script, profile, how many model turns may come before the final answer
ENDING: dict[str, tuple[Limits, Callable[[], Any], Profile | None, range]] = {
    "max_steps": (Limits(max_steps=3), lambda: tireless("add", SMALL), None, range(3, 4)),
    "max_requests": (Limits(max_requests=2), lambda: tireless("add", SMALL), None, range(2, 3)),
    "max_tool_calls": (Limits(max_tool_calls=3), lambda: tireless("add", SMALL), None, range(4, 5)),
    "max_tokens": (Limits(max_tokens=4_000), lambda: tireless("add", LARGE), None, range(1, 4)),
    "max_cost_usd": (Limits(max_cost_usd=0.12), lambda: tireless("add", LARGE), DEAR, range(1, 6)),
    "max_seconds": (
        Limits(max_seconds=0.1),
        lambda: tireless("wait", SMALL, seconds=10 * PATIENCE_S),
        None,
        range(1, 2),
    ),
    "repeat_stop": (Limits(repeat_stop=4), lambda: tireless("add", SMALL, a=1, b=1), None, range(4, 5)),
    "failure_stop": (Limits(failure_stop=3), lambda: tireless("broken", SMALL), None, range(3, 4)),
}
both_forms = pytest.mark.parametrize("form", ["plain", "streamed"])


@both_forms
@pytest.mark.parametrize("name", ENDING)
async def test_run_ends_with_one_answer_without_tools_when_a_limit_is_met(name: str, form: Form):
    limits, script, profile, turns = ENDING[name]
    async with asyncio.timeout(PATIENCE_S):
        done = await Run(form)(script(), add, wait, broken, limits=limits, profile=profile)
    made = done.generation
    assert (made.limit, made.status, made.text) == (name, "completed", "My best answer.")
    finals = [request.tool_choice == "none" for request in done.provider.requests]
    assert finals.count(True) == 1
    assert finals[-1], "the final answer is the last request"
    assert len(finals) - 1 in turns
    assert done.provider.requests[-1].tools, "declared still, so that the cached prefix holds"
    called = [m.tool_calls for m in made.messages if isinstance(m, Turn)]
    assert len(done.told) == sum(len(calls) for calls in called), "each call is answered"
    if limits.max_cost_usd is not None:
        assert made.cost_usd is not None
        assert made.cost_usd <= limits.max_cost_usd
    if form == "streamed":
        reached = [event for event in done.events if isinstance(event, LimitReached)]
        assert [event.limit for event in reached] == [name]
        assert reached[0].detail


Case = Callable[[Run], Awaitable[None]]
CASES: dict[str, Case] = {}


def limit(*names: str) -> Callable[[Case], Case]:
    """Say which fields a case is about."""

    def keep(case: Case) -> Case:
        CASES.update(dict.fromkeys(names, case))
        return case

    return keep


@limit("repeat_warn", "failure_warn")
async def warned(run: Run) -> None:
    script = [*(calls(call("add", a=1, b=1), call("broken")) for _ in range(3)), says("ok")]
    limits = Limits(repeat_warn=2, failure_warn=3)
    done = await run(script, add, broken, limits=limits)
    by_name = {n: [r.content for r in done.told if r.name == n] for n in ("add", "broken")}
    assert ["same call" in text for text in by_name["add"]] == [False, True, True]
    assert ["in a row" in text for text in by_name["broken"]] == [False, False, True]
    assert done.generation.limit == ""


@limit("max_tool_output_chars")
async def cut(run: Run) -> None:
    @tool
    def long() -> ToolOutput:
        """Say a lot."""
        return ToolOutput("x" * 5_000, {"text": "x" * 5_000})

    done = await run([calls(call("long")), says("ok")], long, limits=Limits(max_tool_output_chars=100))
    assert done.told[0].content.startswith("x" * 100 + "\n[... cut: the first 100 of 5000")
    assert len(done.told[0].content) < 200
    assert done.generation.payloads[0].payload == {"text": "x" * 5_000}


@limit("max_parallel_tools")
async def bounded(run: Run) -> None:
    running, most = 0, 0

    @tool
    async def work(number: int) -> str:
        """Work."""
        nonlocal running, most
        running += 1
        most = max(most, running)
        await asyncio.sleep(0.01)
        running -= 1
        return str(number)

    script = [calls(*(call("work", number=n) for n in range(9))), says("ok")]
    done = await run(script, work, limits=Limits(max_parallel_tools=3))
    assert most == 3
    assert [r.content for r in done.told] == [str(n) for n in range(9)]


@limit("tool_timeout_s")
async def timed_out(run: Run) -> None:
    released = threading.Event()

    @tool(blocking=True, timeout_s=None)
    def stuck(ctx: ToolContext) -> str:
        """Block a thread."""
        ctx.cancelled.wait(10 * PATIENCE_S)
        released.set()
        return "too late"

    @tool
    async def tick() -> str:
        """Show that the event loop is free."""
        await asyncio.sleep(0.02)
        return "tick"

    script = [calls(call("stuck"), call("tick")), says("ok")]
    async with asyncio.timeout(PATIENCE_S):
        done = await run(script, stuck, tick, limits=Limits(tool_timeout_s=0.1))
    assert [r.error_code for r in done.told] == ["timeout", ""]
    assert await asyncio.to_thread(released.wait, PATIENCE_S), "the thread was told to give up"


@limit("max_output_tokens", "request_timeout_s")
async def passed_on(run: Run) -> None:
    limits = Limits(max_output_tokens=123, request_timeout_s=45, max_seconds=None)
    done = await run([says("ok")], limits=limits)
    assert done.provider.requests[0].max_output_tokens == 123
    assert done.provider.requests[0].timeout_s == 45


@limit("max_call_depth")
async def deep(run: Run) -> None:
    @tool
    async def again(n: int, ctx: ToolContext) -> str:
        """Call itself."""
        result = await ctx.call("again", {"n": n + 1})
        return f"{n}>{result.content}"

    done = await run([calls(call("again", n=0)), says("ok")], again, limits=Limits(max_call_depth=3))
    assert done.told[0].content.startswith("0>1>2>3>")
    assert "4>" not in done.told[0].content


@limit("max_retries", "retry_min_s", "retry_max_s")
async def retried(run: Run) -> None:
    limits = Limits(max_retries=2, retry_min_s=0.02, retry_max_s=0.02)
    begun = time.monotonic()
    done = await run([fails(BUSY)] * 2 + [says("ok")], limits=limits)
    assert done.generation.text == "ok"
    assert time.monotonic() - begun >= 0.02
    done = await run([fails(BUSY)] * 3, limits=limits)
    assert (done.error_code, len(done.provider.requests)) == ("provider_unavailable", 3)


@limit("max_output_repairs")
async def repaired(run: Run) -> None:
    bad = says('{"ok": 1}')
    done = await run([bad, bad, says('{"ok": true}')], limits=Limits(max_output_repairs=2), output=VERDICT)
    assert done.generation.output == {"ok": True}
    done = await run([bad, bad], limits=Limits(max_output_repairs=1), output=VERDICT)
    assert (done.error_code, len(done.provider.requests)) == ("invalid_output", 2)


@limit("final_seconds")
async def ended(run: Run) -> None:
    done = await run([hangs(after="half")], limits=Limits(max_seconds=0.05, final_seconds=0.05))
    assert (done.error_code, done.generation.text, done.generation.limit) == (
        "deadline",
        "half",
        "max_seconds",
    )
    assert done.provider.open_streams == 0


@both_forms
@pytest.mark.parametrize("name", CASES)
async def test_limit_holds(name: str, form: Form):
    await CASES[name](Run(form))


@both_forms
async def test_retries_end_when_the_requests_are_used_up(form: Form):
    script = [fails(BUSY), calls(call("add", a=1, b=1)), fails(BUSY), fails(BUSY)]
    limits = Limits(max_requests=2, retry_min_s=0.001)
    done = await Run(form)(script, add, limits=limits)
    # One retry, one turn with a call; then the final answer, which fails and is not tried again.
    assert done.error_code == "provider_unavailable"
    assert len(done.provider.requests) == 3
    done = await Run(form)([fails(BUSY), fails(BUSY), says("no")], limits=limits)
    assert len(done.provider.requests) == 2


@both_forms
async def test_requests_of_earlier_attempts_count_when_a_run_goes_on(form: Form):
    client = Client(
        "m",
        tools=[add],
        provider=ScriptedProvider([calls(call("add", a=1, b=1)), fails(BUSY)]),
        limits=Limits(max_retries=0),
    )
    with pytest.raises(RunFailed) as failed:
        await client.generate("Hello")
    provider = ScriptedProvider([says("My best answer.", expect=lambda r: r.tool_choice == "none")])
    client = Client("m", tools=[add], provider=provider, limits=Limits(max_requests=1))
    if form == "plain":
        made = await client.generate(failed.value.generation)
    else:
        async with client.stream(failed.value.generation) as stream:
            async for _ in stream:
                pass
        made = stream.generation
    assert made.limit == "max_requests"


@both_forms
async def test_stop_closes_the_stream_and_keeps_what_was_said(form: Form):
    stop = asyncio.Event()
    asyncio.get_running_loop().call_later(0.05, stop.set)
    done = await Run(form)([hangs(after="half")], limits=Limits(), stop=stop)
    assert (done.generation.status, done.generation.text) == ("stopped", "half")
    assert done.provider.open_streams == 0


def test_every_field_has_a_case():
    assert {*ENDING, *CASES} == {field.name for field in fields(Limits)}
