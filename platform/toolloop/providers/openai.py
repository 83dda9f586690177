"""OpenAI over the Responses API. Wire facts: https://platform.openai.com/docs/api-reference/responses."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from contextlib import aclosing, asynccontextmanager
from typing import TYPE_CHECKING, Any, ClassVar, Final

from toolloop.errors import MalformedResponse, ProviderError, ProviderUnavailable
from toolloop.events import ProviderEvent, TurnFinished
from toolloop.messages import StopReason, Turn, UserMessage
from toolloop.providers._background import BackgroundCalls
from toolloop.providers._common import (
    arguments_json,
    cut_stream,
    digest,
    is_strict_schema,
    mapping,
    objects,
    one_call_only,
    options_sent,
    require_key,
    schema_fields,
    string,
    wire_id,
)
from toolloop.providers._exchanges import Exchange, exchanges, native_items
from toolloop.providers._failures import billed, classify, counted
from toolloop.providers._media import OPENAI_MEDIA, MediaLimits, media_check, responses_content
from toolloop.providers._openai_wire import OpenAIWire
from toolloop.providers._responses_stream import ResponsesReader, responses_usage
from toolloop.providers._server_tools import (
    responses_max_uses,
    responses_server_tools,
    server_tools_check,
    tools_offered,
)
from toolloop.providers.base import ModelRequest, ToolSpec
from toolloop.providers.profiles import Profile, profile_for
from toolloop.service import STANDARD, service_checked, tier_used

if TYPE_CHECKING:
    import httpx2

    from toolloop.providers._calls import StainlessCalls

_INCOMPLETE: Final[dict[str, StopReason]] = {"max_output_tokens": "length", "content_filter": "filter"}


class OpenAIProvider:
    """Adapter for the Responses API; nothing is stored at the provider, reasoning travels encrypted with us.

    But for an answer in the background (``options["background"]``): that is stored there, as it must be.

    Args:
        api_key: the account's key.
        base_url: including "/v1"; None for the official one. The environment is never read.
        http_client: used and closed by this adapter instead of an own one.
        account: key of the native echo; derived from URL and key when empty.
        organization, project: optional headers.

    Raises:
        ConfigurationError: for a missing key, an unusable URL or a missing SDK.
    """

    name: str = "openai"
    default_base_url: ClassVar[str] = "https://api.openai.com/v1"
    # Which wire field carries the hashed end user, and whether the system prompt is a field or an input item.
    _user_field: ClassVar[str] = "safety_identifier"
    _system_field: ClassVar[str | None] = "instructions"
    _media: ClassVar[MediaLimits] = OPENAI_MEDIA
    # The web search's filter that leaves domains out, None where there is none.
    _blocked_domains: ClassVar[str | None] = None
    # Where programs run that the model writes for the provider's own sandbox.
    _container: ClassVar[Mapping[str, Any]] = {"container": {"type": "auto"}}

    def __init__(
        self,
        *,
        api_key: str,
        base_url: str | None = None,
        http_client: httpx2.AsyncClient | None = None,
        account: str = "",
        organization: str | None = None,
        project: str | None = None,
    ) -> None:
        self._key = require_key(self.name, api_key)
        self._wire = OpenAIWire(
            name=self.name,
            api_key=self._key,
            base_url=base_url or self.default_base_url,
            http_client=http_client,
            account=account,
            organization=organization,
            project=project,
        )
        self._background = BackgroundCalls(self._wire, self.name, self._key)

    async def aclose(self) -> None:
        """Close the HTTP client and every open stream with it."""
        await self._background.aclose()
        await self._wire.aclose()

    async def stream(self, request: ModelRequest) -> AsyncGenerator[ProviderEvent, None]:
        """Call the model once; see ``toolloop.providers.base.Provider``."""
        body = {**self.body(request), "stream": True}
        reader = ResponsesReader(self.name)
        with billed(request, self.name, lambda: responses_usage(mapping(reader.response), reader.items)):
            async with self._events(request, body) as (request_id, events):
                async for event in events:
                    for delta in reader.read(event):
                        yield delta
                    if reader.response is not None:
                        break
                if reader.response is None:
                    raise cut_stream(self.name)
                turn = self._turn(reader, request.model, request_id)
        yield TurnFinished(turn)

    @asynccontextmanager
    async def _events(
        self, request: ModelRequest, body: dict[str, Any]
    ) -> AsyncIterator[tuple[str, AsyncIterator[dict[str, Any]]]]:
        if body.get("background"):
            async with aclosing(self._background.events(request, body)) as events:
                yield "", events
        else:
            async with self._wire.post("/responses", body, request.timeout_s) as opened:
                yield opened

    def calls(self) -> StainlessCalls:
        """Return calls of the same account beside those of models."""
        return self._wire.calls()

    def turn(self, response: dict[str, Any], model: str, request_id: str = "") -> Turn:
        """Return the turn of a whole response, as ``stream`` makes it.

        Raises:
            ProviderError: the response says that it failed, or has no output.
        """
        reader = ResponsesReader(self.name)
        reader.read_whole(response)
        with counted(lambda: responses_usage(response, reader.items)):
            return self._turn(reader, model, request_id)

    def body(self, request: ModelRequest) -> dict[str, Any]:
        """Return a request as JSON, without what asks for a stream; raise BadRequest for what the model can't take."""
        profile = request.profile or profile_for(self.name, request.model)
        media_check(request, self._media, provider=self.name, profile=profile)
        items = self._items(request)
        body: dict[str, Any] = {"model": request.model, "input": items, "store": False}
        if request.system and self._system_field:
            body[self._system_field] = request.system
        elif request.system:
            items.insert(0, {"role": "system", "content": request.system})
        tools = self._tools(request, profile)
        if tools:
            body["tools"] = tools
            body["tool_choice"] = _tool_choice(request, profile)
            if profile.parallel_tool_calls:
                body["parallel_tool_calls"] = not one_call_only(request)
        if request.response_schema is not None:
            form = {"type": "json_schema", **schema_fields(request.response_schema)}
            body["text"] = {"format": form}
        if request.max_output_tokens is not None:
            body["max_output_tokens"] = _capped(request.max_output_tokens, profile)
        uses = responses_max_uses(request)
        if uses is not None:
            body["max_tool_calls"] = uses
        service = service_checked(request.options, profile, request.model)
        if service.tier:
            body["service_tier"] = "default" if service.tier == STANDARD else service.tier
        if service.cache_ttl:
            body |= cache_fields(service.cache_ttl)
        if service.background:
            # What is answered without a connection must be stored there.
            body |= {"background": True, "store": True}
        if request.cache_key:
            body["prompt_cache_key"] = digest(request.cache_key)
        if request.user_key:
            body[self._user_field] = digest(request.user_key)
        if profile.encrypted_reasoning:
            body["include"] = ["reasoning.encrypted_content"]
        effort = request.options.get("effort")
        reasoning: dict[str, Any] = {}
        if profile.thinking == "effort" and effort in profile.efforts:
            reasoning["effort"] = effort
        # Only on request: accounts that are not verified get status 400 for it.
        if profile.reasoning_summary and request.options.get("reasoning_summary"):
            reasoning["summary"] = "auto"
        if reasoning:
            body["reasoning"] = reasoning
        if profile.allows_temperature(reasoning.get("effort")):
            body |= options_sent(request, temperature="temperature", top_p="top_p")
        return body

    def _tools(self, request: ModelRequest, profile: Profile) -> list[dict[str, Any]]:
        server_tools_check(request, profile, self.name)
        specs, searched = tools_offered(request, profile)
        tools = [_tool(spec, profile) for spec in specs]
        tools += responses_server_tools(request, blocking=self._blocked_domains, container=self._container)
        return [*tools, {"type": "tool_search"}] if searched else tools

    def _items(self, request: ModelRequest) -> list[dict[str, Any]]:
        items: list[dict[str, Any]] = []
        for part in exchanges(request.messages):
            if isinstance(part, UserMessage):
                content = responses_content(part.text, part.parts)
                items.append({"role": "user", "content": content})
            else:
                items += self._exchange_items(part, request.model)
        return items

    def _exchange_items(self, part: Exchange, model: str) -> list[dict[str, Any]]:
        native = native_items(part.turn, provider=self.name, model=model, account=self._wire.account)
        echo = native is not None and part.whole
        if native is not None and echo:
            # Nothing is stored at the provider, so a reasoning item without its content refers to nothing.
            items = [
                item for item in native if item.get("type") != "reasoning" or item.get("encrypted_content")
            ]
        else:
            items = []
            if part.turn.text and part.turn.stop != "refusal":
                items.append({"role": "assistant", "content": part.turn.text})
            items += [
                {
                    "type": "function_call",
                    "call_id": wire_id(call.id),
                    "name": call.name,
                    "arguments": arguments_json(call),
                }
                for call in part.calls
            ]
        for result in part.results:
            text = error_text(result.content) if result.is_error else result.content
            items.append(
                {
                    "type": "function_call_output",
                    "call_id": result.call_id if echo else wire_id(result.call_id),
                    "output": responses_content(text, result.parts),
                }
            )
        return items

    def _turn(self, reader: ResponsesReader, model: str, request_id: str) -> Turn:
        response = mapping(reader.response)
        status = string(response.get("status"))
        if reader.failure is not None or status in {"failed", "cancelled"}:
            raise _failure(reader.failure or mapping(response.get("error")), status, self._key)
        items = objects(response.get("output")) or reader.items
        if status == "completed" and not items and not reader.text:
            raise MalformedResponse(f"{self.name} completed the response without any output.")
        calls, reliable = reader.calls(items)
        stop: StopReason = "tools" if calls else "end"
        detail = status
        if status == "incomplete":
            detail = string(mapping(response.get("incomplete_details")).get("reason"))
            # A server that does not say why has, in practice, reached the limit of output tokens.
            stop = _INCOMPLETE.get(detail or "max_output_tokens", "error")
        elif reader.refused and not calls:
            stop, detail = "refusal", "refusal"
        return Turn(
            provider=self.name,
            model=model,
            text=reader.text,
            reasoning=reader.reasoning,
            tool_calls=calls,
            stop=stop,
            stop_detail=detail,
            # What was cut short must not be echoed, nor a refusal be held against the rest of the conversation.
            native=items if reliable and items and stop in {"end", "tools"} else None,
            usage=responses_usage(response, items),
            request_id=request_id or string(response.get("id")),
            account=self._wire.account,
            citations=reader.citations(items),
            service_tier=tier_used(string(response.get("service_tier"))),
        )


