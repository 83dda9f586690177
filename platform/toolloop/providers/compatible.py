"""Any server with an OpenAI-compatible ``/chat/completions``: Ollama, vLLM, llama.cpp, LM Studio and gateways.

These servers differ in what they accept, so whatever some of them refuse is a setting of the endpoint. What they send
differs more: ids missing or given twice, tool calls without an index, finish_reason "stop" beside tool calls, usage absent.
All of that is tolerated.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final, Literal

from toolloop.errors import ConfigurationError
from toolloop.events import ProviderEvent, TurnFinished
from toolloop.messages import StopReason, ToolCall, Turn, UserMessage
from toolloop.providers._chat_stream import ChatReader
from toolloop.providers._common import (
    arguments_json,
    cut_stream,
    digest,
    is_strict_schema,
    objects,
    one_call_only,
    options_sent,
    schema_fields,
    string,
    timed_out,
)
from toolloop.providers._exchanges import Exchange, exchanges, native_items
from toolloop.providers._failures import billed, normalised_errors
from toolloop.providers._media import COMPATIBLE_MEDIA, chat_content, media_check, result_label
from toolloop.providers._openai_wire import OpenAIWire
from toolloop.providers._server_tools import server_tools_check
from toolloop.providers.base import ModelRequest, ToolSpec
from toolloop.providers.openai import error_text
from toolloop.providers.profiles import profile_for
from toolloop.service import STANDARD, service_checked, tier_used

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
        service_tiers: which of "flex" and "priority" its server knows, sent as ``service_tier``; the model's profile says what
            they cost.
        image_input, pdf_input, audio_input: whether its models take images, PDF files and sound (WAV, MP3); None leaves it
            to the model's profile.
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
        service_tiers: Sequence[str] = (),
        image_input: bool | None = None,
        pdf_input: bool | None = None,
        audio_input: bool | None = None,
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
        self._tiers = tuple(service_tiers)
        takes = {"image_input": image_input, "pdf_input": pdf_input, "audio_input": audio_input}
        self._takes: dict[str, Any] = {k: v for k, v in takes.items() if v is not None}
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
        reader = ChatReader(taken)
        with billed(request, self.name, lambda: reader.usage):
            async with self._wire.post("/chat/completions", body, request.timeout_s) as opened:
                request_id, chunks = opened
                async for chunk in chunks:
                    for event in reader.read(chunk):
                        yield event
                if not reader.finish_reason:
                    raise cut_stream(self.name)
        yield TurnFinished(self._turn(reader, request.model, request_id))

    def _body(self, request: ModelRequest) -> dict[str, Any]:
        profile = request.profile or profile_for(self.name, request.model)
        if self._takes:
            profile = replace(profile, **self._takes)
        media_check(request, COMPATIBLE_MEDIA, provider=self.name, profile=profile)
        server_tools_check(request, profile, self.name)
        body: dict[str, Any] = {"model": request.model, "messages": self._messages(request), "stream": True}
        if self._stream_usage:
            body["stream_options"] = {"include_usage": True}
        specs = [spec for spec in request.tools if not spec.deferred]
        if specs:
            body["tools"] = [self._tool(spec) for spec in specs]
            body["tool_choice"] = request.tool_choice
            if self._parallel or one_call_only(request):
                body["parallel_tool_calls"] = not one_call_only(request)
        if request.max_output_tokens is not None:
            body[self._max_tokens_field or profile.max_tokens_field] = request.max_output_tokens
        if request.response_schema is not None:
            form = schema_fields(request.response_schema)
            body["response_format"] = {"type": "json_schema", "json_schema": form}
        if profile.allows_temperature(None):
            body |= options_sent(request, temperature="temperature", top_p="top_p")
        if profile.stop_sequences:
            body |= options_sent(request, stop="stop")
        body |= options_sent(request, seed="seed")
        effort = request.options.get("effort")
        if self._effort and effort in profile.efforts:
            body["reasoning_effort"] = effort
        if self._tiers:
            profile = replace(profile, tiers=replace(profile.tiers, offered=self._tiers))
        service = service_checked(request.options, profile, request.model)
        if service.tier and self._tiers:
            body["service_tier"] = "default" if service.tier == STANDARD else service.tier
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
                content = chat_content(part.text, part.parts)
                messages.append({"role": "user", "content": content})
            else:
                messages += self._exchange_messages(part, request.model)
        return messages

    def _exchange_messages(self, part: Exchange, model: str) -> list[dict[str, Any]]:
        native = native_items(part.turn, provider=self.name, model=model, account=self._wire.account)
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
        # A tool message holds text only, and nothing may stand between the results of one turn.
        for result in part.results:
            if result.parts:
                files = chat_content(result_label(result), result.parts)
                messages.append({"role": "user", "content": files})
        return messages

    def _echoed(self, message: dict[str, Any]) -> dict[str, Any]:
        if self._replay_reasoning:
            return message
        return {key: value for key, value in message.items() if key != "reasoning_content"}

    def _turn(self, reader: ChatReader, model: str, request_id: str) -> Turn:
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
            service_tier=tier_used(reader.service_tier),
            request_id=request_id or reader.response_id,
            account=self._wire.account,
        )


async def list_remote_models(
    base_url: str, api_key: str = "", http_client: httpx2.AsyncClient | None = None, *, timeout_s: float = 3.0
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
