"""What the chat formats share: a record as a conversation, and a record from one. Pure.

Each chat format writes the same conversation in its own words. What it keeps of a record is therefore the question (the
last thing the user says), the answer (the last thing the assistant says), the trace between them, and the tools.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any

from apps.datasets.formats.lines import JsonLines
from apps.datasets.records.parts import Behaviour, ToolSpec, TraceMessage
from apps.datasets.records.record import Record, check
from basics.errors import Invalid
from basics.texts import gettext as _

_PLAIN = ("user", "assistant")


class ChatLines(JsonLines):
    """A chat format with one conversation for each line.

    A subclass says how a conversation and its tools look.
    """

    @abstractmethod
    def encode_chat(
        self, messages: Sequence[TraceMessage], tools: Sequence[ToolSpec]
    ) -> dict[str, Any] | None:
        """Return the object of a conversation; None where the format has no place for it."""

    @abstractmethod
    def decode_chat(self, values: Mapping[str, Any]) -> tuple[list[TraceMessage], list[ToolSpec]]:
        """Return the conversation of an object and its tools."""

    def encode(self, record: Record) -> dict[str, Any] | None:
        """Return the object of a record's conversation; None for a record without an answer."""
        messages = conversation(record)
        return self.encode_chat(messages, record.tools) if messages else None

    def decode(self, values: Mapping[str, Any]) -> Record:
        """Return the record of a conversation."""
        messages, tools = self.decode_chat(values)
        return from_conversation(messages, tools)


def conversation(record: Record) -> tuple[TraceMessage, ...]:
    """Return a record as messages that end with its answer; none when it has no answer to learn."""
    if not record.answer.strip():
        return ()
    if not record.messages:
        return (TraceMessage("user", record.question), TraceMessage("assistant", record.answer))
    last = record.messages[-1]
    if last.role == "assistant" and not last.tool_calls and last.content == record.answer:
        return record.messages
    return (*record.messages, TraceMessage("assistant", record.answer))


def from_conversation(messages: Sequence[TraceMessage], tools: Sequence[ToolSpec] = ()) -> Record:
    """Return the record of a conversation. Raises Invalid for one without a question or an answer at its end."""
    asked = [message.content for message in messages if message.role == "user"]
    if not asked:
        raise Invalid("row_invalid", _("There is no user message, so there is no question."))
    last = messages[-1]
    if last.role != "assistant" or last.tool_calls:
        raise Invalid("row_invalid", _("The last message must be the assistant's answer."))
    is_plain = tuple(message.role for message in messages) == _PLAIN
    return check(
        Record(
            question=asked[-1],
            answer=last.content,
            expected=Behaviour.ANSWER,
            messages=() if is_plain else tuple(messages),
            tools=tuple(tools),
        )
    )


def text_of(content: Any) -> str:
    """Return the text of a message's content: a string, or a list of parts that are all text.

    Raises:
        Invalid: a part is an image, a file or sound, which a row of text cannot hold.
    """
    if content is None:
        return ""
    if isinstance(content, str):
        return content
    parts = []
    for part in content:
        if part.get("type") not in ("text", "input_text", "output_text"):
            raise Invalid("row_invalid", _("A message has a part that isn't text. Remove it."))
        parts.append(part["text"])
    return "".join(parts)
