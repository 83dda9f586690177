"""Kill a run at every point where its journal is written, resume it, and compare with an unbroken one."""

from __future__ import annotations

import asyncio
import contextlib
import random
from dataclasses import dataclass, field
from typing import Any

import pytest

from tests.toolloop.helpers import add, converse
from toolloop.events import RunFinished
from toolloop.limits import Limits
from toolloop.loop import run_loop
from toolloop.loop_values import LoopInput, LoopServices
from toolloop.messages import ModelMessage, ToolCall, ToolResult, Turn, UserMessage, message_from_json
from toolloop.providers.scripted import ScriptedProvider, call, calls, says
from toolloop.tokens import Usage
from toolloop.tools import Tool, ToolContext, Toolset, tool


class Killed(BaseException):
    """The process dies here; no handler of the loop may see it as an error it can treat."""


@dataclass
class Store:
    """What survives a kill: rows as a database would hold them."""

    turns: list[dict[str, Any]] = field(default_factory=list)
    started: set[str] = field(default_factory=set)
    results: dict[str, dict[str, Any]] = field(default_factory=dict)
    writes: int = 0

    def history(self) -> list[ModelMessage]:
        messages: list[ModelMessage] = [UserMessage("Do it all.")]
        for data in self.turns:
            turn = message_from_json(data)
            assert isinstance(turn, Turn)
            messages.append(turn)
            messages += [
                message_from_json(self.results[made.id])
                for made in turn.tool_calls
                if made.id in self.results
            ]
        return messages

    def usage(self) -> Usage:
        return sum((Usage.from_json(turn["usage"]) for turn in self.turns), Usage())


class DurableJournal:
    """Writes to a store and kills the process before or after the n-th write."""

    def __init__(self, store: Store, kill_at: int = -1, *, after: bool = False) -> None:
        self.store, self.kill_at, self.after = store, kill_at, after

    def _write(self, write) -> None:
        number = self.store.writes
        self.store.writes += 1
        if number == self.kill_at and not self.after:
            raise Killed
        write()
        if number == self.kill_at:
            raise Killed

    async def turn_started(self, step: int) -> None:
        self._write(lambda: None)

    async def turn_finished(self, step: int, turn: Turn) -> None:
        assert step == len(self.store.turns)
        self._write(lambda: self.store.turns.append(turn.to_json()))

    async def call_started(self, step: int, call: ToolCall, tool: Tool | None) -> ToolResult | None:
        if call.id in self.store.results:
            found = message_from_json(self.store.results[call.id])
            assert isinstance(found, ToolResult)
            return found
        if call.id in self.store.started and tool is not None and tool.side_effects:
            lost = ToolResult(
                call.id, call.name, "Outcome unknown.", is_error=True, error_code="outcome_unknown"
            )
            self._write(lambda: self.store.results.update({call.id: lost.to_json()}))
            return lost
        self._write(lambda: self.store.started.add(call.id))
        return None

    async def call_finished(self, step: int, call: ToolCall, result: ToolResult, duration_s: float) -> None:
        self._write(lambda: self.store.results.update({call.id: result.to_json()}))


SCRIPT = [
    says("First.", call("pay", amount=1), call("look", at=1), call("pay", amount=2)),
    calls(call("look", at=2), call("nothing"), call("pay", amount="much")),
    says("Half, ", stop="pause"),
    calls(call("pay", amount=3), stop="length"),
    calls(call("pay", amount=3), call("look", at=3), call("look", at=4), call("look", at=5)),
    says("All done."),
]


def tools(paid: list[str]) -> Toolset:
    @tool(side_effects=True)
    async def pay(amount: int, ctx: ToolContext) -> str:
        """Pay."""
        paid.append(ctx.call_id)
        await asyncio.sleep(0)
        return f"paid {amount}"

    @tool
    async def look(at: int) -> str:
        """Look."""
        await asyncio.sleep(0)
        return f"seen {at}"

    return Toolset([pay, look])


async def run(store: Store, paid: list[str], kill_at: int = -1, *, after: bool = False):
    provider = ScriptedProvider(SCRIPT, by_history=True)
    last = None
    async for event in run_loop(
        LoopInput(
            model="m",
            system="",
            history=store.history(),
            toolset=tools(paid),
            first_step=len(store.turns),
            usage=store.usage(),
        ),
        LoopServices(provider=provider, journal=DurableJournal(store, kill_at, after=after)),
    ):
        last = event
    assert isinstance(last, RunFinished)
    return last


