"""Gemini over streamGenerateContent. Wire facts: https://ai.google.dev/api/generate-content.

The google-genai package gives client, authentication, URLs and errors; requests and answers pass as plain JSON. Its typed
path is lossy, which breaks the echo of thought signatures: it drops fields it does not know and rewrites base64 in the
other alphabet. It would also call functions and continue answers by itself; below that path it cannot.
"""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncGenerator
from contextlib import aclosing, closing
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import quote

from toolloop.errors import BadRequest, ContentRefused, MalformedResponse
from toolloop.events import ProviderEvent, TurnFinished
from toolloop.messages import StopReason, Turn, UserMessage
from toolloop.providers._common import (
    CONNECT_TIMEOUT_S,
    Until,
    account_of,
    checked_base_url,
    cut_stream,
    import_sdk,
    joined,
    json_body,
    mapping,
    options_sent,
    require_key,
    string,
    timed_out,
)
from toolloop.providers._exchanges import Exchange, exchanges, native_items
from toolloop.providers._failures import billed, counted, normalised_errors
from toolloop.providers._google_stream import GeminiReader
from toolloop.providers._media import GOOGLE_MEDIA, gemini_parts, media_check, result_label
from toolloop.providers._server_tools import gemini_server_tools, server_tools_check
from toolloop.providers.base import ModelRequest, ToolSpec
from toolloop.providers.profiles import Profile, profile_for
from toolloop.service import service_checked

if TYPE_CHECKING:
    import httpx2

    from toolloop.providers._calls import GoogleCalls

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
_MALFORMED: Final = frozenset({"MALFORMED_FUNCTION_CALL", "UNEXPECTED_TOOL_CALL", "MALFORMED_RESPONSE"})

