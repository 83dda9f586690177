"""A history that outgrows the model is cut so that calls keep their results and caches their prefix."""

from __future__ import annotations

import itertools
import random
from typing import Any

import pytest

from tests.toolloop.helpers import converse
from tests.walked import each
from toolloop.compaction import Compaction, history_compact
from toolloop.errors import ConfigurationError, ContextTooLong
from toolloop.limits import Limits
from toolloop.messages import ModelMessage, ToolCall, ToolResult, Turn, UserMessage
from toolloop.providers.profiles import Profile
from toolloop.providers.scripted import call, calls, fails, says
from toolloop.tokens import Usage
from toolloop.tools import tool
from toolloop.usage import text_tokens

NATIVE = [{"type": "thinking", "signature": "s"}]


def exchange(n: int, size: int, results: int = 1) -> list[ModelMessage]:
    made = tuple(ToolCall(f"c{n}.{i}", "look", {"n": n}, '{"n": 1}') for i in range(results))
    turn = Turn("p", "m", f"turn {n}", tool_calls=made, stop="tools", native=NATIVE)
    return [turn, *(ToolResult(c.id, "look", f"{n}" * size, payload={"n": n}) for c in made)]


def conversation(*sizes: int) -> list[ModelMessage]:
    history: list[ModelMessage] = [UserMessage("The task")]
    for n, size in enumerate(sizes):
        history += exchange(n, size)
    return history


def tokens(messages: list[ModelMessage]) -> int:
    return sum(text_tokens(message) for message in messages)


def paired(messages: list[ModelMessage]) -> bool:
    open_calls: set[str] = set()
    for message in messages:
        if isinstance(message, ToolResult):
            if message.call_id not in open_calls:
                return False
            open_calls.discard(message.call_id)
            continue
        if open_calls:
            return False
        if isinstance(message, Turn):
            open_calls = {call.id for call in message.tool_calls}
    return not open_calls


async def test_nothing_changes_when_the_history_fits() -> None:
    history = conversation(100, 100)
    assert (await history_compact(history, tokens(history))).messages == history


async def test_oldest_outputs_are_cleared_first_and_nothing_is_left_out() -> None:
    history = conversation(6000, 6000, 6000, 6000)
    done = await history_compact(history, tokens(history) - 3000, keep_turns=2)
    assert (done.cleared, done.left_out) == (2, 0)
    assert len(done.messages) == len(history)
    contents = [m.content for m in done.messages if isinstance(m, ToolResult)]
    assert "6000 characters" in contents[0]
    assert contents[2:] == ["2" * 6000, "3" * 6000]
    assert [m.payload for m in done.messages if isinstance(m, ToolResult)] == [{"n": n} for n in range(4)]


async def test_native_form_stays_up_to_the_first_change_and_goes_behind_it() -> None:
    history = conversation(10, 6000, 10, 10)
    done = await history_compact(history, 100, keep_turns=1)
    assert done.left_out == 0 or done.messages[0] != history[0]
    history = conversation(10, 6000, 10, 10)
    done = await history_compact(history, tokens(history) - 1500, keep_turns=1)
    assert [m.native for m in done.messages if isinstance(m, Turn)] == [NATIVE, NATIVE, None, None]
    assert done.messages[:4] == history[:4]


async def test_old_exchanges_go_as_a_whole_and_a_note_says_so() -> None:
    history = [
        UserMessage("first question"),
        *exchange(0, 300, results=3),
        UserMessage("second question"),
        *exchange(1, 300),
        UserMessage("last question"),
        *exchange(2, 300),
    ]
    done = await history_compact(history, 250, keep_turns=1)
    note = done.messages[0]
    assert isinstance(note, UserMessage)
    assert note.notice
    assert f"{done.left_out} messages" in note.text
    assert UserMessage("last question") in done.messages
    assert paired(done.messages)
    assert all(m.native is None for m in done.messages if isinstance(m, Turn))


