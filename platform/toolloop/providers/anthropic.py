"""Anthropic over the Messages API. Wire facts: https://platform.claude.com/docs/en/api/messages.

Always streamed, and read as raw events: the SDK's helper costs twice the time and completes truncated tool JSON into
something that looks valid.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final

from toolloop.events import ProviderEvent, TurnFinished
from toolloop.messages import StopReason, Turn, UserMessage
from toolloop.providers._anthropic_cache import mark_cache
from toolloop.providers._anthropic_citations import Cited, ids_sent
from toolloop.providers._anthropic_stream import MessageReader
from toolloop.providers._common import (
    CONNECT_TIMEOUT_S,
    account_of,
    checked_base_url,
    cut_stream,
    digest,
    import_sdk,
    is_recursive,
    is_strict_schema,
    json_body,
    mapping,
    one_call_only,
    options_sent,
    require_key,
    timed_out,
    wire_id,
)
from toolloop.providers._exchanges import Exchange, exchanges, native_items
from toolloop.providers._failures import billed, normalised_errors
from toolloop.providers._media import ANTHROPIC_MEDIA, anthropic_blocks, media_check
from toolloop.providers._server_tools import anthropic_server_tools, server_tools_check, tools_offered
from toolloop.providers._sse import EventReader
from toolloop.providers.base import ModelRequest, ToolSpec
from toolloop.providers.profiles import Profile, profile_for
from toolloop.service import service_checked

if TYPE_CHECKING:
    import httpx2

    from toolloop.providers._calls import StainlessCalls

_BASE_URL: Final = "https://api.anthropic.com"
# The API demands an output limit. Unknown models get one that all of them accept.
_DEFAULT_MAX_TOKENS: Final = 32_000
_UNKNOWN_MAX_TOKENS: Final = 8_192
_MIN_THINKING_BUDGET: Final = 1_024
_THINKING_BUDGETS: Final = {"low": 2_048, "medium": 8_192, "high": 16_384}
_TOOL_SEARCH: Final = {"type": "tool_search_tool_bm25_20251119", "name": "tool_search_tool_bm25"}
# https://platform.claude.com/docs/en/api/service-tiers: "auto" takes priority capacity where there is some.
_TIERS: Final = {"standard": "standard_only", "priority": "auto"}
_STOPS: Final[dict[str, StopReason]] = {
    "max_tokens": "length",
    "pause_turn": "pause",
    "refusal": "refusal",
    "model_context_window_exceeded": "context",
}


class AnthropicProvider:
    """Adapter for the Messages API.

    Args:
        api_key: the account's key.
        base_url: without "/v1"; None for the official one. The environment is never read.
        http_client: used and closed by this adapter instead of an own one.
        account: key of the native echo; derived from URL and key when empty.

    Raises:
        ConfigurationError: for a missing key, an unusable URL or a missing SDK.
    """

    name: str = "anthropic"

    def __init__(
        self,
        *,
        api_key: str,
        base_url: str | None = None,
        http_client: httpx2.AsyncClient | None = None,
        account: str = "",
    ) -> None:
        self._sdk = import_sdk("anthropic", "anthropic")
        self._key = require_key(self.name, api_key)
        url = checked_base_url(base_url or _BASE_URL)
        self.account = account or account_of(self.name, url, self._key)
        self._client = self._sdk.AsyncAnthropic(
            api_key=self._key,
            base_url=url,
            max_retries=0,
            http_client=http_client,
            # Spans come from the loop, which knows what may be recorded; our trace ids are nobody else's business.
            open_telemetry={"propagation": False, "traces": {"enabled": False}},
        )

    async def aclose(self) -> None:
        """Close the HTTP client and every open stream with it."""
        await self._client.close()

    async def stream(self, request: ModelRequest) -> AsyncGenerator[ProviderEvent, None]:
        """Call the model once; see ``toolloop.providers.base.Provider``."""
        import httpx2

        deadline = asyncio.get_running_loop().time() + request.timeout_s
        timeout = httpx2.Timeout(request.timeout_s, connect=min(request.timeout_s, CONNECT_TIMEOUT_S))
        body = {**self.body(request), "stream": True}
        reader = MessageReader(ids_sent(body))
        with billed(request, self.name, reader.usage), normalised_errors(self.name, self._key):
            try:
                async with asyncio.timeout_at(deadline):
                    stream = await self._client.post(
                        "/v1/messages",
                        cast_to=object,
                        content=json_body(body),
                        options={"timeout": timeout},
                        stream=True,
                        stream_cls=self._sdk.AsyncStream[object],
                    )
            except TimeoutError:
                raise timed_out() from None
            events = EventReader(stream.response, deadline)
            try:
                async for name, data in events:
                    if name in ("", "ping"):
                        continue
                    if name == "error":
                        raise self._stream_error(data, stream.response)
                    for delta in reader.read(mapping(json.loads(data))):
                        yield delta
                    if reader.done:
                        break
                if not reader.done:
                    raise cut_stream(self.name)
                turn = self._turn(reader, request.model, stream.response.headers.get("request-id", ""))
                await events.drain()
            finally:
                await events.aclose()
        yield TurnFinished(turn)

    def _stream_error(self, data: str, response: httpx2.Response) -> Exception:
        """Return what the SDK raises for an error that comes as an event."""
        body: object = data
        with suppress(ValueError):
            body = json.loads(data)
        error: Exception = self._sdk.APIStatusError(str(body), response=response, body=body)
        return error

    def calls(self) -> StainlessCalls:
        """Return calls of the same account beside those of models."""
        from toolloop.providers._calls import StainlessCalls

        return StainlessCalls(self._client, self._sdk, name=self.name, key=self._key)

    def turn(self, message: dict[str, Any], model: str) -> Turn:
        """Return the turn of a whole message, as ``stream`` makes it."""
        reader = MessageReader()
        reader.read_whole(message)
        return self._turn(reader, model, "")

    def body(self, request: ModelRequest) -> dict[str, Any]:
        """Return a request as JSON, without what asks for a stream; raise BadRequest for what the model can't take."""
        profile = request.profile or profile_for(self.name, request.model)
        media_check(request, ANTHROPIC_MEDIA, provider=self.name, profile=profile)
        body: dict[str, Any] = {
            "model": request.model,
            "max_tokens": _max_tokens(request, profile),
            "messages": self._messages(request, Cited(request, profile)),
        }
        if request.system:
            body["system"] = [{"type": "text", "text": request.system}]
        tools = self._tools(request, profile)
        forced = bool(tools) and request.tool_choice == "required"
        forced = forced and profile.forced_tool_choice
        if tools:
            body["tools"] = tools
            choice = {"required": "any" if forced else "auto", "none": "none"}
            body["tool_choice"] = {"type": choice.get(request.tool_choice, "auto")}
            if one_call_only(request) and request.tool_choice != "none":
                body["tool_choice"]["disable_parallel_tool_use"] = True
        effort = request.options.get("effort")
        effort = effort if effort in profile.efforts else None
        # The API refuses thinking together with a forced call.
        if not forced:
            _add_thinking(body, profile, effort)
        output: dict[str, Any] = {}
        if effort and profile.thinking == "adaptive":
            output["effort"] = effort
        wanted = request.response_schema
        # Any other schema is refused, a recursive one too.
        if wanted is not None and wanted.strict and not is_recursive(wanted.schema):
            output["format"] = {"type": "json_schema", "schema": wanted.schema}
        if output:
            body["output_config"] = output
        if profile.allows_temperature(effort) and "thinking" not in body:
            # One of the two: the API refuses both together.
            calm = options_sent(request, temperature="temperature")
            body |= calm or options_sent(request, top_p="top_p")
        if profile.stop_sequences:
            body |= options_sent(request, stop_sequences="stop")
        service = service_checked(request.options, profile, request.model)
        if service.tier:
            body["service_tier"] = _TIERS[service.tier]
        if (request.cache_key or service.cache_ttl) and profile.prompt_cache == "marked":
            mark_cache(body, service.cache_ttl)
        if request.user_key:
            body["metadata"] = {"user_id": digest(request.user_key)}
        return body

    def _tools(self, request: ModelRequest, profile: Profile) -> list[dict[str, Any]]:
        server_tools_check(request, profile, self.name)
        specs, searched = tools_offered(request, profile)
        tools = [_tool(spec, profile) for spec in specs]
        tools += anthropic_server_tools(request)
        return [*tools, dict(_TOOL_SEARCH)] if searched else tools

    def _messages(self, request: ModelRequest, cited: Cited) -> list[dict[str, Any]]:
        messages: list[dict[str, Any]] = []
        for part in exchanges(request.messages):
            if isinstance(part, UserMessage):
                blocks = anthropic_blocks(part.parts)
                if part.text or not blocks:
                    blocks.append({"type": "text", "text": part.text})
                _push(messages, "user", blocks)
                continue
            native = native_items(part.turn, provider=self.name, model=request.model, account=self.account)
            echo = native is not None and part.whole
            own = native is not None and echo
            blocks = cited.echoed(native or []) if own else _assistant_blocks(part)
            _push(messages, "assistant", blocks)
            _push(messages, "user", _result_blocks(part, echo, cited))
        return messages

    def _turn(self, reader: MessageReader, model: str, request_id: str) -> Turn:
        calls = tuple(reader.calls)
        stop = _STOPS.get(reader.stop_reason, "tools" if calls else "end")
        # What was cut short may end in a block without signature or input, which the API refuses to see again.
        replayable = reader.faithful and stop in {"end", "tools", "pause"}
        return Turn(
            provider=self.name,
            model=model,
            text=reader.text,
            reasoning=reader.reasoning,
            tool_calls=calls,
            stop=stop,
            stop_detail=reader.stop_detail,
            native=reader.blocks if replayable and reader.blocks else None,
            usage=reader.usage(),
            request_id=request_id or reader.response_id,
            account=self.account,
            citations=tuple(reader.citations),
            service_tier=reader.service_tier,
        )


