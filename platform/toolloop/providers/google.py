"""Gemini over streamGenerateContent. Wire facts: https://ai.google.dev/api/generate-content.

The google-genai package gives client, authentication, URLs and errors; requests and answers pass as plain JSON. Its typed
path is lossy, which breaks the echo of thought signatures: it drops fields it does not know and rewrites base64 in the
other alphabet. It would also call functions and continue answers by itself; below that path it cannot.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator
from contextlib import aclosing
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import quote

from toolloop.errors import BadRequest, ContentRefused, MalformedResponse
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
    CONNECT_TIMEOUT_S,
    Exchange,
    Until,
    account_of,
    checked_base_url,
    cut_stream,
    exchanges,
    import_sdk,
    joined,
    mapping,
    native_items,
    new_call_id,
    number,
    objects,
    require_key,
    string,
    timed_out,
)
from toolloop.providers._failures import normalised_errors
from toolloop.providers.base import ModelRequest, ToolSpec
from toolloop.providers.profiles import Profile, profile_for

if TYPE_CHECKING:
    import httpx2

_BASE_URL: Final = "https://generativelanguage.googleapis.com"
_THINKING_BUDGETS: Final = {"low": 2_048, "medium": 8_192, "high": 24_576}
# The documented stand-in for the signature of a call that another model made.
_FOREIGN_SIGNATURE: Final = "skip_thought_signature_validator"
_MODES: Final = {"auto": "AUTO", "required": "ANY", "none": "NONE"}
_STOPS: Final[dict[str, StopReason]] = {
    "MAX_TOKENS": "length",
    "CONTINUATION": "length",
    "SAFETY": "filter",
    "RECITATION": "filter",
    "LANGUAGE": "filter",
    "BLOCKLIST": "filter",
    "PROHIBITED_CONTENT": "filter",
    "SPII": "filter",
    "IMAGE_SAFETY": "filter",
    "TOO_MANY_TOOL_CALLS": "error",
    "OTHER": "error",
}
# The model wrote something unusable; asking again often helps.
_MALFORMED: Final = frozenset(
    {"MALFORMED_FUNCTION_CALL", "UNEXPECTED_TOOL_CALL", "MALFORMED_RESPONSE"}
)

# The response of the call this task is making: the SDK hands out none, and only its close frees the connection at once.
_responses: ContextVar[list[httpx2.Response] | None] = ContextVar("_responses", default=None)


class GoogleProvider:
    """Adapter for the Gemini API (not Vertex).

    Args:
        api_key: the account's key.
        base_url: scheme and host; None for the official one. The environment is never read.
        http_client: used and closed by this adapter instead of an own one.
        account: key of the native echo; derived from URL and key when empty.
        api_version: "v1", or "v1beta" for preview features and mock servers.

    Raises:
        ConfigurationError: for a missing key, an unusable URL or a missing SDK.
    """

    name: str = "google"

    def __init__(
        self,
        *,
        api_key: str,
        base_url: str | None = None,
        http_client: httpx2.AsyncClient | None = None,
        account: str = "",
        api_version: str = "v1",
    ) -> None:
        genai = import_sdk("google.genai", "google-genai")
        import httpx2

        self._key = require_key(self.name, api_key)
        url = checked_base_url(base_url or _BASE_URL)
        self.account = account or account_of(self.name, url, self._key)
        self._types = genai.types
        # An own client also keeps the SDK from switching to aiohttp where that happens to be installed.
        self._http = http_client or httpx2.AsyncClient(follow_redirects=True)
        self._http.event_hooks["request"].append(_limit_connect)
        self._http.event_hooks["response"].append(_remember)
        self._client = genai.Client(
            vertexai=False,
            api_key=self._key,
            http_options=genai.types.HttpOptions(
                base_url=url, api_version=api_version, httpx_async_client=self._http
            ),
        )

    async def aclose(self) -> None:
        """Close the HTTP client and every open stream with it."""
        await self._client.aio.aclose()
        await self._http.aclose()

    async def stream(self, request: ModelRequest) -> AsyncGenerator[ProviderEvent, None]:
        """Call the model once; see ``toolloop.providers.base.Provider``."""
        deadline = asyncio.get_running_loop().time() + request.timeout_s
        opened: list[httpx2.Response] = []
        try:
            with normalised_errors(self.name, self._key):
                reader = _Reader()
                async with aclosing(await self._open(request, deadline, opened)) as chunks:
                    async for chunk in Until(chunks, deadline):
                        for event in reader.read(_decoded(chunk.body)):
                            yield event
                turn = self._turn(reader, request.model)
        finally:
            for response in opened:
                await response.aclose()
        yield TurnFinished(turn)

    async def _open(
        self, request: ModelRequest, deadline: float, opened: list[httpx2.Response]
    ) -> AsyncGenerator[Any]:
        options = self._types.HttpOptions(timeout=max(1, int(request.timeout_s * 1000)))
        model = request.model if "/" in request.model else f"models/{request.model}"
        path = f"{quote(model, safe='/')}:streamGenerateContent?alt=sse"
        token = _responses.set(opened)
        try:
            async with asyncio.timeout_at(deadline):
                # ``_api_client`` is private, but the one way to the unaltered JSON; a test pins what we use.
                api = self._client._api_client
                chunks: AsyncGenerator[Any] = await api.async_request_streamed(
                    "post", path, self._body(request), options
                )
        except TimeoutError:
            raise timed_out() from None
        finally:
            _responses.reset(token)
        return chunks

    def _body(self, request: ModelRequest) -> dict[str, Any]:
        profile = profile_for(self.name, request.model)
        body: dict[str, Any] = {"contents": self._contents(request, profile)}
        if request.system:
            body["systemInstruction"] = {"parts": [{"text": request.system}]}
        if request.tools:
            body["tools"] = [{"functionDeclarations": [_tool(spec) for spec in request.tools]}]
            mode = _MODES[request.tool_choice]
            body["toolConfig"] = {"functionCallingConfig": {"mode": mode}}
        config: dict[str, Any] = {}
        temperature = request.options.get("temperature")
        effort = request.options.get("effort")
        if temperature is not None and profile.allows_temperature(None):
            config["temperature"] = temperature
        if request.max_output_tokens is not None:
            cap = profile.max_output_tokens or request.max_output_tokens
            config["maxOutputTokens"] = min(request.max_output_tokens, cap)
        if profile.thinking != "none":
            thinking: dict[str, Any] = {"includeThoughts": True}
            if effort in profile.efforts and profile.thinking == "level":
                thinking["thinkingLevel"] = str(effort).upper()
            elif effort in profile.efforts:
                thinking["thinkingBudget"] = _THINKING_BUDGETS[str(effort)]
            config["thinkingConfig"] = thinking
        if request.response_schema is not None:
            config["responseMimeType"] = "application/json"
            config["responseJsonSchema"] = request.response_schema.schema
        if config:
            body["generationConfig"] = config
        return body

    def _contents(self, request: ModelRequest, profile: Profile) -> list[dict[str, Any]]:
        contents: list[dict[str, Any]] = []
        for part in exchanges(request.messages):
            if isinstance(part, UserMessage):
                contents.append({"role": "user", "parts": [{"text": part.text}]})
                continue
            native = native_items(
                part.turn, provider=self.name, model=request.model, account=self.account
            )
            if native is not None and part.whole:
                contents += native
                ids = _native_ids(native)
            else:
                contents += _model_content(part, profile)
                ids = [""] * len(part.calls)
            if part.results:
                contents.append({"role": "user", "parts": _responses_of(part, ids)})
        return contents

    def _turn(self, reader: _Reader, model: str) -> Turn:
        if reader.block_reason:
            raise ContentRefused(
                f"The prompt was blocked by {self.name}: "
                f"{joined(reader.block_reason, reader.block_message)}"
            )
        reason = reader.finish_reason
        if not reason:
            raise cut_stream(self.name)
        if reason in _MALFORMED:
            raise MalformedResponse(
                f"The model's answer was unusable: {joined(reason, reader.finish_message)}"
            )
        if reason == "MISSING_THOUGHT_SIGNATURE":
            raise BadRequest("A call in the history lacks the thought signature it came with.")
        calls = tuple(reader.calls)
        stop = _STOPS.get(reason, "tools" if calls else "end")
        return Turn(
            provider=self.name,
            model=model,
            text=reader.text,
            reasoning=reader.reasoning,
            tool_calls=calls,
            stop=stop,
            stop_detail=joined(reason, reader.finish_message),
            native=(
                [{"role": "model", "parts": reader.parts}]
                if reader.parts and stop in {"end", "tools"}
                else None
            ),
            usage=reader.usage,
            request_id=reader.response_id,
            account=self.account,
        )


class _Reader:
    """Fold the chunks of one answer; ``text`` is always exactly what was yielded as deltas."""

    def __init__(self) -> None:
        self.text = ""
        self.reasoning = ""
        self.parts: list[dict[str, Any]] = []
        self.calls: list[ToolCall] = []
        self.finish_reason = ""
        self.finish_message = ""
        self.block_reason = ""
        self.block_message = ""
        self.response_id = ""
        self.usage = Usage(requests=1)

    def read(self, chunk: dict[str, Any]) -> list[ProviderEvent]:
        """Take one chunk and return the deltas it means."""
        self.response_id = self.response_id or string(chunk.get("responseId"))
        if chunk.get("usageMetadata"):
            self.usage = _usage(mapping(chunk["usageMetadata"]))
        feedback = mapping(chunk.get("promptFeedback"))
        self.block_reason = self.block_reason or string(feedback.get("blockReason"))
        self.block_message = self.block_message or string(feedback.get("blockReasonMessage"))
        candidate = next(iter(objects(chunk.get("candidates"))), {})
        self.finish_reason = string(candidate.get("finishReason")) or self.finish_reason
        self.finish_message = string(candidate.get("finishMessage")) or self.finish_message
        events: list[ProviderEvent] = []
        for part in objects(mapping(candidate.get("content")).get("parts")):
            self._keep(part)
            events += self._events(part)
        return events

    def _events(self, part: dict[str, Any]) -> list[ProviderEvent]:
        text = string(part.get("text"))
        if part.get("thought"):
            self.reasoning += text
            return [ReasoningDelta(text)] if text else []
        if "functionCall" in part:
            return self._call(mapping(part["functionCall"]))
        self.text += text
        return [TextDelta(text)] if text else []

    def _call(self, data: dict[str, Any]) -> list[ProviderEvent]:
        given = data.get("args")
        arguments = {} if given is None else given
        raw = json.dumps(arguments, ensure_ascii=False)
        call_id = string(data.get("id"))
        if not call_id or any(call.id == call_id for call in self.calls):
            call_id = new_call_id()
        name = string(data.get("name"))
        if isinstance(arguments, dict):
            call = ToolCall(call_id, name, arguments, raw)
        else:
            call = ToolCall(call_id, name, None, raw, "the arguments must be a JSON object")
        self.calls.append(call)
        return [ToolCallStarted(call_id, name), ToolArgumentsDelta(call_id, raw)]

    def _keep(self, part: dict[str, Any]) -> None:
        """Append a part for the echo; pieces of plain text become one, a part with anything else stays as it came."""
        plain = set(part) <= {"text", "thought"} and "text" in part
        if plain and not part["text"]:
            return
        if plain and self.parts:
            last = self.parts[-1]
            if set(last) == set(part) and last.get("thought") == part.get("thought"):
                self.parts[-1] = {**last, "text": string(last["text"]) + string(part["text"])}
                return
        self.parts.append(part)


async def _limit_connect(request: httpx2.Request) -> None:
    # The SDK knows one timeout for everything; a host that is not there should be noticed sooner.
    timeout = dict(request.extensions.get("timeout") or {})
    timeout["connect"] = min(timeout.get("connect") or CONNECT_TIMEOUT_S, CONNECT_TIMEOUT_S)
    request.extensions = {**request.extensions, "timeout": timeout}


async def _remember(response: httpx2.Response) -> None:
    opened = _responses.get()
    if opened is not None:
        opened.append(response)


def _decoded(body: str | None) -> dict[str, Any]:
    return mapping(json.loads(body)) if body else {}


def _tool(spec: ToolSpec) -> dict[str, Any]:
    return {
        "name": spec.name,
        "description": spec.description,
        "parametersJsonSchema": spec.parameters,
    }


def _native_ids(native: list[dict[str, Any]]) -> list[str]:
    """Return the ids of the calls as the model gave them, "" for none."""
    return [
        string(mapping(part["functionCall"]).get("id"))
        for content in native
        for part in objects(content.get("parts"))
        if "functionCall" in part
    ]


def _model_content(part: Exchange, profile: Profile) -> list[dict[str, Any]]:
    parts: list[dict[str, Any]] = []
    if part.turn.text and part.turn.stop != "refusal":
        parts.append({"text": part.turn.text})
    for index, call in enumerate(part.calls):
        # Without ids on both sides calls and results are matched by their order.
        call_part: dict[str, Any] = {
            "functionCall": {"name": call.name, "args": call.arguments or {}}
        }
        if index == 0 and profile.thinking == "level":
            call_part["thoughtSignature"] = _FOREIGN_SIGNATURE
        parts.append(call_part)
    return [{"role": "model", "parts": parts}] if parts else []


def _responses_of(part: Exchange, ids: list[str]) -> list[dict[str, Any]]:
    parts: list[dict[str, Any]] = []
    for result, native_id in zip(part.results, ids, strict=True):
        response: dict[str, Any] = {
            "name": result.name,
            "response": {"error" if result.is_error else "output": result.content},
        }
        if native_id:
            response["id"] = native_id
        parts.append({"functionResponse": response})
    return parts


def _usage(data: dict[str, Any]) -> Usage:
    thoughts = number(data.get("thoughtsTokenCount"))
    return Usage(
        input_total=number(data.get("promptTokenCount")),
        cached_read=number(data.get("cachedContentTokenCount")),
        output_total=number(data.get("candidatesTokenCount")) + thoughts,
        reasoning=thoughts,
        requests=1,
    )
