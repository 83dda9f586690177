"""Each limit: the event that names it, one last turn without tools, and its name in the end."""

from __future__ import annotations

import asyncio
import itertools

import pytest

from tests.patience import PATIENCE_S
from tests.toolloop.helpers import Recorder, add, broken, converse, wait
from toolloop.errors import ConfigurationError
from toolloop.events import LimitReached, StepReset, ToolRunning
from toolloop.limits import Limits
from toolloop.messages import ModelMessage, ToolCall, ToolResult, Turn, UserMessage
from toolloop.providers.profiles import Prices, Profile
from toolloop.providers.scripted import ScriptedProvider, call, calls, hangs, says
from toolloop.tokens import Usage
from toolloop.tools import tool

SMALL = Usage(10, 0, 0, 5, 0, 1)
DEAR = Profile(max_output_tokens=8_000, prices=(Prices(10.0, 50.0),))


def always_calls(usage: Usage = SMALL) -> ScriptedProvider:
    """A model that calls and calls, with new arguments each time, until tools are taken away."""
    numbers = itertools.count()

    def turn(request):
        if request.tool_choice == "none":
            return says("My best answer.", usage=usage)
        return calls(call("add", a=next(numbers), b=0), usage=usage)

    return ScriptedProvider(turn)


def check_final(dialogue, limit: str) -> None:
    reached = dialogue.of(LimitReached)
    assert [event.limit for event in reached] == [limit]
    assert dialogue.end.limit == limit
    assert dialogue.end.status == "completed"
    assert dialogue.end.text == "My best answer."
    last = dialogue.provider.requests[-1]
    assert last.tool_choice == "none"
    assert last.tools, "the tools stay declared, so that the cached prefix holds"
    assert isinstance(last.messages[-1], UserMessage)
    assert last.messages[-1].notice
    assert reached[0].detail in last.messages[-1].text


async def test_run_ends_with_an_answer_when_max_steps_is_met():
    dialogue = await converse(always_calls(), add, limits=Limits(max_steps=3))
    check_final(dialogue, "max_steps")
    assert len(dialogue.provider.requests) == 4


async def test_run_ends_with_an_answer_when_max_tool_calls_is_met():
    journal = Recorder()
    script = [calls(*(call("add", a=i, b=0) for i in range(5))), says("My best answer.")]
    dialogue = await converse(script, add, limits=Limits(max_tool_calls=3), journal=journal)
    check_final(dialogue, "max_tool_calls")
    assert [r.error_code for r in dialogue.told()] == ["", "", "", "limit", "limit"]
    assert len(journal.results) == 5


async def test_run_ends_with_an_answer_when_max_tokens_is_met():
    dialogue = await converse(always_calls(Usage(800, 0, 0, 200, 0, 1)), add, limits=Limits(max_tokens=4_000))
    check_final(dialogue, "max_tokens")
    assert 2 <= len(dialogue.provider.requests) <= 4


async def test_tools_are_cut_off_and_an_answer_comes_when_time_is_over():
    journal = Recorder()
    script = [calls(call("wait", seconds=10 * PATIENCE_S), call("add", a=1, b=1)), says("My best answer.")]
    async with asyncio.timeout(PATIENCE_S):
        dialogue = await converse(script, wait, add, limits=Limits(max_seconds=0.2), journal=journal)
    check_final(dialogue, "max_seconds")
    assert [r.error_code for r in dialogue.told()] == ["limit", ""]
    assert set(journal.results) == {"call_1", "call_2"}


async def test_silent_turn_is_given_up_for_the_final_answer_when_time_is_over():
    script = [hangs(), says("My best answer.")]
    dialogue = await converse(script, add, limits=Limits(max_seconds=0.1))
    check_final(dialogue, "max_seconds")
    assert dialogue.provider.open_streams == 0


async def test_visible_reasoning_is_reset_when_time_is_over():
    script = [hangs(reasoning="thinking ..."), says("My best answer.")]
    dialogue = await converse(script, add, limits=Limits(max_seconds=0.1))
    check_final(dialogue, "max_seconds")
    assert len(dialogue.of(StepReset)) == 1


async def test_streaming_answer_may_finish_when_time_is_over():
    script = [says(["a"] * 10, chunk_delay_s=0.03)]
    dialogue = await converse(script, limits=Limits(max_seconds=0.1, final_seconds=5))
    assert dialogue.end.text == "a" * 10
    assert dialogue.end.limit == ""


async def test_run_fails_with_its_text_when_even_the_final_seconds_are_over():
    limits = Limits(max_seconds=0.05, final_seconds=0.1)
    dialogue = await converse([hangs(after="As far as")], limits=limits)
    assert dialogue.end.status == "failed"
    assert (dialogue.end.error_code, dialogue.end.limit) == ("deadline", "max_seconds")
    assert dialogue.end.text == "As far as"
    assert dialogue.end.retryable
    assert dialogue.provider.open_streams == 0