def _max_tokens(request: ModelRequest, profile: Profile) -> int:
    cap = profile.max_output_tokens
    if request.max_output_tokens is not None:
        return request.max_output_tokens if cap is None else min(request.max_output_tokens, cap)
    return _UNKNOWN_MAX_TOKENS if cap is None else min(cap, _DEFAULT_MAX_TOKENS)


def _add_thinking(body: dict[str, Any], profile: Profile, effort: str | None) -> None:
    if profile.thinking == "adaptive":
        # By default the text of thinking blocks, which holds what is said between calls, comes back empty.
        body["thinking"] = {"type": "adaptive", "display": "summarized"}
    elif profile.thinking == "budget" and effort:
        budget = min(_THINKING_BUDGETS[effort], body["max_tokens"] - 1)
        if budget >= _MIN_THINKING_BUDGET:
            body["thinking"] = {"type": "enabled", "budget_tokens": budget}


def _tool(spec: ToolSpec, profile: Profile) -> dict[str, Any]:
    tool: dict[str, Any] = {
        "name": spec.name,
        "description": spec.description,
        "input_schema": spec.parameters,
    }
    if profile.strict_tools and is_strict_schema(spec.parameters):
        tool["strict"] = True
    if spec.deferred:
        tool["defer_loading"] = True
    return tool