async def test_summary_takes_the_place_of_what_is_left_out_and_may_fail(
    caplog: pytest.LogCaptureFixture,
) -> None:
    asked: list[int] = []

    async def summarise(messages: Any) -> str:
        asked.append(len(messages))
        if len(asked) > 1:
            raise RuntimeError("no model")
        return "They looked twice."

    history = conversation(300, 300, 300)
    done = await history_compact(history, 100, keep_turns=1, summarise=summarise)
    note = done.messages[0]
    assert isinstance(note, UserMessage)
    assert "They looked twice." in note.text
    assert asked == [4]
    done = await history_compact(history, 100, keep_turns=1, summarise=summarise)
    note = done.messages[0]
    assert isinstance(note, UserMessage)
    assert "4 messages" in note.text
    assert "summarised" in caplog.text


@each("seed", range(30))
async def test_calls_keep_their_results_whatever_is_cut(seed: int) -> None:
    chosen = random.Random(seed)
    history: list[ModelMessage] = []
    for n in range(chosen.randint(1, 12)):
        if chosen.random() < 0.5:
            history.append(UserMessage(f"question {n} " * chosen.randint(1, 80)))
        history += exchange(n, chosen.choice([5, 500, 5000]), chosen.randint(1, 3))
    keep = chosen.randint(1, 5)
    done = await history_compact(history, chosen.randint(1, 4000), keep_turns=keep)
    assert paired(done.messages)
    turns = [m for m in history if isinstance(m, Turn)][-keep:]
    left = [m.text for m in done.messages if isinstance(m, Turn)]
    assert left[-len(turns) :] == [turn.text for turn in turns]
    assert tokens(done.messages) <= tokens(history) + 40
    again = await history_compact(done.messages, tokens(done.messages), keep_turns=keep)
    assert again.messages == done.messages


@tool
def read(page: int) -> str:
    """Read a page.

    Args:
        page: number.
    """
    return f"{page:02}" * 1000


async def test_long_run_stays_below_the_window_and_keeps_its_prefix_between_cuts() -> None:
    script = [calls(call("read", page=n), usage=Usage(input_total=0, output_total=0)) for n in range(30)]
    dialogue = await converse(
        [*script, says("done")],
        read,
        limits=Limits(max_steps=40),
        profile=Profile(context_window=12_000, max_output_tokens=1000),
    )
    assert dialogue.end.status == "completed"
    requests = [list(request.messages) for request in dialogue.provider.requests]
    assert all(paired(messages) for messages in requests)
    assert max(tokens(messages) for messages in requests) < 11_000
    kept = sum(later[: len(earlier)] == earlier for earlier, later in itertools.pairwise(requests))
    assert kept >= 24  # of 30: a cut makes room for several turns
    assert all(messages[0] == UserMessage("Hello") for messages in requests[:5])


async def test_history_is_cut_once_when_the_provider_finds_it_too_long() -> None:
    history = conversation(6000, 6000, 6000, 6000, 6000, 6000)
    dialogue = await converse(
        [fails(ContextTooLong("too long")), says("done")], history=[*history, UserMessage("And?")]
    )
    assert dialogue.end.text == "done"
    first, second = (list(request.messages) for request in dialogue.provider.requests)
    assert tokens(second) < 0.7 * tokens(first)


async def test_run_fails_when_cutting_does_not_help_or_is_switched_off() -> None:
    history = [*conversation(6000, 6000, 6000, 6000, 6000, 6000), UserMessage("And?")]
    dialogue = await converse([fails(ContextTooLong("too long"))] * 2, history=history)
    assert (dialogue.end.status, dialogue.end.error_code) == ("failed", "context_too_long")
    dialogue = await converse([fails(ContextTooLong("no"))], history=history, compaction=None)
    assert dialogue.end.error_code == "context_too_long"


@pytest.mark.parametrize("wrong", [{"target": 0.9}, {"trigger": 1.5}, {"keep_turns": 0}])
def test_configuration_error_when_settings_make_no_sense(wrong: dict[str, Any]) -> None:
    with pytest.raises(ConfigurationError):
        Compaction(**wrong)
