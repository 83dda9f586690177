"""The loop's ordinary life: text, tools, parallel tools, failing tools."""

from __future__ import annotations

import asyncio
import threading
import time
from contextvars import ContextVar

import pytest

from tests.patience import PATIENCE_S
from tests.toolloop.helpers import Recorder, add, broken, converse
from toolloop.events import ReasoningDelta, TextDelta, ToolFinished, ToolRunning, TurnFinished
from toolloop.history import lost_result
from toolloop.limits import Limits
from toolloop.messages import ModelMessage, ToolCall, ToolResult, Turn, UserMessage
from toolloop.providers.scripted import ScriptedCall, call, calls, says
from toolloop.tokens import Usage
from toolloop.tools import ToolContext, ToolError, ToolOutput, tool


async def test_text_streams_and_finishes_when_no_tool_is_called():
    dialogue = await converse([says(["Hel", "lo."], reasoning="hm")])

    assert [type(event) for event in dialogue.events] == [
        ReasoningDelta,
        TextDelta,
        TextDelta,
        TurnFinished,
        type(dialogue.end),
    ]
    assert dialogue.end.text == "Hello."
    assert dialogue.end.status == "completed"
    assert dialogue.end.usage == Usage(10, 0, 0, 5, 0, 1)
    assert dialogue.end.data == {"cost_usd": 0.0, "notes": []}
    assert dialogue.provider.open_streams == 0


async def test_result_reaches_the_model_when_a_tool_is_called():
    journal = Recorder()
    dialogue = await converse(
        [says("Let me add.", call("add", a=1, b=2)), says("It is 3.", expect="3")], add, journal=journal
    )

    assert dialogue.end.text == "It is 3."
    assert dialogue.end.usage.requests == 2
    assert [event.step for event in dialogue.of(TurnFinished)] == [0, 1]
    assert dialogue.of(ToolFinished)[0].result == ToolResult("call_1", "add", "3", payload=3)
    assert journal.log == [
        "turn 0 started",
        "turn 0 finished",
        "call_1 started",
        "call_1 finished",
        "turn 1 started",
        "turn 1 finished",
    ]


async def test_results_keep_call_order_when_calls_run_in_parallel():
    ended = {n: asyncio.Event() for n in (1, 2, 3)}
    after = {1: 3, 3: 2}  # the first waits for the third, that one for the second: in turn none would end

    @tool
    async def link(n: int) -> str:
        """Wait for another call."""
        if n in after:
            await ended[after[n]].wait()
            for _ in range(50):  # steps of the loop, in which it tells the end of that one
                await asyncio.sleep(0)
        ended[n].set()
        return f"was {n}"

    async with asyncio.timeout(PATIENCE_S):
        dialogue = await converse([calls(*(call("link", n=n) for n in (1, 2, 3))), says("done")], link)
    assert [result.content for result in dialogue.told()] == ["was 1", "was 2", "was 3"]
    assert [event.call.arguments["n"] for event in dialogue.of(ToolFinished)] == [2, 3, 1]


async def test_parallelism_stays_bounded_when_there_are_more_calls():
    running = peak = 0

    @tool
    async def count() -> str:
        """Count how many run."""
        nonlocal running, peak
        running += 1
        peak = max(peak, running)
        await asyncio.sleep(0.01)
        running -= 1
        return "ok"

    turn = calls(*(call("count") for _ in range(9)))
    dialogue = await converse([turn, says("done")], count, limits=Limits(max_parallel_tools=3))

    assert peak == 3
    assert len(dialogue.told()) == 9


async def test_sequential_tool_runs_alone_when_others_are_called_beside_it():
    log: list[str] = []

    @tool
    async def side(name: str) -> str:
        """Run beside others."""
        log.append(f"+{name}")
        await asyncio.sleep(0.02)
        log.append(f"-{name}")
        return name

    @tool(sequential=True)
    async def alone() -> str:
        """Run alone."""
        log.append("+alone")
        await asyncio.sleep(0.02)
        log.append("-alone")
        return "alone"

    turn = calls(call("side", name="a"), call("side", name="b"), call("alone"), call("side", name="c"))
    dialogue = await converse([turn, says("done")], side, alone)

    assert log[:2] == ["+a", "+b"]
    assert log[4:6] == ["+alone", "-alone"]
    assert log[6:] == ["+c", "-c"]
    assert [result.content for result in dialogue.told()] == ["a", "b", "alone", "c"]