async def unbroken() -> tuple[Store, list[str], RunFinished]:
    store, paid = Store(), list[str]()
    return store, paid, await run(store, paid)


async def test_unbroken_run_is_what_the_kill_points_are_compared_with():
    store, paid, end = await unbroken()
    assert end.text == "All done."
    assert len(paid) == 3
    assert store.writes >= 20
    assert len(store.results) == 11


@pytest.mark.parametrize("after", [False, True])
async def test_answer_is_reached_and_nothing_paid_twice_when_killed_at_any_write(after):
    whole, _, expected = await unbroken()
    for kill_at in range(whole.writes):
        store, paid = Store(), list[str]()
        with pytest.raises(Killed):
            await run(store, paid, kill_at, after=after)
        end = await run(store, paid)

        where = f"killed {'after' if after else 'before'} write {kill_at}"
        assert (end.status, end.text) == ("completed", "All done."), where
        assert len(paid) == len(set(paid)), where
        assert end.usage == expected.usage, where
        assert end.step == expected.step, where
        answered = [m.call_id for m in store.history() if isinstance(m, ToolResult)]
        asked = [c["id"] for turn in store.turns for c in turn["tool_calls"]]
        assert answered == asked, where


@pytest.mark.parametrize("seed", range(20))
async def test_answer_is_reached_when_many_attempts_are_killed_at_random(seed):
    chance = random.Random(seed)
    store, paid = Store(), list[str]()
    end, attempts = None, 0
    while end is None:
        attempts += 1
        assert attempts < 200
        with contextlib.suppress(Killed):
            kill_at = store.writes + chance.randrange(8)
            end = await run(store, paid, kill_at, after=chance.random() < 0.5)
    assert end.text == "All done."
    assert len(paid) == len(set(paid))
    assert attempts > 2


async def test_only_the_missing_calls_run_when_history_ends_in_open_calls():
    made = tuple(ToolCall(f"c{i}", "add", {"a": i, "b": 1}, "{}") for i in range(3))
    history: list[ModelMessage] = [
        UserMessage("Hello"),
        Turn("scripted", "m", tool_calls=made, stop="tools"),
        ToolResult("c1", "add", "stored"),
    ]
    dialogue = await converse([says("Done.")], add, history=history, first_step=1)
    assert [r.content for r in dialogue.told()] == ["1", "stored", "3"]
    assert dialogue.events[0].step == 0
    assert dialogue.end.step == 1


async def test_no_model_is_asked_when_only_the_last_word_was_missing():
    history: list[ModelMessage] = [UserMessage("Hello"), Turn("scripted", "m", text="The answer.")]
    dialogue = await converse([], history=history, first_step=1)
    assert dialogue.end.text == "The answer."
    assert dialogue.provider.requests == []


async def test_paused_text_is_kept_when_a_run_is_resumed_between_its_halves():
    history: list[ModelMessage] = [
        UserMessage("Hello"),
        Turn("scripted", "m", text="One, ", stop="pause"),
        Turn("scripted", "m", text="two, ", stop="pause"),
    ]
    dialogue = await converse([says("three.")], history=history, first_step=2)
    assert dialogue.end.text == "One, two, three."


async def test_cut_off_calls_stay_unrun_when_resumed():
    made = ToolCall("c0", "add", {"a": 1, "b": 1}, "{}")
    history: list[ModelMessage] = [
        UserMessage("Hello"),
        Turn("scripted", "m", tool_calls=(made,), stop="length"),
    ]
    dialogue = await converse([says("ok")], add, history=history, first_step=1)
    assert dialogue.told()[0].error_code == "truncated"


async def test_stored_result_is_used_and_not_written_again_when_the_journal_has_one():
    class Knows(DurableJournal):
        async def call_started(self, step, call, tool):
            return ToolResult(call.id, call.name, "from the journal")

        async def call_finished(self, step, call, result, duration_s):
            raise AssertionError("a stored result is written again")

    script = [calls(call("add", a=1, b=1)), says("ok", expect="from the journal")]
    dialogue = await converse(script, add, journal=Knows(Store()), limits=Limits())
    assert dialogue.end.status == "completed"
