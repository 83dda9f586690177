"""What an agent remembers of earlier exchanges.

An exchange is what a person said and all that followed, up to the answer. Memories keep and forget whole exchanges
only, so that a call is never split from its result.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Protocol

from toolloop.errors import ConfigurationError
from toolloop.messages import ModelMessage, Turn, UserMessage, message_from_json


class Memory(Protocol):
    """What an agent asks of a memory."""

    def load(self) -> list[ModelMessage]:
        """Return the messages that go before the next question."""
        ...

    def save(self, exchange: Sequence[ModelMessage]) -> None:
        """Take in a finished exchange."""
        ...


class BufferMemory:
    """Remembers everything. What outgrows the model's window, the loop compacts for the model only.

    Args:
        messages: of earlier, oldest first.
    """

    def __init__(self, messages: Sequence[ModelMessage] = ()) -> None:
        self._messages = list(messages)

    def load(self) -> list[ModelMessage]:
        """Return all messages, oldest first."""
        return list(self._messages)

    def save(self, exchange: Sequence[ModelMessage]) -> None:
        """Append an exchange."""
        self._messages.extend(exchange)

    def clear(self) -> None:
        """Forget everything."""
        self._messages.clear()

    def to_json(self) -> dict[str, Any]:
        """Return the memory as JSON values."""
        return {"messages": [message.to_json() for message in self._messages]}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> BufferMemory:
        """Rebuild the memory that ``to_json`` wrote."""
        return cls([message_from_json(item) for item in data["messages"]])


class WindowMemory:
    """Remembers the last exchanges.

    Args:
        k: how many.
        messages: of earlier, oldest first.

    Raises:
        ConfigurationError: ``k`` is below 1.
    """

    def __init__(self, k: int, messages: Sequence[ModelMessage] = ()) -> None:
        if k < 1:
            raise ConfigurationError("WindowMemory.k must be at least 1")
        self.k = k
        self._exchanges: list[list[ModelMessage]] = []
        self.save(messages)

    def load(self) -> list[ModelMessage]:
        """Return the messages of the last exchanges, oldest first."""
        return [message for exchange in self._exchanges for message in exchange]

    def save(self, exchange: Sequence[ModelMessage]) -> None:
        """Append messages, and forget exchanges that are too old."""
        for message in exchange:
            begins = isinstance(message, UserMessage) and not message.notice
            if begins or not self._exchanges:
                self._exchanges.append([])
            self._exchanges[-1].append(message)
        if len(self._exchanges) > self.k:
            # A provider that signs its turns refuses them behind another beginning: they go in the common form.
            kept = self._exchanges[-self.k :]
            self._exchanges = [[_plain(message) for message in exchange] for exchange in kept]

    def clear(self) -> None:
        """Forget everything."""
        self._exchanges.clear()

    def to_json(self) -> dict[str, Any]:
        """Return the memory as JSON values."""
        return {"k": self.k, "messages": [message.to_json() for message in self.load()]}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> WindowMemory:
        """Rebuild the memory that ``to_json`` wrote."""
        return cls(data["k"], [message_from_json(item) for item in data["messages"]])


def _plain(message: ModelMessage) -> ModelMessage:
    return replace(message, native=None) if isinstance(message, Turn) else message