# For the connections that the SDK could open beside the given client's and never does. It would read the authorities'
# certificates for three kinds of them: 45 ms of CPU for each adapter.
_TRUSTS_NOBODY: Final = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
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
        self._types, self._errors = genai.types, genai.errors
        # An own client also keeps the SDK from switching to aiohttp where that happens to be installed.
        self._http = http_client or httpx2.AsyncClient(follow_redirects=True)
        self._http.event_hooks["request"].append(_limit_connect)
        self._http.event_hooks["response"].append(_remember)
        self._client = genai.Client(
            vertexai=False,
            api_key=self._key,
            http_options=genai.types.HttpOptions(
                base_url=url,
                api_version=api_version,
                httpx_async_client=self._http,
                client_args={"verify": _TRUSTS_NOBODY},
                async_client_args={"verify": _TRUSTS_NOBODY, "ssl": _TRUSTS_NOBODY},
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
        reader = GeminiReader()
        try:
            with billed(request, self.name, reader.total_usage), normalised_errors(self.name, self._key):
                async with aclosing(await self._open(request, deadline, opened)) as chunks:
                    with closing(Until(chunks, deadline)) as timed:
                        async for chunk in timed:
                            for event in reader.read(self._checked(chunk)):
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
                # ``_api_client`` is private, but the one way to the unaltered JSON; a test pins what we use. Its
                # ``async_request_streamed`` does the same, but encodes each chunk again.
                api = self._client._api_client
                call = api._build_request("post", path, {}, options)
                call.data = json_body(self.body(request))
                response = await api._async_request(call, options, stream=True)
        except TimeoutError:
            raise timed_out() from None
        finally:
            _responses.reset(token)
        chunks: AsyncGenerator[Any] = response.async_segments()
        return chunks

    def _checked(self, chunk: object) -> dict[str, Any]:
        """Return a chunk of the stream, or raise what the SDK raises for an error that comes as one."""
        data = mapping(chunk)
        if next(iter(data), "") == "error":
            raise self._errors.APIError(mapping(data["error"]).get("code"), data)
        return data

    def calls(self) -> GoogleCalls:
        """Return calls of the same account beside those of models."""
        from toolloop.providers._calls import GoogleCalls

        return GoogleCalls(self._client, self._http, name=self.name, key=self._key)

    def turn(self, answer: dict[str, Any], model: str) -> Turn:
        """Return the turn of a whole answer, as ``stream`` makes it.

        Raises:
            ProviderError: the prompt was blocked, or what the model wrote can't be used.
        """
        reader = GeminiReader()
        with counted(reader.total_usage):
            reader.read(answer)
            return self._turn(reader, model)

    def body(self, request: ModelRequest) -> dict[str, Any]:
        """Return a request as JSON, without what asks for a stream; raise BadRequest for what the model can't take."""
        profile = request.profile or profile_for(self.name, request.model)
        media_check(request, GOOGLE_MEDIA, provider=self.name, profile=profile)
        server_tools_check(request, profile, self.name)
        body: dict[str, Any] = {"contents": self._contents(request, profile)}
        if request.system:
            body["systemInstruction"] = {"parts": [{"text": request.system}]}
        served = gemini_server_tools(request)
        specs = [spec for spec in request.tools if not spec.deferred]
        if specs:
            body["tools"] = [{"functionDeclarations": [_tool(spec) for spec in specs]}]
            mode = _MODES[request.tool_choice]
            body["toolConfig"] = {"functionCallingConfig": {"mode": mode}}
            if served:
                # Beside functions, its own calls must come back with the history.
                body["toolConfig"]["includeServerSideToolInvocations"] = True
        if served:
            body["tools"] = [*body.get("tools", ()), *served]
        config: dict[str, Any] = {}
        effort = request.options.get("effort")
        if profile.allows_temperature(None):
            config |= options_sent(request, temperature="temperature", topP="top_p")
        if profile.stop_sequences:
            config |= options_sent(request, stopSequences="stop")
        config |= options_sent(request, seed="seed")
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
        service = service_checked(request.options, profile, request.model)
        if service.tier:
            body["serviceTier"] = service.tier
        return body

    def _contents(self, request: ModelRequest, profile: Profile) -> list[dict[str, Any]]:
        contents: list[dict[str, Any]] = []
        for part in exchanges(request.messages):
            if isinstance(part, UserMessage):
                parts = gemini_parts(part.parts)
                if part.text or not parts:
                    parts.append({"text": part.text})
                contents.append({"role": "user", "parts": parts})
                continue
            native = native_items(part.turn, provider=self.name, model=request.model, account=self.account)
            if native is not None and part.whole:
                contents += native
                ids = _native_ids(native)
            else:
                contents += _model_content(part, profile)
                ids = [""] * len(part.calls)
            if part.results:
                contents.append({"role": "user", "parts": _responses_of(part, ids)})
            for result in part.results:
                if result.parts:
                    label = {"text": result_label(result)}
                    files = [label, *gemini_parts(result.parts)]
                    contents.append({"role": "user", "parts": files})
        return contents

    def _turn(self, reader: GeminiReader, model: str) -> Turn:
        if reader.block_reason:
            raise ContentRefused(
                f"The prompt was blocked by {self.name}: {joined(reader.block_reason, reader.block_message)}"
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
            usage=reader.total_usage(),
            request_id=reader.response_id,
            account=self.account,
            citations=reader.citations(),
            service_tier=reader.service_tier,
        )


async def _limit_connect(request: httpx2.Request) -> None:
    # The SDK knows one timeout for everything; a host that is not there should be noticed sooner.
    timeout = dict(request.extensions.get("timeout") or {})
    timeout["connect"] = min(timeout.get("connect") or CONNECT_TIMEOUT_S, CONNECT_TIMEOUT_S)
    request.extensions = {**request.extensions, "timeout": timeout}


async def _remember(response: httpx2.Response) -> None:
    opened = _responses.get()
    if opened is not None:
        opened.append(response)


def _tool(spec: ToolSpec) -> dict[str, Any]:
    return {"name": spec.name, "description": spec.description, "parametersJsonSchema": spec.parameters}


def _native_ids(native: list[dict[str, Any]]) -> list[str]:
    """Return the ids of the calls as the model gave them, "" for none."""
    return [
        string(mapping(part["functionCall"]).get("id"))
        for content in native
        for part in content.get("parts") or ()
        if "functionCall" in part
    ]


def _model_content(part: Exchange, profile: Profile) -> list[dict[str, Any]]:
    parts: list[dict[str, Any]] = []
    if part.turn.text and part.turn.stop != "refusal":
        parts.append({"text": part.turn.text})
    for index, call in enumerate(part.calls):
        # Without ids on both sides calls and results are matched by their order.
        call_part: dict[str, Any] = {"functionCall": {"name": call.name, "args": call.arguments or {}}}
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
