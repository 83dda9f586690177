"""OpenAI over the Responses API. Wire facts: https://platform.openai.com/docs/api-reference/responses."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from typing import TYPE_CHECKING, Any, ClassVar, Final

from toolloop.errors import ProviderError, ProviderUnavailable
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
    require_key,
    schema_fields,
    string,
    wire_id,
)
from toolloop.providers._failures import classify
from toolloop.providers._openai_wire import OpenAIWire
from toolloop.providers.base import ModelRequest, ToolSpec
from toolloop.providers.profiles import Profile, profile_for

if TYPE_CHECKING:
    import httpx2

_INCOMPLETE: Final[dict[str, StopReason]] = {
    "max_output_tokens": "length",
    "content_filter": "filter",
}


class OpenAIProvider:
    """Adapter for the Responses API; nothing is stored at the provider, reasoning travels encrypted with us.

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

    async def aclose(self) -> None:
        """Close the HTTP client and every open stream with it."""
        await self._wire.aclose()

    async def stream(self, request: ModelRequest) -> AsyncGenerator[ProviderEvent, None]:
        """Call the model once; see ``toolloop.providers.base.Provider``."""
        body = self._body(request)
        async with self._wire.post("/responses", body, request.timeout_s) as (request_id, events):
            reader = _Reader(self.name)
            async for event in events:
                for delta in reader.read(event):
                    yield delta
                if reader.response is not None:
                    break
            if reader.response is None:
                raise cut_stream(self.name)
            turn = self._turn(reader, request.model, request_id)
        yield TurnFinished(turn)

    def _body(self, request: ModelRequest) -> dict[str, Any]:
        profile = profile_for(self.name, request.model)
        items = self._items(request)
        body: dict[str, Any] = {
            "model": request.model,
            "input": items,
            "store": False,
            "stream": True,
        }
        if request.system and self._system_field:
            body[self._system_field] = request.system
        elif request.system:
            items.insert(0, {"role": "system", "content": request.system})
        if request.tools:
            body["tools"] = [_tool(spec, profile) for spec in request.tools]
            body["tool_choice"] = _tool_choice(request, profile)
            if profile.parallel_tool_calls:
                body["parallel_tool_calls"] = True
        if request.response_schema is not None:
            form = {"type": "json_schema", **schema_fields(request.response_schema)}
            body["text"] = {"format": form}
        if request.max_output_tokens is not None:
            body["max_output_tokens"] = _capped(request.max_output_tokens, profile)
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
        temperature = request.options.get("temperature")
        if temperature is not None and profile.allows_temperature(reasoning.get("effort")):
            body["temperature"] = temperature
        return body

    def _items(self, request: ModelRequest) -> list[dict[str, Any]]:
        items: list[dict[str, Any]] = []
        for part in exchanges(request.messages):
            if isinstance(part, UserMessage):
                items.append({"role": "user", "content": part.text})
            else:
                items += self._exchange_items(part, request.model)
        return items

    def _exchange_items(self, part: Exchange, model: str) -> list[dict[str, Any]]:
        native = native_items(
            part.turn, provider=self.name, model=model, account=self._wire.account
        )
        echo = native is not None and part.whole
        if native is not None and echo:
            # Nothing is stored at the provider, so a reasoning item without its content refers to nothing.
            items = [
                item
                for item in native
                if item.get("type") != "reasoning" or item.get("encrypted_content")
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
            items.append(
                {
                    "type": "function_call_output",
                    "call_id": result.call_id if echo else wire_id(result.call_id),
                    "output": error_text(result.content) if result.is_error else result.content,
                }
            )
        return items

    def _turn(self, reader: _Reader, model: str, request_id: str) -> Turn:
        response = mapping(reader.response)
        status = string(response.get("status"))
        if reader.failure is not None or status in {"failed", "cancelled"}:
            raise _failure(reader.failure or mapping(response.get("error")), status, self._key)
        items = objects(response.get("output")) or reader.items
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
            usage=_usage(mapping(response.get("usage"))),
            request_id=request_id or string(response.get("id")),
            account=self._wire.account,
        )


