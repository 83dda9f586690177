"""What was said in a row's conversation before its question: for those who are asked, and for those who judge. Pure.

A row's ``messages`` are a whole trace, as a rule with the reference answer as its end. Its last message by the user is the
question, and nothing from there on is shown to anybody who is asked: it is what they shall find.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from apps.datasets.records.parts import TraceMessage
from apps.datasets.records.record import Record
from toolloop.messages import Turn, UserMessage
from toolloop.providers.extractive import search_query

_OF_ROW = "dataset"


@dataclass(frozen=True, slots=True)
class EarlierMessage:
    """What one side said."""

    role: Literal["user", "assistant"]
    text: str


def said_before(row: Record) -> list[EarlierMessage]:
    """Return what user and assistant said before the question, in turn, beginning with the user.

    Answers count as they were given: thoughts beside tool calls, their results and the instructions of whoever answered
    then are left out, as is a greeting before the user's first words. Messages of one side in a row are one.
    """
    found: list[EarlierMessage] = []
    for message in row.messages[: _asked_at(row)]:
        text = message.content.strip()
        if message.role not in ("user", "assistant") or message.tool_calls or not text:
            continue
        if found and found[-1].role == message.role:
            found[-1] = EarlierMessage(found[-1].role, f"{found[-1].text}\n\n{text}")
        elif found or message.role == "user":
            found.append(EarlierMessage(message.role, text))
    return found


def history_of(row: Record, question: str = "") -> list[UserMessage | Turn]:
    """Return the conversation up to the question as the loop takes it, one side after the other.

    Args:
        question: asked in place of the row's own words.
    """
    said = said_before(row)
    asked = question or row.question
    if said and said[-1].role == "user":  # Nobody answered before the user went on.
        asked = f"{said.pop().text}\n\n{asked}"
    earlier: list[UserMessage | Turn] = [
        UserMessage(one.text) if one.role == "user" else Turn(_OF_ROW, "", text=one.text) for one in said
    ]
    return [*earlier, UserMessage(asked)]


def query_of(row: Record) -> str:
    """Return what a search without a model looks for: the question, made to stand alone by rule as in quick mode."""
    if not said_before(row):
        return row.question
    return search_query([m.text for m in history_of(row) if isinstance(m, UserMessage)])


def told_of(row: Record) -> list[dict[str, str]]:
    """Return what was said before the question as JSON values, for judges."""
    return [{"role": one.role, "text": one.text} for one in said_before(row)]


def asked_in(row: Record) -> str:
    """Return the question as one text, behind what was said before it, for judges that read no list."""
    said = [f"{one.role.capitalize()}: {one.text}" for one in said_before(row)]
    return "\n\n".join([*said, f"Last question: {row.question}"]) if said else row.question


def own_messages(row: Record) -> Sequence[TraceMessage]:
    """Return the messages that came after the question: the reference answer with its tool calls."""
    return row.messages[_asked_at(row) :]


def _asked_at(row: Record) -> int:
    """Return the place of the question; 0 where no message is the user's."""
    places = (n for n, message in enumerate(row.messages) if message.role == "user")
    return max(places, default=0)