def _assistant_blocks(part: Exchange) -> list[dict[str, Any]]:
    """Render a turn that is not echoed; a refused one leaves nothing, so that the refusal does not repeat itself."""
    if part.turn.stop == "refusal":
        return []
    blocks: list[dict[str, Any]] = []
    if part.turn.text.strip():
        blocks.append({"type": "text", "text": part.turn.text.rstrip()})
    blocks += [
        {"type": "tool_use", "id": wire_id(call.id), "name": call.name, "input": call.arguments or {}}
        for call in part.calls
    ]
    return blocks


def _result_blocks(part: Exchange, echo: bool, cited: Cited) -> list[dict[str, Any]]:
    blocks: list[dict[str, Any]] = []
    for result in part.results:
        block: dict[str, Any] = {
            "type": "tool_result",
            "tool_use_id": result.call_id if echo else wire_id(result.call_id),
            "content": cited.content(result),
        }
        if result.parts:
            text = [{"type": "text", "text": result.content}] if result.content else []
            block["content"] = [*text, *anthropic_blocks(result.parts)]
        if result.is_error:
            block["is_error"] = True
        blocks.append(block)
    return blocks


def _push(messages: list[dict[str, Any]], role: str, blocks: list[dict[str, Any]]) -> None:
    """Append blocks, joining them to the message before when the role is the same: roles must alternate."""
    if not blocks:
        return
    if messages and messages[-1]["role"] == role:
        messages[-1]["content"] = [*messages[-1]["content"], *blocks]
    else:
        messages.append({"role": role, "content": blocks})