class _Reader:
    """Fold the events of one response; ``text`` is always exactly what was yielded as deltas."""

    def __init__(self, provider: str) -> None:
        self._provider = provider
        self.text = ""
        self.reasoning = ""
        self.refused = False
        self.items: list[dict[str, Any]] = []
        self.response: dict[str, Any] | None = None
        self.failure: dict[str, Any] | None = None
        self._call_ids: dict[object, str] = {}
        self._streamed: set[object] = set()
        self._text_of: object = None
        self._summary_of: object = None

    def read(self, event: dict[str, Any]) -> list[ProviderEvent]:
        """Take one event and return the deltas it means."""
        kind = string(event.get("type"))
        place = event.get("output_index", event.get("item_id"))
        if kind in {"response.output_text.delta", "response.refusal.delta"}:
            return self._add_text(place, string(event.get("delta")), "refusal" in kind)
        if kind in {"response.reasoning_summary_text.delta", "response.reasoning_text.delta"}:
            return self._add_reasoning(
                (place, event.get("summary_index")), string(event.get("delta"))
            )
        if kind == "response.output_item.added":
            return self._start(place, mapping(event.get("item")))
        if kind == "response.function_call_arguments.delta":
            delta = string(event.get("delta"))
            call_id = self._call_ids.get(place)
            return [ToolArgumentsDelta(call_id, delta)] if call_id and delta else []
        if kind == "response.output_item.done":
            return self._finish(place, mapping(event.get("item")))
        if kind in {"response.completed", "response.incomplete", "response.failed"}:
            response = mapping(event.get("response"))
            status = string(response.get("status")) or kind.rpartition(".")[2]
            self.response = {**response, "status": status}
        elif kind == "error" or event.get("error"):
            self.response = {"status": "failed"}
            self.failure = mapping(event.get("error")) or event
        return []

    def calls(self, items: list[dict[str, Any]]) -> tuple[tuple[ToolCall, ...], bool]:
        """Return the calls among the items, and whether the items can be echoed as they are."""
        calls: list[ToolCall] = []
        reliable = True
        for index, item in enumerate(items):
            if item.get("type") != "function_call":
                continue
            call_id = string(item.get("call_id"))
            # A server that gives no id (or gives one twice) gets ours, which its own items do not carry.
            if not call_id or any(call.id == call_id for call in calls):
                call_id = self._call_ids.get(index) or new_call_id()
                reliable = False
            calls.append(
                make_call(call_id, string(item.get("name")), raw_arguments(item.get("arguments")))
            )
        return tuple(calls), reliable

    def _add_text(self, place: object, delta: str, refusal: bool) -> list[ProviderEvent]:
        if not delta:
            return []
        if self.text and place != self._text_of:
            delta = f"\n\n{delta}"
        self._text_of = place
        self._streamed.add(place)
        self.refused = self.refused or refusal
        self.text += delta
        return [TextDelta(delta)]

    def _add_reasoning(self, place: object, delta: str) -> list[ProviderEvent]:
        if not delta:
            return []
        if self.reasoning and place != self._summary_of:
            delta = f"\n\n{delta}"
        self._summary_of = place
        self.reasoning += delta
        return [ReasoningDelta(delta)]

    def _start(self, place: object, item: dict[str, Any]) -> list[ProviderEvent]:
        if item.get("type") != "function_call":
            return []
        call_id = string(item.get("call_id")) or new_call_id()
        if call_id in self._call_ids.values():
            call_id = new_call_id()
        self._call_ids[place] = call_id
        return [ToolCallStarted(call_id, string(item.get("name")))]

    def _finish(self, place: object, item: dict[str, Any]) -> list[ProviderEvent]:
        if not item:
            return []
        self.items.append(item)
        events: list[ProviderEvent] = []
        if item.get("type") == "function_call" and place not in self._call_ids:
            events += self._start(place, item)
        if item.get("type") == "message" and place not in self._streamed:
            # Some servers send a message only when it is complete.
            for part in objects(item.get("content")):
                refusal = part.get("type") == "refusal"
                text = string(part.get("refusal" if refusal else "text"))
                events += self._add_text(place, text, refusal)
        return events


def error_text(content: str) -> str:
    """Mark a result as an error where the wire has no field for it."""
    return content if content.lower().startswith("error") else f"Error: {content}"


def _tool(spec: ToolSpec, profile: Profile) -> dict[str, Any]:
    return {
        "type": "function",
        "name": spec.name,
        "description": spec.description,
        "parameters": spec.parameters,
        # Left out, the API would take the schema for strict and refuse it when it is not.
        "strict": profile.strict_tools and is_strict_schema(spec.parameters),
    }


def _tool_choice(request: ModelRequest, profile: Profile) -> str:
    if request.tool_choice == "required" and not profile.forced_tool_choice:
        return "auto"
    return request.tool_choice


def _capped(wanted: int, profile: Profile) -> int:
    return wanted if profile.max_output_tokens is None else min(wanted, profile.max_output_tokens)


def _usage(data: dict[str, Any]) -> Usage:
    inputs = mapping(data.get("input_tokens_details"))
    outputs = mapping(data.get("output_tokens_details"))
    return Usage(
        input_total=number(data.get("input_tokens")),
        cached_read=number(inputs.get("cached_tokens")),
        cache_write=number(inputs.get("cache_write_tokens")),
        output_total=number(data.get("output_tokens")),
        reasoning=number(outputs.get("reasoning_tokens")),
        requests=1,
    )


def _failure(error: dict[str, Any], status: str, key: str) -> ProviderError:
    return classify(
        string(error.get("message")) or f"The response ended with status {status}.",
        words=(error.get("code"), error.get("type")),
        key=key,
        fallback=ProviderUnavailable,
    )
