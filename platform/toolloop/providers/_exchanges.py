"""A history cut into exchanges: a question, the turns that followed, and the results of their calls."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

from toolloop.errors import BadRequest
from toolloop.messages import ModelMessage, ToolCall, ToolResult, Turn, UserMessage


@dataclass(slots=True)  # not frozen: a long history makes hundreds, for three times the price
class Exchange:
    """A turn with the results of its calls, in call order.

    Attributes:
        calls: the calls that have a result; a call without one is left out, as every provider refuses a history
            with an unanswered call.
        whole: every call of the turn is answered, so its native form may be echoed.
    """

    turn: Turn
    calls: tuple[ToolCall, ...]
    results: tuple[ToolResult, ...]
    whole: bool


def exchanges(messages: Sequence[ModelMessage]) -> Iterator[UserMessage | Exchange]:
    """Cut a history into user messages and exchanges.

    Raises:
        BadRequest: when a result answers no call of the turn before it.
    """
    index = 0
    while index < len(messages):
        message = messages[index]
        index += 1
        if isinstance(message, UserMessage):
            yield message
        elif isinstance(message, Turn):
            answers: dict[str, ToolResult] = {}
            while index < len(messages):
                result = messages[index]
                if not isinstance(result, ToolResult):
                    break
                answers[result.call_id] = result
                index += 1
            yield _exchange(message, answers)
        else:
            raise BadRequest(_ORPHAN.format(message.call_id))


def native_items(turn: Turn, *, provider: str, model: str, account: str) -> list[dict[str, Any]] | None:
    """Return the turn's native items if this provider, model and account wrote them, else None."""
    if turn.native and (turn.provider, turn.model, turn.account) == (provider, model, account):
        return turn.native
    return None


_ORPHAN: Final = "The history holds a result for call {!r}, which the turn before it did not make."


def _exchange(turn: Turn, answers: dict[str, ToolResult]) -> Exchange:
    calls = turn.tool_calls
    if not answers:
        return Exchange(turn, (), (), whole=not calls)
    if len(calls) == len(answers) == 1 and calls[0].id in answers:
        return Exchange(turn, calls, tuple(answers.values()), whole=True)
    known = {call.id for call in calls}
    for call_id in answers:
        if call_id not in known:
            raise BadRequest(_ORPHAN.format(call_id))
    whole = all(call.id in answers for call in calls)
    if not whole:
        calls = tuple(call for call in calls if call.id in answers)
    return Exchange(turn, calls, tuple([answers[call.id] for call in calls]), whole)