async def test_money_is_never_overspent_when_turns_use_all_they_may():
    # A hostile model: it always writes as much as it was allowed to.
    numbers = itertools.count()

    def turn(request):
        written = request.max_output_tokens or 8_000
        read = sum(len(getattr(m, "text", "") or getattr(m, "content", "")) for m in request.messages)
        usage = Usage(100 + read // 3, 0, 0, written, 0, 1)
        if request.tool_choice == "none":
            return says("My best answer.", usage=usage)
        return calls(call("add", a=next(numbers), b=0), usage=usage)

    limits = Limits(max_cost_usd=1.0)
    dialogue = await converse(ScriptedProvider(turn), add, limits=limits, profile=DEAR)
    check_final(dialogue, "max_cost_usd")
    assert 0.5 < dialogue.end.data["cost_usd"] <= 1.0


async def test_run_ends_without_an_answer_when_there_is_no_money_for_one():
    dialogue = await converse([says("never asked")], add, limits=Limits(max_cost_usd=0.001), profile=DEAR)
    assert dialogue.provider.requests == []
    assert dialogue.end.limit == "max_cost_usd"
    assert "no money left" in dialogue.end.data["notes"][0]


async def test_unenforced_cost_is_said_when_the_price_is_unknown():
    dialogue = await converse([says("fine")], limits=Limits(max_cost_usd=0.000001), profile=Profile())
    assert dialogue.end.text == "fine"
    assert dialogue.end.data["cost_usd"] is None
    assert "price of this model is unknown" in dialogue.end.data["notes"][0]


async def test_unenforced_limit_is_said_when_the_provider_reports_no_usage():
    dialogue = await converse([says("fine", usage=Usage())], limits=Limits(max_tokens=10_000), profile=DEAR)
    assert "no token usage" in dialogue.end.data["notes"][0]
    assert dialogue.end.usage.requests == 1


async def test_each_call_is_priced_in_its_own_tier():
    tiers = Profile(prices=(Prices(1.0, 0.0), Prices(2.0, 0.0, above_tokens=1_000)))
    usage = Usage(900, 0, 0, 0, 0, 1)
    script = [calls(call("add", a=1, b=1), usage=usage), says("ok", usage=usage)]
    dialogue = await converse(script, add, profile=tiers)
    assert dialogue.end.data["cost_usd"] == pytest.approx(1_800 / 1e6)


async def test_model_is_warned_then_stopped_when_it_repeats_a_call():
    script = [*(calls(call("add", b=1, a=1)) for _ in range(5)), says("My best answer.")]
    dialogue = await converse(script, add, limits=Limits(repeat_warn=3, repeat_stop=5))
    check_final(dialogue, "repeat_stop")
    warned = ["Warning" in result.content for result in dialogue.told()]
    assert warned == [False, False, True, True, False]
    assert len(dialogue.of(ToolRunning)) == 4


async def test_identical_calls_count_once_when_they_are_made_in_one_turn():
    script = [calls(*(call("add", a=1, b=1) for _ in range(6))), says("ok")]
    dialogue = await converse(script, add, limits=Limits(repeat_warn=2, repeat_stop=3))
    assert dialogue.end.limit == ""
    assert len(dialogue.of(ToolRunning)) == 6


async def test_model_is_warned_then_stopped_when_one_tool_keeps_failing():
    numbers = itertools.count()

    def turn(request):
        if request.tool_choice == "none":
            return says("My best answer.")
        # Half of the failures never ran: bad arguments count as well.
        number = next(numbers)
        return calls(call("broken") if number % 2 else call("broken", x=number))

    limits = Limits(failure_warn=2, failure_stop=4)
    dialogue = await converse(ScriptedProvider(turn), broken, limits=limits)
    check_final(dialogue, "failure_stop")
    warned = ["in a row" in result.content for result in dialogue.told()]
    assert warned == [False, True, True, True]


async def test_failures_are_forgotten_when_the_tool_works_again():
    state = itertools.count()

    @tool
    def flaky(n: int) -> str:
        """Fail every second time."""
        if next(state) % 2:
            raise RuntimeError
        return "ok"

    script = [*(calls(call("flaky", n=i)) for i in range(8)), says("ok")]
    dialogue = await converse(script, flaky, limits=Limits(failure_stop=2))
    assert dialogue.end.limit == ""


async def test_calls_are_refused_when_the_final_turn_makes_them_all_the_same():
    journal = Recorder()
    script = [calls(call("add", a=1, b=1)), says("My best answer.", call("add", a=2, b=2))]
    dialogue = await converse(script, add, limits=Limits(max_steps=1), journal=journal)
    check_final(dialogue, "max_steps")
    assert len(dialogue.of(ToolRunning)) == 1
    assert journal.results["call_2"].error_code == "limit"


async def test_limits_count_earlier_attempts_when_a_run_is_resumed():
    past: list[ModelMessage] = [UserMessage("Hello")]
    for number in range(2):
        made = ToolCall(f"old_{number}", "add", {"a": 1, "b": 1}, "{}")
        turn = Turn("scripted", "m", tool_calls=(made,), stop="tools", usage=Usage(9, 0, 0, 1))
        past += [turn, ToolResult(made.id, "add", "2")]
    dialogue = await converse(
        [calls(call("add", a=1, b=1)), says("My best answer.")],
        add,
        history=past,
        first_step=2,
        usage=Usage(18, 0, 0, 2, 0, 2),
        limits=Limits(max_steps=3, max_tool_calls=3, repeat_warn=3),
    )
    check_final(dialogue, "max_steps")
    assert "made 3 times" in dialogue.told()[-1].content
    assert dialogue.end.usage.requests == 4
    assert dialogue.end.step == 3


def test_limits_are_refused_when_they_make_no_sense():
    with pytest.raises(ConfigurationError, match="max_parallel_tools"):
        Limits(max_parallel_tools=0)
    with pytest.raises(ConfigurationError, match="max_seconds"):
        Limits(max_seconds=-1)
    assert Limits(max_seconds=100, final_seconds=20).total_seconds == 120
    assert Limits(max_seconds=None).total_seconds is None


async def test_deadline_is_given_to_the_provider_as_its_timeout():
    dialogue = await converse([says("ok")], limits=Limits(max_seconds=50, final_seconds=10))
    assert 59 < dialogue.provider.requests[0].timeout_s <= 60
    await asyncio.sleep(0)