def cache_fields(ttl: str) -> dict[str, Any]:
    """Return the fields that keep a prompt: earlier models know a longest retention, later ones a least lifetime."""
    return {"prompt_cache_retention": ttl} if ttl == "24h" else {"prompt_cache_options": {"ttl": ttl}}


def error_text(content: str) -> str:
    """Mark a result as an error where the wire has no field for it."""
    return content if content.lower().startswith("error") else f"Error: {content}"


def _tool(spec: ToolSpec, profile: Profile) -> dict[str, Any]:
    tool: dict[str, Any] = {
        "type": "function",
        "name": spec.name,
        "description": spec.description,
        "parameters": spec.parameters,
        # Left out, the API would take the schema for strict and refuse it when it is not.
        "strict": profile.strict_tools and is_strict_schema(spec.parameters),
    }
    if spec.deferred:
        tool["defer_loading"] = True
    return tool


def _tool_choice(request: ModelRequest, profile: Profile) -> str:
    if request.tool_choice == "required" and not profile.forced_tool_choice:
        return "auto"
    return request.tool_choice


def _capped(wanted: int, profile: Profile) -> int:
    return wanted if profile.max_output_tokens is None else min(wanted, profile.max_output_tokens)


def _failure(error: dict[str, Any], status: str, key: str) -> ProviderError:
    return classify(
        string(error.get("message")) or f"The response ended with status {status}.",
        words=(error.get("code"), error.get("type")),
        key=key,
        fallback=ProviderUnavailable,
    )