async def test_other_results_survive_when_one_tool_fails():
    turn = calls(call("add", a=1, b=1), call("broken"), call("add", a=2, b=2))
    dialogue = await converse([turn, says("ok")], add, broken)

    one, failed, two = dialogue.told()
    assert (one.content, two.content) == ("2", "4")
    assert failed.is_error
    assert failed.error_code == "exception"
    assert "RuntimeError" in failed.content
    assert "hunter2" not in failed.content
    assert dialogue.end.status == "completed"


async def test_model_reads_the_message_when_a_tool_raises_tool_error():
    @tool
    def find() -> str:
        """Find."""
        raise ToolError("No such folder; try 'docs'.", severity="fatal")

    dialogue = await converse([calls(call("find")), says("ok", expect="try 'docs'")], find)

    result = dialogue.told()[0]
    assert result.error_code == "tool_error"
    assert result.payload["severity"] == "fatal"


async def test_model_is_told_the_names_when_it_calls_an_unknown_tool():
    journal = Recorder()
    dialogue = await converse(
        [calls(call("ad", a=1)), says("sorry", expect="Did you mean 'add'?")], add, journal=journal
    )
    assert dialogue.told()[0].error_code == "unknown_tool"
    assert not dialogue.of(ToolRunning)
    assert "call_1 finished" in journal.log


async def test_tool_does_not_run_when_its_arguments_do_not_fit():
    ran = []

    @tool
    def record(count: int, mode: str = "a") -> str:
        """Record."""
        ran.append(count)
        return "ok"

    turn = calls(
        call("record", count="five"),
        call("record", mode="b"),
        call("record", count=1, mod="x"),
        ScriptedCall("record", raw='{"count": 1'),
        ScriptedCall("record", raw="[1]"),
        call("record", count=7),
    )
    dialogue = await converse([turn, says("ok")], record)

    results = dialogue.told()
    assert ran == [7]
    assert [r.is_error for r in results] == [True] * 5 + [False]
    assert 'count: expected integer, got string "five"' in results[0].content
    assert "'count' is required and missing" in results[1].content
    assert "did you mean 'mode'?" in results[2].content
    assert "no JSON object" in results[3].content
    assert "it is a list" in results[4].content
    # A model that hears "N times in a row" after one turn of mistakes would be told something false.
    assert not any("in a row" in result.content for result in results)


@pytest.mark.parametrize("stop", ["length", "context"])
async def test_calls_do_not_run_when_the_turn_was_cut_off(stop):
    ran = []

    @tool
    def write(text: str) -> str:
        """Write."""
        ran.append(text)
        return "ok"

    journal = Recorder()
    dialogue = await converse(
        [
            calls(call("write", text="half a sent"), stop=stop),
            says("I see.", expect="cut off before it was complete"),
        ],
        write,
        journal=journal,
    )

    assert ran == []
    assert dialogue.told()[0].error_code == "truncated"
    assert "call_1 started" not in journal.log
    assert journal.results["call_1"].is_error
    assert dialogue.end.status == "completed"


async def test_stop_reason_is_told_when_text_was_cut_off():
    dialogue = await converse([says("To be contin", stop="length")])
    assert (dialogue.end.status, dialogue.end.stop) == ("completed", "length")
    assert dialogue.end.text == "To be contin"


async def test_calls_do_not_run_when_the_model_refused():
    ran = []

    @tool
    def act() -> str:
        """Act."""
        ran.append(1)
        return "ok"

    dialogue = await converse([says("No.", call("act"), stop="refusal")], act)
    assert ran == []
    assert dialogue.end.stop == "refusal"


async def test_turn_is_sent_back_as_it_is_when_the_provider_pauses():
    native = [{"type": "server_tool_use", "id": "x", "odd": "\x00é"}]
    dialogue = await converse([says("First half, ", stop="pause", native=native), says("second half.")])

    last = dialogue.provider.requests[1].messages[-1]
    assert isinstance(last, Turn)
    assert last.native == native
    assert dialogue.end.text == "First half, second half."


