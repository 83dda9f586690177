"""Make a history fit for a model call, join histories, and find where a killed run has to go on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from toolloop.messages import ModelMessage, ToolCall, ToolResult, Turn, UserMessage
from toolloop.tools.runtime import error_result


@dataclass(frozen=True, slots=True)
class Opened:
    """A history taken apart where it stands.

    Attributes:
        messages: the history, each call of it answered, except those of ``turn``.
        turn: the last turn when some of its calls are not answered, else None; it is the last of ``messages``.
        answered: results of ``turn`` that are there already, by call id.
    """

    messages: list[ModelMessage]
    turn: Turn | None
    answered: dict[str, ToolResult]


def lost_result(call: ToolCall) -> ToolResult:
    """Answer a call of the past of which nobody knows how it ended."""
    return error_result(call, "lost", f"No result of {call.name} was recorded.", severity="fatal")


def history_open(history: Sequence[ModelMessage]) -> Opened:
    """Split a history at its open end.

    A provider refuses a history with an unanswered call, so a turn in the middle whose results are missing (an earlier
    run was killed and never resumed) gets error results; results are put into call order.
    """
    messages: list[ModelMessage] = []
    index = 0
    while index < len(history):
        message = history[index]
        index += 1
        messages.append(message)
        if not isinstance(message, Turn) or not message.tool_calls:
            continue
        answered: dict[str, ToolResult] = {}
        while index < len(history):
            result = history[index]
            if not isinstance(result, ToolResult):
                break
            answered[result.call_id] = result
            index += 1
        if index == len(history) and any(c.id not in answered for c in message.tool_calls):
            return Opened(messages, message, answered)
        messages.extend(answered.get(c.id) or lost_result(c) for c in message.tool_calls)
    return Opened(messages, None, {})


def own_turns(history: Sequence[ModelMessage], steps: int) -> list[ModelMessage]:
    """Return the tail of a history that holds the last ``steps`` turns and their results: this run's own part."""
    if steps <= 0:
        return []
    seen = 0
    for index in range(len(history) - 1, -1, -1):
        seen += isinstance(history[index], Turn)
        if seen == steps:
            return list(history[index:])
    return list(history)


def is_answer(turn: Turn) -> bool:
    """Tell whether a turn is a complete answer: without calls, and neither refused nor cut off."""
    return turn.stop == "end" and not turn.tool_calls


def history_merge(history: Sequence[ModelMessage]) -> list[ModelMessage]:
    """Join user messages that follow each other, and leave out empty ones; some chat templates demand it.

    What the loop added (notices) stays apart from what a person said.
    """
    merged: list[ModelMessage] = []
    for message in history:
        last = merged[-1] if merged else None
        if isinstance(message, UserMessage):
            if not message.text.strip() and not message.parts:
                continue
            if isinstance(last, UserMessage) and last.notice == message.notice:
                text = "\n\n".join(text for text in (last.text, message.text) if text.strip())
                merged[-1] = UserMessage(text, message.notice, (*last.parts, *message.parts))
                continue
        merged.append(message)
    return merged


def histories_merge(*histories: Sequence[ModelMessage]) -> list[ModelMessage]:
    """Join histories into one that every provider takes.

    What a later history repeats of the end of an earlier one is taken once; so is a turn with calls that two of them hold.
    Results stand behind their turn in call order: those that came late are moved there, second ones and those without a
    call are left out, and calls of the past without a result get an error result. The calls of the last turn may stay
    open. User messages that follow each other are joined.
    """
    groups: list[tuple[ModelMessage, list[ModelMessage]]] = []
    unanswered: dict[str, list[ModelMessage]] = {}
    joined: list[ModelMessage] = []
    for history in histories:
        before = list(joined)
        for message in history[_overlap(before, history) :]:
            joined.append(message)
            if isinstance(message, ToolResult):
                results = unanswered.pop(message.call_id, None)
                if results is not None:
                    results.append(message)
                continue
            results = []
            if isinstance(message, Turn) and message.tool_calls:
                # Ids are unique within a turn only: some providers give none, and models write theirs again.
                is_known = message in before
                unanswered = {} if is_known else {c.id: results for c in message.tool_calls}
                if is_known:
                    continue
            groups.append((message, results))
    opened = history_open([m for message, results in groups for m in (message, *results)])
    return history_merge([*opened.messages, *opened.answered.values()])


def _overlap(before: Sequence[ModelMessage], after: Sequence[ModelMessage]) -> int:
    """Return how many messages at the start of ``after`` are the end of ``before``."""
    for size in range(min(len(before), len(after)), 0, -1):
        if list(before[-size:]) == list(after[:size]):
            return size
    return 0
