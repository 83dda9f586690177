"""The five wires as one table, and the tools to play a call over each of them."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import httpx2

from tests.toolloop.providers import encodings
from tests.toolloop.providers.encodings import Script
from toolloop.events import ProviderEvent, TurnFinished
from toolloop.messages import ModelMessage, Turn, UserMessage
from toolloop.providers.base import ModelRequest, Provider, ToolSpec
from toolloop.providers.registry import make_provider

KEY = "sk-test-0123456789abcdef"
SEARCH = ToolSpec(
    "search_documents",
    "Search the documents.",
    {
        "type": "object",
        "properties": {"query": {"type": "string"}},
        "required": ["query"],
        "additionalProperties": False,
    },
)


@dataclass(frozen=True, eq=False)
class Wire:
    """One provider: how to make it, how it answers, and where its request keeps things."""

    name: str
    model: str
    encode: Callable[[Script], bytes]
    results: Callable[[dict[str, Any]], list[tuple[str, str, bool]]]
    call_names: Callable[[dict[str, Any]], list[str]]
    error_body: Callable[[int, str, str], dict[str, Any]]
    path: str
    settings: dict[str, Any] = field(default_factory=dict)

    def provider(self, handler: Any, **settings: Any) -> Provider:
        client = httpx2.AsyncClient(transport=httpx2.MockTransport(handler))
        return make_provider(self.name, http_client=client, **{"api_key": KEY, **self.settings, **settings})

    def request(self, *messages: ModelMessage, **changes: Any) -> ModelRequest:
        given: dict[str, Any] = {
            "model": self.model,
            "system": "Be brief.",
            "messages": messages or (UserMessage("What is the duty?"),),
            "tools": (SEARCH,),
            **changes,
        }
        return ModelRequest(**given)

    def __str__(self) -> str:
        return self.name


def answer(body: bytes, **headers: str) -> httpx2.Response:
    return httpx2.Response(200, headers={"content-type": "text/event-stream", **headers}, content=body)


class Recorder:
    """A handler that answers with the given bodies in turn and keeps the requests."""

    def __init__(self, *bodies: bytes | httpx2.Response) -> None:
        self.bodies = list(bodies)
        self.requests: list[httpx2.Request] = []

    def __call__(self, request: httpx2.Request) -> httpx2.Response:
        self.requests.append(request)
        body = self.bodies.pop(0)
        return answer(body) if isinstance(body, bytes) else body

    @property
    def body(self) -> dict[str, Any]:
        """The JSON body of the last request."""
        loaded: dict[str, Any] = json.loads(self.requests[-1].content)
        return loaded


class SlowStream(httpx2.AsyncByteStream):
    """A response body that hands out pieces, then waits or fails, and knows whether it was closed."""

    def __init__(self, pieces: Sequence[bytes], then: Callable[[], Any] | None = None) -> None:
        self.pieces = pieces
        self.then = then
        self.closed = False

    async def __aiter__(self) -> AsyncIterator[bytes]:
        for piece in self.pieces:
            yield piece
        if self.then is not None:
            await self.then()

    async def aclose(self) -> None:
        self.closed = True


async def play(provider: Provider, request: ModelRequest) -> tuple[list[ProviderEvent], Turn]:
    """Run one call to its end and close the adapter."""
    try:
        events = [event async for event in provider.stream(request)]
    finally:
        await provider.aclose()
    assert isinstance(events[-1], TurnFinished)
    assert sum(isinstance(event, TurnFinished) for event in events) == 1
    return events, events[-1].turn


def stored(turn: Turn) -> Turn:
    """Send a turn through the journal: JSON text and back."""
    from toolloop.messages import message_from_json

    loaded = message_from_json(json.loads(json.dumps(turn.to_json())))
    assert isinstance(loaded, Turn)
    return loaded


OPENAI = Wire(
    "openai",
    "gpt-5",
    encodings.responses_body,
    encodings.responses_results,
    encodings.responses_calls,
    encodings.openai_error,
    "/v1/responses",
)
XAI = Wire(
    "xai",
    "grok-4.5",
    encodings.responses_body,
    encodings.responses_results,
    encodings.responses_calls,
    encodings.openai_error,
    "/v1/responses",
)
COMPATIBLE = Wire(
    "compatible",
    "llama3",
    encodings.chat_body,
    encodings.chat_results,
    encodings.chat_calls,
    encodings.openai_error,
    "/v1/chat/completions",
    {"base_url": "http://localhost:11434/v1"},
)
ANTHROPIC = Wire(
    "anthropic",
    "claude-sonnet-5-5",
    encodings.anthropic_body,
    encodings.anthropic_results,
    encodings.anthropic_calls,
    encodings.anthropic_error,
    "/v1/messages",
)
GOOGLE = Wire(
    "google",
    "gemini-3.8-flash",
    encodings.google_body,
    encodings.google_results,
    encodings.google_calls,
    encodings.google_error,
    "/v1/models/gemini-3.8-flash:streamGenerateContent",
)
WIRES = (OPENAI, XAI, COMPATIBLE, ANTHROPIC, GOOGLE)
