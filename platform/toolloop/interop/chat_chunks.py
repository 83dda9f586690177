"""Read a turn out of the chunks of a LangChain chat model."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, Final, cast

from toolloop.events import ProviderEvent, ReasoningDelta, TextDelta, ToolArgumentsDelta, ToolCallStarted
from toolloop.messages import StopReason, ToolCall, Turn
from toolloop.providers._common import cut_stream, make_call, mapping, new_call_id, number, string
from toolloop.tokens import Usage

_STOPS: Final[dict[str, StopReason]] = {
    "stop": "end",
    "end_turn": "end",
    "stop_sequence": "end",
    "completed": "end",
    "tool_calls": "tools",
    "tool_use": "tools",
    "function_call": "tools",
    "length": "length",
    "max_tokens": "length",
    "max_output_tokens": "length",
    "incomplete": "length",
    "content_filter": "filter",
    "safety": "filter",
    "recitation": "filter",
    "blocklist": "filter",
    "prohibited_content": "filter",
    "refusal": "refusal",
    "pause_turn": "pause",
    "model_context_window_exceeded": "length",
    "malformed_function_call": "error",
}


class TurnReader:
    """Reads a turn out of LangChain's chunks."""

    def __init__(self) -> None:
        self._whole: Any = None
        self._ids: dict[Any, str] = {}
        self._names: dict[str, str] = {}
        self._raw: dict[str, str] = {}
        self._reasoning: list[str] = []

    @property
    def usage(self) -> Usage:
        told = mapping(getattr(self._whole, "usage_metadata", None))
        read, wrote = (mapping(told.get("input_token_details")), mapping(told.get("output_token_details")))
        return Usage(
            input_total=number(told.get("input_tokens")),
            cached_read=number(read.get("cache_read")),
            cache_write=number(read.get("cache_creation")),
            output_total=number(told.get("output_tokens")),
            reasoning=number(wrote.get("reasoning")),
            requests=1,
        )

    def take(self, chunk: Any) -> list[ProviderEvent]:
        """Return the deltas of a chunk; a model that does not stream gives its whole message."""
        from langchain_core.messages import AIMessageChunk

        events: list[ProviderEvent] = []
        thought = _reasoning_of(chunk)
        if thought:
            self._reasoning.append(thought)
            events.append(ReasoningDelta(thought))
        if text := string(str(chunk.text)):
            events.append(TextDelta(text))
        if isinstance(chunk, AIMessageChunk):
            self._whole = chunk if self._whole is None else self._whole + chunk
            for piece in chunk.tool_call_chunks:
                events += self._call_piece(piece)
        else:
            self._whole = chunk
            for call in chunk.tool_calls:
                raw = json.dumps(call["args"], ensure_ascii=False)
                events += self._call_piece({**call, "args": raw, "index": None})
            for call in chunk.invalid_tool_calls:
                events += self._call_piece({**call, "index": None})
        return events

    def _call_piece(self, piece: Mapping[str, Any]) -> list[ProviderEvent]:
        events: list[ProviderEvent] = []
        index, given = piece.get("index"), piece.get("id")
        key = given or object() if index is None else index
        is_next = index is not None and given and self._ids.get(index) not in (None, given)
        if key not in self._ids or is_next:
            if index is None and not given and not piece.get("name") and self._raw:
                key = next(reversed(self._ids))  # A piece of the call before it, without its place.
            else:
                self._ids[key] = given or new_call_id()
        call_id = self._ids[key]
        if call_id not in self._raw:
            self._raw[call_id], self._names[call_id] = "", string(piece.get("name"))
            events.append(ToolCallStarted(call_id, self._names[call_id]))
        elif piece.get("name") and not self._names[call_id]:
            self._names[call_id] = string(piece["name"])
        if delta := string(piece.get("args")):
            self._raw[call_id] += delta
            events.append(ToolArgumentsDelta(call_id, delta))
        return events

    def turn(self, provider: str, model: str, account: str) -> Turn:
        """Return the turn.

        Raises:
            ProviderUnavailable: nothing has come.
        """
        if self._whole is None:
            raise cut_stream("The LangChain model")
        calls = tuple(make_call(i, self._names[i], raw) for i, raw in self._raw.items())
        stop, detail = _stop(self._whole, has_calls=bool(calls))
        refusal = string(mapping(self._whole.additional_kwargs).get("refusal"))
        return Turn(
            provider,
            model,
            text=string(str(self._whole.text)) or refusal,
            reasoning="".join(self._reasoning),
            tool_calls=calls,
            stop="refusal" if refusal else stop,
            stop_detail=detail,
            native=_native(self._whole, calls),
            usage=self.usage,
            request_id=string(self._whole.id),
            account=account,
        )


def _native(message: Any, calls: Sequence[ToolCall]) -> list[dict[str, Any]] | None:
    """Return a message in LangChain's serialised form, None where it is no JSON or its calls have other ids."""
    from langchain_core.messages import AIMessage, message_to_dict

    if any(call.arguments is None for call in calls):
        return None
    if [call.id for call in calls] != [call["id"] for call in message.tool_calls]:
        return None
    whole = AIMessage(
        content=message.content,
        additional_kwargs={k: v for k, v in message.additional_kwargs.items() if k != "parsed"},
        response_metadata=message.response_metadata,
        tool_calls=message.tool_calls,
        id=message.id,
    )
    written = message_to_dict(whole)
    try:
        return cast("list[dict[str, Any]]", json.loads(json.dumps([written], allow_nan=False)))
    except (TypeError, ValueError):
        return None


def _stop(message: Any, *, has_calls: bool) -> tuple[StopReason, str]:
    told = mapping(message.response_metadata)
    why = mapping(told.get("incomplete_details")).get("reason")
    words = (why, *(told.get(k) for k in ("finish_reason", "stop_reason", "done_reason", "status")))
    word = next((string(w) for w in words if string(w)), "")
    found = _STOPS.get(word.lower().rpartition(".")[2], "end")
    if has_calls and found == "end":
        found = "tools"
    return ("end" if found == "tools" and not has_calls else found), word


def _reasoning_of(chunk: Any) -> str:
    thought = string(mapping(chunk.additional_kwargs).get("reasoning_content"))
    if thought or not isinstance(chunk.content, list):
        return thought
    blocks = chunk.content_blocks
    return "".join(string(b.get("reasoning")) for b in blocks if b.get("type") == "reasoning")
