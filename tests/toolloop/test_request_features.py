"""Files, searches and deferred tools where a request passes through wrappers: fallback, planner, cache."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.toolloop.providers.encodings import Script
from tests.toolloop.providers.wires import ANTHROPIC, COMPATIBLE, OPENAI, Recorder
from tests.toolloop.test_media import PNG
from toolloop.errors import BadRequest, ProviderError, ProviderUnavailable, UnsupportedFeature
from toolloop.fallback import FallbackProvider
from toolloop.media import Media
from toolloop.messages import ToolCall, ToolResult, Turn, UserMessage
from toolloop.planner_executor import PlannerExecutor
from toolloop.providers.base import ModelRequest, ToolSpec
from toolloop.providers.scripted import ScriptedProvider, fails, says
from toolloop.response_cache import CachedProvider, MemoryCache
from toolloop.server_tools import WebSearch

IMAGE = Media.from_bytes(PNG)
SEES = UserMessage("What is it?", parts=(IMAGE,))
EMPTY = {"type": "object", "properties": {}}


def asked(*messages: Any, **changes: Any) -> ModelRequest:
    return ModelRequest("m", "", messages or (UserMessage("Hi"),), **changes)


async def text_of(provider: Any, request: ModelRequest) -> str:
    turn = None
    async for event in provider.stream(request):
        turn = getattr(event, "turn", None)
    assert isinstance(turn, Turn)
    return turn.text


def blind() -> tuple[Any, str]:
    """A model without images; a request to it would fail for want of an answer."""
    return COMPATIBLE.provider(Recorder()), COMPATIBLE.model


async def test_model_that_lacks_what_is_needed_is_passed_over() -> None:
    sees = ANTHROPIC.provider(Recorder(ANTHROPIC.encode(Script(text=["A cat."]))))
    busy = ScriptedProvider([fails(ProviderUnavailable("busy"))])
    chain = FallbackProvider([(busy, "m"), blind(), (sees, ANTHROPIC.model)])
    assert await text_of(chain, asked(SEES)) == "A cat."


async def test_first_failure_is_told_when_no_other_model_has_what_is_needed() -> None:
    busy = ScriptedProvider([fails(ProviderUnavailable("busy"))])
    chain = FallbackProvider([(busy, "m"), blind()])
    with pytest.raises(ProviderError, match="busy") as caught:
        await text_of(chain, asked(SEES))
    assert caught.value.retryable, "it may pass, and the loop should ask again"


async def test_lack_is_told_when_the_preferred_model_has_it() -> None:
    """Who chose a model that cannot do what is asked should notice."""
    provider, model = blind()
    spare = ScriptedProvider([says("never")])
    with pytest.raises(UnsupportedFeature, match="doesn't accept images"):
        await text_of(FallbackProvider([(provider, model), (spare, "m")]), asked(SEES))
    with pytest.raises(BadRequest):
        await text_of(FallbackProvider([blind()]), asked(SEES))


async def test_planner_sees_files_and_not_what_it_cannot_find() -> None:
    planner = ScriptedProvider([says(json.dumps({"calls": [], "answer": "A cat."}))])
    provider = PlannerExecutor(planner)
    tools = [ToolSpec("near", "Near.", EMPTY), ToolSpec("far", "Far.", EMPTY, deferred=True)]
    call = ToolCall("c", "near", {}, "{}")
    history = (
        SEES,
        Turn("p", "m", tool_calls=(call,), stop="tools"),
        ToolResult("c", "near", "Here.", parts=(IMAGE,)),
    )
    assert await text_of(provider, asked(*history, tools=tools)) == "A cat."
    (request,) = planner.requests
    parts = [message.parts for message in request.messages if isinstance(message, UserMessage)]
    assert parts == [(IMAGE,), (IMAGE,)]
    assert "near" in request.system
    assert "far" not in request.system


async def test_answers_with_a_search_of_the_web_are_not_kept() -> None:
    inner = ScriptedProvider([says("Monday."), says("Tuesday.")])
    provider = CachedProvider(inner, MemoryCache())
    request = asked(server_tools=(WebSearch(),))
    assert [await text_of(provider, request) for _ in range(2)] == ["Monday.", "Tuesday."]


async def test_answers_to_other_files_are_other_answers() -> None:
    inner = ScriptedProvider([says("A cat."), says("A dog.")])
    provider = CachedProvider(inner, MemoryCache())
    other = UserMessage("What is it?", parts=(Media.from_bytes(PNG + b"2"),))
    texts = [await text_of(provider, asked(message)) for message in (SEES, other, SEES)]
    assert texts == ["A cat.", "A dog.", "A cat."]


async def test_openai_tool_without_a_search_is_sent_as_before() -> None:
    recorder = Recorder(OPENAI.encode(Script(text=["x"])))
    spec = ToolSpec("near", "Near.", EMPTY, finder=True)
    await text_of(OPENAI.provider(recorder), OPENAI.request(tools=[spec]))
    assert set(recorder.body["tools"][0]) == {"type", "name", "description", "parameters", "strict"}
