"""Histories that are joined: nothing twice, no result without its call, no call of the past without a result."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolloop.history import histories_merge, history_merge
from toolloop.media import Media
from toolloop.messages import ModelMessage, ToolCall, ToolResult, Turn, UserMessage, message_from_json

IMAGE = Media("image/png", data="aGk=")


def asks(*ids: str, text: str = "") -> ModelMessage:
    made = tuple(ToolCall(call_id, "add", {}, "{}") for call_id in ids)
    return Turn("p", "m", text=text, tool_calls=made, stop="tools" if made else "end")


def result(call_id: str, content: str = "ok") -> ModelMessage:
    return ToolResult(call_id, "add", content)


HI: ModelMessage = UserMessage("Hi")
BYE: ModelMessage = UserMessage("Bye")
DONE = asks(text="Done.")


def test_what_a_later_history_repeats_is_taken_once():
    first = [HI, asks("a"), result("a"), DONE]
    reloaded = [message_from_json(json.loads(json.dumps(m.to_json()))) for m in first]
    assert histories_merge(first, [*reloaded, BYE]) == [*first, BYE]
    assert histories_merge(first, [DONE, BYE]) == [*first, BYE]
    assert histories_merge(first, first) == first
    assert histories_merge(first, [BYE]) == [*first, BYE]


def test_turn_that_two_histories_hold_is_left_out_with_its_results():
    first = [HI, asks("a"), result("a")]
    assert histories_merge(first, [BYE, asks("a"), result("a", "again"), DONE]) == [*first, BYE, DONE]


def test_same_ids_in_turns_of_one_history_are_kept_apart():
    history = [HI, asks("a"), result("a", "one"), BYE, asks("a"), result("a", "two"), DONE]
    assert histories_merge(history) == history


def test_results_without_a_call_and_second_results_are_left_out():
    history = [result("x"), HI, asks("a"), result("a"), result("a", "twice"), result("y"), DONE]
    assert histories_merge(history) == [HI, asks("a"), result("a"), DONE]


def test_late_results_are_moved_behind_their_turn_in_call_order():
    history = [HI, asks("a", "b"), result("b"), BYE, result("a"), DONE]
    assert histories_merge(history) == [HI, asks("a", "b"), result("a"), result("b"), BYE, DONE]


def test_call_of_the_past_without_a_result_gets_an_error_and_the_open_end_stays():
    merged = histories_merge([HI, asks("a", "b"), result("b")], [BYE])
    lost = merged[2]
    assert isinstance(lost, ToolResult)
    assert (lost.call_id, lost.error_code) == ("a", "lost")
    open_end = [HI, asks("a", "b"), result("b")]
    assert histories_merge(open_end) == open_end


def test_user_messages_are_joined_with_their_files_and_notices_stay_apart():
    shown = UserMessage("", parts=(IMAGE,))
    assert history_merge([shown, HI]) == [UserMessage("Hi", parts=(IMAGE,))]
    assert history_merge([HI, UserMessage(" "), BYE]) == [UserMessage("Hi\n\nBye")]
    notice = UserMessage("limit", notice=True)
    assert history_merge([HI, notice, BYE]) == [HI, notice, BYE]
    assert histories_merge([HI], [BYE]) == [UserMessage("Hi\n\nBye")]


MESSAGES = st.lists(
    st.one_of(
        st.sampled_from([HI, BYE, DONE, UserMessage("")]),
        st.lists(st.sampled_from("abc"), min_size=1, max_size=3, unique=True).map(lambda ids: asks(*ids)),
        st.sampled_from("abcd").map(result),
    ),
    max_size=12,
)


@given(st.lists(MESSAGES, max_size=3))
def test_any_histories_become_one_that_a_provider_takes(histories: list[list[ModelMessage]]):
    merged = histories_merge(*histories)
    waiting: list[str] = []
    for message in merged:
        if isinstance(message, ToolResult):
            assert message.call_id in waiting, "a result follows its call"
            waiting.remove(message.call_id)
            continue
        assert waiting == [], "all calls are answered before anything else follows"
        waiting = [call.id for call in message.tool_calls] if isinstance(message, Turn) else []
    assert histories_merge(merged) == merged, "merging what is merged changes nothing"


@pytest.mark.parametrize("histories", [(), ([],), ([], [])])
def test_nothing_merges_to_nothing(histories: tuple[list[ModelMessage], ...]):
    assert histories_merge(*histories) == []