async def test_context_reaches_the_tool_and_never_the_model():
    @tool
    def whoami(ctx: ToolContext, loud: bool = False) -> str:
        """Tell who asks."""
        return f"{ctx.data['user']} via {ctx.call_id} in step {ctx.step}"

    dialogue = await converse(
        [calls(call("whoami")), says("ok", expect="ann via call_1 in step 0")],
        whoami,
        context={"user": "ann"},
    )
    assert list(dialogue.provider.requests[0].tools[0].parameters["properties"]) == ["loud"]


async def test_payload_stays_with_the_application_when_output_is_split():
    @tool
    def search() -> ToolOutput:
        """Search."""
        return ToolOutput("one hit", payload={"rows": [1, 2]})

    dialogue = await converse([calls(call("search")), says("ok", expect="one hit")], search)
    assert dialogue.of(ToolFinished)[0].result.payload == {"rows": [1, 2]}


async def test_output_is_cut_with_a_marker_and_payload_stays_whole_when_it_is_too_long():
    @tool
    def much() -> ToolOutput:
        """Say much."""
        return ToolOutput("x" * 500, payload="x" * 500)

    dialogue = await converse(
        [calls(call("much")), says("ok")], much, limits=Limits(max_tool_output_chars=100)
    )
    result = dialogue.told()[0]
    assert result.content.startswith("x" * 100 + "\n[... cut: the first 100 of 500")
    assert len(result.payload) == 500


async def test_blocking_tool_leaves_the_event_loop_free_and_keeps_context_variables():
    tenant: ContextVar[str] = ContextVar("tenant", default="")
    ticks = 0

    @tool(blocking=True)
    def slow() -> str:
        """Block."""
        time.sleep(0.1)
        return f"{tenant.get()} {threading.current_thread() is threading.main_thread()}"

    async def tick() -> None:
        nonlocal ticks
        while True:
            await asyncio.sleep(0.005)
            ticks += 1

    tenant.set("acme")
    ticker = asyncio.create_task(tick())
    dialogue = await converse([calls(call("slow")), says("ok", expect="acme False")], slow)
    ticker.cancel()
    assert ticks > 5
    assert dialogue.end.status == "completed"


async def test_tool_is_given_up_when_it_takes_too_long():
    seen: list[ToolContext] = []

    @tool(timeout_s=0.05, blocking=True)
    def stuck(ctx: ToolContext) -> str:
        """Hang in a thread."""
        seen.append(ctx)
        ctx.cancelled.wait(PATIENCE_S)
        return "late"

    @tool(timeout_s=None)
    async def lazy() -> str:
        """Hang."""
        await asyncio.Event().wait()
        return "late"

    async with asyncio.timeout(PATIENCE_S):
        dialogue = await converse(
            [calls(call("stuck"), call("lazy")), says("ok")], stuck, lazy, limits=Limits(tool_timeout_s=0.1)
        )
    assert [r.error_code for r in dialogue.told()] == ["timeout", "timeout"]
    assert seen[0].cancelled.is_set()


async def test_timeout_error_of_the_tool_itself_is_no_timeout_of_ours():
    @tool
    async def dial() -> str:
        """Dial."""
        raise TimeoutError("the line is dead")

    dialogue = await converse([calls(call("dial")), says("ok")], dial)
    assert dialogue.told()[0].error_code == "exception"


async def test_run_goes_on_when_a_tool_cancels_itself():
    @tool
    async def odd() -> str:
        """Cancel from within."""
        raise asyncio.CancelledError

    dialogue = await converse([calls(call("odd")), says("ok")], odd)
    assert dialogue.told()[0].error_code == "cancelled"
    assert dialogue.end.status == "completed"


async def test_missing_results_of_the_past_are_filled_when_history_has_holes():
    torn = Turn("scripted", "m", tool_calls=tuple(ToolCall(i, "add", {"a": 1, "b": 3}) for i in "ab"))
    history: list[ModelMessage] = [UserMessage("one"), torn, ToolResult("b", "add", "4"), UserMessage("two")]
    dialogue = await converse([says("ok")], add, history=history)

    sent = dialogue.provider.requests[0].messages
    assert [getattr(m, "call_id", "") for m in sent] == ["", "", "a", "b", ""]
    assert sent[2] == lost_result(ToolCall("a", "add", {}))
