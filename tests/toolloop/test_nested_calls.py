"""Tools that call tools: the same checks, approvals, journal and limits as calls of the model."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from tests.patience import PATIENCE_S
from tests.toolloop.helpers import Recorder, add, broken, converse
from toolloop.deferred import ParkCall, PendingCall
from toolloop.errors import ConfigurationError
from toolloop.limits import Limits
from toolloop.messages import ModelMessage, ToolCall, ToolResult, UserMessage
from toolloop.providers.scripted import call, calls, says
from toolloop.tools import Tool, ToolContext, tool
from toolloop.tools.classes import ToolClass


@tool
async def outer(plan: list[list[Any]], ctx: ToolContext) -> list[str]:
    """Call others one after the other.

    Args:
        plan: name and arguments of each.
    """
    found = [await ctx.call(name, arguments) for name, arguments in plan]
    return [result.content for result in found]


@tool
async def together(plan: list[list[Any]], ctx: ToolContext) -> list[str]:
    """Call others at once.

    Args:
        plan: name and arguments of each.
    """
    found = await asyncio.gather(*(ctx.call(name, arguments) for name, arguments in plan))
    return [result.content for result in found]


async def run(*plan: list[Any], caller: Tool = outer, tools: tuple[Tool, ...] = (), **settings: Any) -> Any:
    script = [calls(call(caller.name, plan=list(plan))), says("done")]
    return await converse(script, caller, add, broken, *tools, **settings)


async def test_nested_calls_are_checked_run_and_journalled() -> None:
    journal = Recorder()
    dialogue = await run(
        ["add", {"a": 1, "b": 2}], ["add", {"a": "x", "b": 2}], ["nope", {}], ["broken", {}], journal=journal
    )
    good, bad, unknown, failed = json.loads(dialogue.told()[-1].content)
    assert good == "3"
    assert "expected integer" in bad
    assert "no tool 'nope'" in unknown
    assert "hunter2" not in failed
    assert journal.log[2:8] == [
        "call_1 started",
        "call_1.1 started",
        "call_1.1 finished",
        "call_1.2 finished",
        "call_1.3 finished",
        "call_1.4 started",
    ]
    assert dialogue.end.tools["add"] == {"calls": 2, "errors": 1, "seconds": pytest.approx(0, abs=1)}
    assert "nope" not in dialogue.end.tools


async def test_nested_calls_count_towards_the_limit() -> None:
    dialogue = await run(*(["add", {"a": n, "b": 0}] for n in range(5)), limits=Limits(max_tool_calls=3))
    contents = json.loads(dialogue.told(1)[-1].content)
    assert contents[:2] == ["0", "1"]
    assert "may make 3 tool calls" in contents[2]
    assert dialogue.end.limit == "max_tool_calls"


async def test_depth_is_limited_when_a_tool_calls_itself() -> None:
    @tool
    async def again(ctx: ToolContext) -> str:
        """Call yourself."""
        return (await ctx.call("again", {})).content + f"<{ctx.depth}"

    dialogue = await converse(
        [calls(call("again")), says("done")], again, limits=Limits(max_call_depth=3, repeat_stop=99)
    )
    assert dialogue.told()[-1].content.endswith("3 deep.<3<2<1<0")


async def test_parallelism_of_nested_calls_is_bounded_and_sequential_ones_run_alone() -> None:
    running: list[str] = []
    seen: list[tuple[str, ...]] = []

    def make(name: str, sequential: bool) -> Tool:
        async def work(n: int) -> str:
            running.append(name)
            seen.append(tuple(running))
            await asyncio.sleep(0.005)
            running.remove(name)
            return name

        schema = {"type": "object", "properties": {"n": {"type": "integer"}}}
        return Tool(name, "Work.", schema, work, sequential=sequential)

    plan = [["free", {"n": n}] for n in range(5)] + [["alone", {"n": n}] for n in range(3)]
    dialogue = await run(
        *plan,
        caller=together,
        tools=(make("free", False), make("alone", True)),
        limits=Limits(max_parallel_tools=2),
    )
    assert json.loads(dialogue.told()[-1].content) == ["free"] * 5 + ["alone"] * 3
    assert max(len(group) for group in seen) == 2
    assert all(group == ("alone",) for group in seen if "alone" in group)


async def test_nested_call_parks_the_run_and_earlier_calls_are_not_repeated() -> None:
    sent: list[str] = []

    @tool(side_effects=True)
    def note(text: str) -> str:
        """Note.

        Args:
            text: what.
        """
        sent.append(text)
        return f"noted {text}"

    @tool(side_effects=True, needs_approval=True)
    def send(text: str) -> str:
        """Send.

        Args:
            text: what.
        """
        sent.append(f"sent {text}")
        return f"sent {text}"

    plan = (["note", {"text": "a"}], ["send", {"text": "b"}], ["send", {"text": "c"}])
    history: list[ModelMessage] = [UserMessage("Hello")]
    journal = Recorder()
    first = await run(*plan, tools=(note, send), journal=journal)
    assert first.end.status == "parked"
    assert sent == ["a"]
    history += journal.turns
    for expected in (["a", "sent b"], ["a", "sent b", "sent c"]):
        end = first.end
        pending = PendingCall.from_json(json.loads(json.dumps(end.pending[0].to_json())))
        assert pending.call.id == "call_1"
        assert 'send {"text"' in pending.reason
        script = [says("done")]
        first = await converse(
            script, outer, note, send, history=history, first_step=1, decisions={"call_1": pending.approve()}
        )
        assert sent == expected
    assert first.end.status == "completed"
    assert json.loads(first.told()[-1].content) == ["noted a", "sent b", "sent c"]


async def test_approval_does_not_pass_to_another_call_when_a_tool_calls_otherwise_the_second_time() -> None:
    sent: list[int] = []

    @tool(side_effects=True, needs_approval=True)
    def send(amount: int) -> str:
        """Send.

        Args:
            amount: how much.
        """
        sent.append(amount)
        return "sent"

    amounts = [5, 5000]

    @tool
    async def fickle(ctx: ToolContext) -> str:
        """Send another amount each time."""
        return (await ctx.call("send", {"amount": amounts.pop(0)})).content

    journal = Recorder()
    first = await converse([calls(call("fickle"))], fickle, send, journal=journal)
    second = await converse(
        [says("done")],
        fickle,
        send,
        history=[UserMessage("Hello"), *journal.turns],
        first_step=1,
        decisions={"call_1": first.end.pending[0].approve()},
    )
    assert second.end.status == "parked"
    assert "5000" in second.end.pending[0].reason
    assert sent == []


async def test_rejected_nested_call_is_an_error_the_tool_can_handle() -> None:
    send = Tool("send", "Send.", add.parameters, add.function, needs_approval=True)
    plan = (["send", {"a": 1, "b": 1}], ["add", {"a": 2, "b": 2}])
    journal = Recorder()
    first = await run(*plan, tools=(send,), journal=journal)
    pending = first.end.pending[0]
    second = await converse(
        [says("done")],
        outer,
        add,
        send,
        history=[UserMessage("Hello"), *journal.turns],
        first_step=1,
        decisions={"call_1": pending.reject("Not today.")},
    )
    rejected, sum_ = json.loads(second.told()[-1].content)
    assert "Not today." in rejected
    assert sum_ == "4"


async def test_running_siblings_end_and_are_kept_when_a_nested_call_parks() -> None:
    done: list[int] = []

    @tool(side_effects=True)
    async def slow(n: int) -> int:
        """Take a while.

        Args:
            n: number.
        """
        await asyncio.sleep(0.02)
        done.append(n)
        return n

    @tool(needs_approval=True)
    def send() -> str:
        """Send."""
        return "sent"

    journal = Recorder()
    first = await run(["slow", {"n": 1}], ["send", {}], caller=together, tools=(slow, send), journal=journal)
    assert first.end.status == "parked"
    assert done == [1]
    pending = PendingCall.from_json(json.loads(json.dumps(first.end.pending[0].to_json())))
    second = await converse(
        [says("done")],
        together,
        slow,
        send,
        history=[UserMessage("Hello"), *journal.turns],
        first_step=1,
        decisions={"call_1": pending.approve()},
    )
    assert json.loads(second.told()[-1].content) == ["1", "sent"]
    assert done == [1]


async def test_nested_calls_are_cancelled_and_journalled_when_the_run_stops() -> None:
    stop, cancelled = asyncio.Event(), asyncio.Event()

    @tool
    async def hang() -> str:
        """Never end."""
        stop.set()
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            cancelled.set()
            raise
        return ""

    journal = Recorder()
    dialogue = await run(["hang", {}], caller=together, tools=(hang,), stop=stop, journal=journal)
    assert dialogue.end.status == "stopped"
    assert cancelled.is_set()
    assert {i: r.error_code for i, r in journal.results.items()} == {
        "call_1": "cancelled",
        "call_1.1": "cancelled",
    }


async def test_background_calls_do_not_outlive_the_tool_that_made_them() -> None:
    tasks: list[asyncio.Task[Any]] = []

    @tool
    async def hang() -> str:
        """Never end."""
        await asyncio.sleep(60)
        return ""

    @tool
    async def careless(ctx: ToolContext) -> str:
        """Leave a call behind."""
        tasks.append(asyncio.create_task(ctx.call("hang", {})))
        await asyncio.sleep(0.01)
        return "gone"

    await converse([calls(call("careless")), says("done")], careless, hang)
    assert tasks[0].cancelled()


async def test_run_ends_with_the_journals_error_when_a_nested_call_cannot_be_recorded() -> None:
    class Failing(Recorder):
        async def call_started(self, step: int, call: ToolCall, tool: Tool | None) -> ToolResult | None:
            if call.id == "call_1.1":
                raise OSError("disk full")
            return await super().call_started(step, call, tool)

    with pytest.raises(OSError, match="disk full"):
        await run(["add", {"a": 1, "b": 2}], journal=Failing())


async def test_run_ends_with_the_journals_error_when_parking_cannot_be_recorded() -> None:
    class Failing(Recorder):
        async def call_parked(self, step: int, pending: PendingCall) -> None:
            raise OSError("disk full")

    @tool
    async def parks() -> str:
        """Park."""
        raise ParkCall("approval", "please")

    with pytest.raises(OSError, match="disk full"):
        await run(["parks", {}], tools=(parks,), journal=Failing())


async def test_run_ends_with_the_journals_error_when_it_fails_while_the_run_stops() -> None:
    stop = asyncio.Event()

    class Failing(Recorder):
        async def call_finished(
            self, step: int, call: ToolCall, result: ToolResult, duration_s: float
        ) -> None:
            if call.id == "call_1.1":
                raise OSError("disk full")

    @tool
    async def hang() -> str:
        """Never end."""
        stop.set()
        await asyncio.sleep(60)
        return ""

    with pytest.raises(OSError, match="disk full"):
        await run(["hang", {}], tools=(hang,), stop=stop, journal=Failing())


async def test_stop_does_not_wait_for_a_nested_call_that_resists_its_cancellation() -> None:
    stop, release = asyncio.Event(), asyncio.Event()

    @tool
    async def stubborn() -> str:
        """Ignore cancellations."""
        stop.set()
        while not release.is_set():
            try:
                await release.wait()
            except asyncio.CancelledError:
                continue
        return ""

    async with asyncio.timeout(PATIENCE_S):
        dialogue = await run(["stubborn", {}], caller=together, tools=(stubborn,), stop=stop)
    assert dialogue.end.status == "stopped"
    release.set()
    await asyncio.sleep(0.01)


async def test_stored_result_is_used_when_the_journal_has_one_for_a_nested_call() -> None:
    class Knowing(Recorder):
        async def call_started(self, step: int, call: ToolCall, tool: Tool | None) -> ToolResult | None:
            if call.id == "call_1.1":
                return ToolResult(call.id, call.name, "from before")
            return None

    dialogue = await run(["add", {"a": 1, "b": 2}], journal=Knowing())
    assert json.loads(dialogue.told()[-1].content) == ["from before"]


async def test_tool_cannot_call_others_outside_of_a_run() -> None:
    with pytest.raises(ConfigurationError, match="inside a run"):
        await ToolContext().call("add", {})


class SearchNotes(ToolClass):
    """Search the notes of one workspace."""

    tags = ("read",)
    group = "notes"

    def __init__(self, notes: list[str]) -> None:
        self.notes = notes

    def run(self, query: str, ctx: ToolContext, limit: int = 3) -> list[str]:
        """Search.

        Args:
            query: text in the note.
            limit: most notes.
        """
        return [note for note in self.notes if query in note][:limit]

    def mock(self, query: str, ctx: ToolContext, limit: int = 3) -> list[str]:
        return ["a mock"]


async def test_class_is_a_tool_with_its_own_state() -> None:
    made = SearchNotes(["one", "two", "three"]).as_tool()
    assert (made.name, made.group, made.tags, made.description) == (
        "search_notes",
        "notes",
        ("read",),
        "Search.",
    )
    assert list(made.parameters["properties"]) == ["query", "limit"]
    script = [calls(call("search_notes", query="t")), says("done")]
    assert (await converse(script, made)).told()[-1].payload == ["two", "three"]
    assert (await converse(script, made, mock_tools=True)).told()[-1].payload == ["a mock"]


def test_definition_fails_when_a_tool_class_has_no_run() -> None:
    class Empty(ToolClass):
        """Nothing."""

    with pytest.raises(ConfigurationError, match="no method run"):
        Empty().as_tool()
