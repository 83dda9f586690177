"""Any server with an OpenAI-compatible ``/chat/completions``: Ollama, vLLM, llama.cpp, LM Studio and gateways.

These servers differ in what they accept, so whatever some of them refuse is a setting of the endpoint. What they send
differs more: ids missing or given twice, tool calls without an index, finish_reason "stop" beside tool calls, usage absent.
All of that is tolerated.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from typing import TYPE_CHECKING, Any, Final, Literal

from toolloop.errors import ConfigurationError
from toolloop.events import (
    ProviderEvent,
    ReasoningDelta,
    TextDelta,
    ToolArgumentsDelta,
    ToolCallStarted,
    TurnFinished,
)
from toolloop.messages import StopReason, ToolCall, Turn, Usage, UserMessage
from toolloop.providers._common import (
    Exchange,
    arguments_json,
    cut_stream,
    digest,
    exchanges,
    is_strict_schema,
    make_call,
    mapping,
    native_items,
    new_call_id,
    number,
    objects,
    raw_arguments,
    schema_fields,
    string,
    timed_out,
)
from toolloop.providers._failures import normalised_errors
from toolloop.providers._openai_wire import OpenAIWire
from toolloop.providers.base import ModelRequest, ToolSpec
from toolloop.providers.openai import error_text
from toolloop.providers.profiles import profile_for

if TYPE_CHECKING:
    import httpx2

_NO_KEY: Final = "no-key-needed"
_STOPS: Final[dict[str, StopReason]] = {"length": "length", "content_filter": "filter"}


class CompatibleProvider:
    """Adapter for chat completions.

    Args:
        api_key: sent as a bearer token; local servers mostly ignore it, so it may be empty.
        base_url: of the server, including "/v1" where it has one. Required.
        http_client: used and closed by this adapter instead of an own one.
        account: key of the native echo; derived from URL and key when empty.
        strict: send ``strict`` for schemas that qualify.
        parallel_tool_calls: send ``parallel_tool_calls: true``.
        stream_usage: ask for usage in the stream (``stream_options``).
        reasoning_effort: send ``options["effort"]`` as ``reasoning_effort``.
        replay_reasoning: send a turn's ``reasoning_content`` back with it.
        send_keys: send ``prompt_cache_key`` and ``user`` (both hashed).
        max_tokens_field: name of the output limit; older servers ignore ``max_completion_tokens``.

    Raises:
        ConfigurationError: for a missing or unusable URL or a missing SDK.
    """

    name: str = "compatible"

    def __init__(
        self,
        *,
        api_key: str = "",
        base_url: str | None = None,
        http_client: httpx2.AsyncClient | None = None,
        account: str = "",
        strict: bool = False,
        parallel_tool_calls: bool = False,
        stream_usage: bool = True,
        reasoning_effort: bool = False,
        replay_reasoning: bool = False,
        send_keys: bool = False,
        max_tokens_field: Literal["max_tokens", "max_completion_tokens"] | None = None,
    ) -> None:
        if not base_url:
            raise ConfigurationError(
                "An OpenAI-compatible server needs a base URL, e.g. http://localhost:11434/v1."
            )
        self._wire = OpenAIWire(
            name=self.name,
            api_key=api_key.strip() or _NO_KEY,
            base_url=base_url,
            http_client=http_client,
            account=account,
        )
        self._strict = strict
        self._parallel = parallel_tool_calls
        self._stream_usage = stream_usage
        self._effort = reasoning_effort
        self._replay_reasoning = replay_reasoning
        self._send_keys = send_keys
        self._max_tokens_field = max_tokens_field

    async def aclose(self) -> None:
        """Close the HTTP client and every open stream with it."""
        await self._wire.aclose()

    async def stream(self, request: ModelRequest) -> AsyncGenerator[ProviderEvent, None]:
        """Call the model once; see ``toolloop.providers.base.Provider``."""
        body = self._body(request)
        taken = {
            call.id
            for message in request.messages
            if isinstance(message, Turn)
            for call in message.tool_calls
        }
        async with self._wire.post("/chat/completions", body, request.timeout_s) as opened:
            request_id, chunks = opened
            reader = _Reader(taken)
            async for chunk in chunks:
                for event in reader.read(chunk):
                    yield event
            if not reader.finish_reason:
                raise cut_stream(self.name)
        yield TurnFinished(self._turn(reader, request.model, request_id))

    def _body(self, request: ModelRequest) -> dict[str, Any]:
        profile = profile_for(self.name, request.model)
        body: dict[str, Any] = {
            "model": request.model,
            "messages": self._messages(request),
            "stream": True,
        }
        if self._stream_usage:
            body["stream_options"] = {"include_usage": True}
        if request.tools:
            body["tools"] = [self._tool(spec) for spec in request.tools]
            body["tool_choice"] = request.tool_choice
            if self._parallel:
                body["parallel_tool_calls"] = True
        if request.max_output_tokens is not None:
            body[self._max_tokens_field or profile.max_tokens_field] = request.max_output_tokens
        if request.response_schema is not None:
            form = schema_fields(request.response_schema)
            body["response_format"] = {"type": "json_schema", "json_schema": form}
        temperature = request.options.get("temperature")
        if temperature is not None and profile.allows_temperature(None):
            body["temperature"] = temperature
        effort = request.options.get("effort")
        if self._effort and effort in profile.efforts:
            body["reasoning_effort"] = effort
        if self._send_keys and request.cache_key:
            body["prompt_cache_key"] = digest(request.cache_key)
        if self._send_keys and request.user_key:
            body["user"] = digest(request.user_key)
        return body

    def _tool(self, spec: ToolSpec) -> dict[str, Any]:
        function: dict[str, Any] = {
            "name": spec.name,
            "description": spec.description,
            "parameters": spec.parameters,
        }
        if self._strict and is_strict_schema(spec.parameters):
            function["strict"] = True
        return {"type": "function", "function": function}

    def _messages(self, request: ModelRequest) -> list[dict[str, Any]]:
        messages: list[dict[str, Any]] = []
        if request.system:
            messages.append({"role": "system", "content": request.system})
        for part in exchanges(request.messages):
            if isinstance(part, UserMessage):
                messages.append({"role": "user", "content": part.text})
            else:
                messages += self._exchange_messages(part, request.model)
        return messages

    def _exchange_messages(self, part: Exchange, model: str) -> list[dict[str, Any]]:
        native = native_items(
            part.turn, provider=self.name, model=model, account=self._wire.account
        )
        messages: list[dict[str, Any]] = []
        if native is not None and part.whole:
            messages += [self._echoed(message) for message in native]
        else:
            text = "" if part.turn.stop == "refusal" else part.turn.text
            if text or part.calls:
                messages.append(_assistant(text, part.calls))
        for result in part.results:
            content = error_text(result.content) if result.is_error else result.content
            messages.append({"role": "tool", "tool_call_id": result.call_id, "content": content})
        return messages

    def _echoed(self, message: dict[str, Any]) -> dict[str, Any]:
        if self._replay_reasoning:
            return message
        return {key: value for key, value in message.items() if key != "reasoning_content"}

    def _turn(self, reader: _Reader, model: str, request_id: str) -> Turn:
        calls = reader.calls()
        stop = _STOPS.get(reader.finish_reason, "tools" if calls else "end")
        if reader.refused and not calls:
            stop = "refusal"
        native: list[dict[str, Any]] | None = None
        if stop in {"end", "tools"} and (reader.text or calls):
            message = _assistant(reader.text, calls)
            if reader.reasoning:
                message["reasoning_content"] = reader.reasoning
            native = [message]
        return Turn(
            provider=self.name,
            model=model,
            text=reader.text,
            reasoning=reader.reasoning,
            tool_calls=calls,
            stop=stop,
            stop_detail=reader.finish_reason,
            native=native,
            usage=reader.usage,
            request_id=request_id or reader.response_id,
            account=self._wire.account,
        )


class _Call:
    """One call while it is being written."""

    def __init__(self, call_id: str, wire_call_id: str, name: str) -> None:
        self.id = call_id
        self.wire_call_id = wire_call_id
        self.name = name
        self.arguments = ""


class _Reader:
    """Fold the chunks of one completion; ``text`` is always exactly what was yielded as deltas."""

    def __init__(self, taken: set[str]) -> None:
        self.text = ""
        self.reasoning = ""
        self.refused = False
        self.finish_reason = ""
        self.response_id = ""
        self.usage = Usage(requests=1)
        self._taken = taken
        self._calls: list[_Call] = []
        self._by_index: dict[int, _Call] = {}

    def read(self, chunk: dict[str, Any]) -> list[ProviderEvent]:
        """Take one chunk and return the deltas it means."""
        self.response_id = self.response_id or string(chunk.get("id"))
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


async def list_remote_models(
    base_url: str,
    api_key: str = "",
    http_client: httpx2.AsyncClient | None = None,
    *,
    timeout_s: float = 3.0,
) -> list[str]:
    """Ask a compatible server which models it has.

    Args:
        base_url: as for ``CompatibleProvider``.
        api_key: sent as a bearer token when not empty.
        http_client: used and left open; a short-lived own one when None.
        timeout_s: seconds for the whole question.

    Returns:
        Model names, sorted, each once.

    Raises:
        ConfigurationError: for an unusable URL or a missing SDK.
        ProviderError: when the server cannot be reached or refuses.
    """
    import httpx2

    owned = httpx2.AsyncClient() if http_client is None else None
    try:
        wire = OpenAIWire(
            name="compatible",
            api_key=api_key.strip() or _NO_KEY,
            base_url=base_url,
            http_client=http_client or owned,
            account="",
        )
        with normalised_errors("compatible", api_key.strip()):
            try:
                async with asyncio.timeout(timeout_s):
                    answer = await wire.get("/models", timeout_s)
            except TimeoutError:
                raise timed_out() from None
    finally:
        if owned is not None:
            await owned.aclose()
    return sorted({string(item.get("id")) for item in objects(answer.get("data"))} - {""})


def _assistant(text: str, calls: tuple[ToolCall, ...]) -> dict[str, Any]:
    # Content is "" and never null beside calls: chat templates of local servers concatenate it.
    message: dict[str, Any] = {"role": "assistant", "content": text}
    if calls:
        message["tool_calls"] = [
            {
                "id": call.id,
                "type": "function",
                # Templates parse this text, so broken arguments must not come back as they were.
                "function": {"name": call.name, "arguments": arguments_json(call)},
            }
            for call in calls
        ]
    return message


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
