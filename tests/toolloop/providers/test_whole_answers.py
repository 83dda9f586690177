"""An answer in one piece and the same answer streamed are one turn; the body asked for either is one body."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from tests.toolloop.providers import encodings, search_streams
from tests.toolloop.providers.encodings import Call, Script
from tests.toolloop.providers.wires import ANTHROPIC, GOOGLE, OPENAI, Recorder, Wire, play
from toolloop.batches.base import BatchProvider
from toolloop.batches.registry import batches_of
from toolloop.errors import ContentRefused, MalformedResponse, ProviderError, ProviderUnavailable
from toolloop.messages import ModelMessage, ToolResult, Turn, UserMessage

WHOLE: dict[Wire, Callable[[Script], dict[str, Any]]] = {
    OPENAI: encodings.responses_whole,
    ANTHROPIC: encodings.anthropic_whole,
    GOOGLE: encodings.google_whole,
}
every_wire = pytest.mark.parametrize("wire", WHOLE, ids=str)
A, B = Call("call_a"), Call("call_b", raw='{"query": "é", "deep": {"n": [1, 2.5, null]}}')
SCRIPTS = {
    "text": Script(text=["The duty", " is 5 %."]),
    "reasoning": Script(text=["It is", " 5 %."], reasoning="Let me think."),
    "calls": Script(text=["I look."], calls=[A, B], reasoning="Hm."),
    "only calls": Script(calls=[A, B]),
    "length": Script(text=["It is"], stop="length"),
    "no usage": Script(text=["x"], usage=False),
}


def whole_turn(provider: Any, answer: dict[str, Any], model: str) -> Turn:
    turn: Turn = provider.turn(answer, model)
    return turn


@every_wire
@pytest.mark.parametrize("name", SCRIPTS)
async def test_turn_of_a_whole_answer_is_the_turn_of_its_stream(wire: Wire, name: str) -> None:
    script = SCRIPTS[name]
    provider = wire.provider(Recorder(wire.encode(script)))
    whole = whole_turn(provider, WHOLE[wire](script), wire.model)
    _, streamed = await play(provider, wire.request())
    assert whole == streamed
    assert whole.native == streamed.native


@pytest.mark.parametrize("stop", ["refusal", "filter", "pause", "context"])
@every_wire
async def test_stops_are_the_same_in_one_piece(wire: Wire, stop: str) -> None:
    script = Script(text=["No."], stop=stop)
    provider = wire.provider(Recorder(wire.encode(script)))
    whole = whole_turn(provider, WHOLE[wire](script), wire.model)
    _, streamed = await play(provider, wire.request())
    assert whole == streamed


@every_wire
async def test_a_turn_of_a_batch_is_echoed_like_one_of_a_stream(wire: Wire) -> None:
    script = SCRIPTS["calls"]
    provider = wire.provider(Recorder())
    turn = whole_turn(provider, WHOLE[wire](script), wire.model)
    results = [ToolResult(call.id, call.name, "found") for call in turn.tool_calls]
    history: tuple[ModelMessage, ...] = (UserMessage("What is the duty?"), turn, *results)
    recorder = Recorder(wire.encode(Script(text=["5 %."])))
    await play(wire.provider(recorder), wire.request(*history))
    assert [content for _, content, _ in wire.results(recorder.body)] == ["found", "found"]
    assert wire.call_names(recorder.body) == ["search_documents"] * 2


async def test_citations_are_the_same_in_one_piece() -> None:
    stream = search_streams.responses_stream()
    provider = OPENAI.provider(Recorder(stream))
    whole = whole_turn(provider, encodings.events_of(stream)[-1]["response"], OPENAI.model)
    _, streamed = await play(provider, OPENAI.request())
    assert whole.citations
    assert replace(whole, request_id="") == replace(streamed, request_id="")


@every_wire
async def test_a_line_holds_the_body_of_a_call_without_its_stream(wire: Wire) -> None:
    request = wire.request(
        UserMessage("Hello"),
        cache_key="tenant-1",
        user_key="user-1",
        max_output_tokens=1000,
        options={"effort": "low", "temperature": 0.5, "parallel_tool_calls": False},
    )
    recorder = Recorder(wire.encode(Script(text=["x"])))
    await play(wire.provider(recorder), request)
    batches: BatchProvider = batches_of(wire.provider(Recorder()))
    line = json.loads(batches.line("a", request))
    body = line.get("body") or line.get("params") or line.get("request")
    sent = recorder.body
    assert sent.pop("stream", None) is (None if wire is GOOGLE else True)
    assert body == sent
    await batches.aclose()


def test_failures_in_one_piece_are_of_their_kind_and_paid() -> None:
    usage = {"input_tokens": 9, "output_tokens": 1}
    failed = {"status": "failed", "error": {"code": "server_error", "message": "no"}, "usage": usage}
    openai: Any = OPENAI.provider(Recorder())
    with pytest.raises(ProviderUnavailable) as error:
        openai.turn(failed, "gpt-5")
    assert error.value.usage is not None
    assert error.value.usage.input_total == 9
    with pytest.raises(MalformedResponse):
        openai.turn({"status": "completed", "output": []}, "gpt-5")

    google: Any = GOOGLE.provider(Recorder())
    with pytest.raises(ContentRefused):
        google.turn({"promptFeedback": {"blockReason": "SAFETY"}}, "g")
    with pytest.raises(MalformedResponse) as malformed:
        google.turn(
            {
                "candidates": [{"finishReason": "MALFORMED_FUNCTION_CALL"}],
                "usageMetadata": {"promptTokenCount": 5},
            },
            "g",
        )
    assert malformed.value.usage is not None
    assert malformed.value.usage.input_total == 5
    with pytest.raises(ProviderError):
        google.turn({}, "g")
