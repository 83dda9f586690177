"""Read the chunks of chat completions, as tolerant as the servers that write them are different."""

from __future__ import annotations

from typing import Any

from toolloop.events import ProviderEvent, ReasoningDelta, TextDelta, ToolArgumentsDelta, ToolCallStarted
from toolloop.messages import ToolCall
from toolloop.providers._common import make_call, mapping, new_call_id, number, objects, raw_arguments, string
from toolloop.tokens import Usage


class _Call:
    """One call while it is being written."""

    def __init__(self, call_id: str, wire_call_id: str, name: str) -> None:
        self.id = call_id
        self.wire_call_id = wire_call_id
        self.name = name
        self.arguments = ""


class ChatReader:
    """Fold the chunks of one completion; ``text`` is always exactly what was yielded as deltas."""

    def __init__(self, taken: set[str]) -> None:
        self.text = ""
        self.reasoning = ""
        self.refused = False
        self.finish_reason = ""
        self.response_id = ""
        self.usage = Usage(requests=1)
        self.service_tier = ""
        self._taken = taken
        self._calls: list[_Call] = []
        self._by_index: dict[int, _Call] = {}

    def read(self, chunk: dict[str, Any]) -> list[ProviderEvent]:
        """Take one chunk and return the deltas it means."""
        self.response_id = self.response_id or string(chunk.get("id"))
        self.service_tier = string(chunk.get("service_tier")) or self.service_tier
        if chunk.get("usage"):
            self.usage = _usage(mapping(chunk["usage"]))
        choice = next(iter(objects(chunk.get("choices"))), {})
        delta = mapping(choice.get("delta"))
        events: list[ProviderEvent] = []
        reasoning = string(delta.get("reasoning_content")) or string(delta.get("reasoning"))
        if reasoning:
            self.reasoning += reasoning
            events.append(ReasoningDelta(reasoning))
        refusal = string(delta.get("refusal"))
        self.refused = self.refused or bool(refusal)
        for text in (string(delta.get("content")), refusal):
            if text:
                self.text += text
                events.append(TextDelta(text))
        for piece in objects(delta.get("tool_calls")):
            events += self._read_call(piece)
        self.finish_reason = string(choice.get("finish_reason")) or self.finish_reason
        return events

    def calls(self) -> tuple[ToolCall, ...]:
        """Return the calls in the order in which they began."""
        return tuple(make_call(call.id, call.name, call.arguments) for call in self._calls)

    def _read_call(self, piece: dict[str, Any]) -> list[ProviderEvent]:
        function = mapping(piece.get("function"))
        name = string(function.get("name"))
        wire_call_id = string(piece.get("id"))
        index = piece.get("index")
        call = self._current(index, wire_call_id, name)
        events: list[ProviderEvent] = []
        if call is None:
            call = self._begin(index, wire_call_id, name)
            events.append(ToolCallStarted(call.id, call.name))
        call.name = call.name or name
        arguments = raw_arguments(function.get("arguments"))
        if arguments:
            call.arguments += arguments
            events.append(ToolArgumentsDelta(call.id, arguments))
        return events

    def _current(self, index: object, wire_call_id: str, name: str) -> _Call | None:
        """Find the call that a piece goes on with, None when it begins a new one."""
        if isinstance(index, int):
            call = self._by_index.get(index)
        elif name:
            return None  # without an index every server seen sends whole calls
        else:
            call = self._calls[-1] if self._calls else None
        if call is not None and wire_call_id and call.wire_call_id not in {"", wire_call_id}:
            return None  # several calls under one index, told apart by their ids
        return call

    def _begin(self, index: object, wire_call_id: str, name: str) -> _Call:
        # Results are matched by id over the whole history, so an id seen before cannot serve again.
        call_id = wire_call_id
        if not call_id or call_id in self._taken:
            call_id = new_call_id()
        self._taken.add(call_id)
        call = _Call(call_id, wire_call_id, name)
        self._calls.append(call)
        if isinstance(index, int):
            self._by_index[index] = call
        return call


def _usage(data: dict[str, Any]) -> Usage:
    inputs = mapping(data.get("prompt_tokens_details"))
    outputs = mapping(data.get("completion_tokens_details"))
    return Usage(
        input_total=number(data.get("prompt_tokens")),
        cached_read=number(inputs.get("cached_tokens")),
        output_total=number(data.get("completion_tokens")),
        reasoning=number(outputs.get("reasoning_tokens")),
        requests=1,
    )
