"""The table of faults, second half: answers that break off or are unusable. Every provider, through the loop."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import httpx2
import pytest

from tests.toolloop.providers.encodings import Call, Script, sse
from tests.toolloop.providers.faults import (
    CALL,
    FAST,
    begun,
    broken,
    good,
    half_call,
    half_text,
    refused,
    run,
    spent,
    stalled,
    stream_error,
)
from tests.toolloop.providers.test_lifecycle import Server, Write, connect, running
from tests.toolloop.providers.wires import ANTHROPIC, COMPATIBLE, GOOGLE, OPENAI, WIRES, XAI, Wire
from toolloop.events import StepReset, TextDelta, ToolCallStarted, ToolRunning
from toolloop.limits import Limits
from toolloop.tokens import Usage

every_wire = pytest.mark.parametrize("wire", WIRES, ids=str)
CUTS = pytest.mark.parametrize(
    "by", [None, httpx2.RemoteProtocolError("cut"), httpx2.ReadTimeout("slow")], ids=repr
)

# --- cut streams -----------------------------------------------------------------------------------------------------


@every_wire
@CUTS
async def test_nothing_is_taken_back_when_a_stream_is_cut_before_it_said_anything(
    wire: Wire, by: Exception | None
) -> None:
    outcome = await run(wire, broken(b": hello\n\n", by=by), good(wire))
    assert (outcome.end.status, outcome.end.text) == ("completed", "All is well.")
    assert outcome.resets == []
    assert len(outcome.bodies) == 2
    assert outcome.end.usage == spent(wire)


@every_wire
@CUTS
async def test_what_was_shown_is_taken_back_when_a_stream_is_cut_in_its_text(
    wire: Wire, by: Exception | None
) -> None:
    outcome = await run(wire, broken(half_text(wire), by=by), good(wire))
    assert (outcome.end.status, outcome.end.text) == ("completed", "All is well.")
    assert [type(event) for event in outcome.events[:3]] == [TextDelta, StepReset, TextDelta]
    assert len(outcome.resets) == 1
    assert outcome.shown == "All is well."
    assert outcome.bodies[0] == outcome.bodies[1], "half an answer is no history"
    assert len(outcome.bodies) == 2
    assert outcome.end.usage == begun(wire) + spent(wire)


@every_wire
@CUTS
async def test_no_tool_is_run_when_a_stream_is_cut_in_its_arguments(wire: Wire, by: Exception | None) -> None:
    whole = wire.encode(Script(calls=[CALL]))
    outcome = await run(wire, broken(half_call(wire), by=by), whole, good(wire))
    assert (outcome.end.status, outcome.end.text) == ("completed", "All is well.")
    assert outcome.ran == ["duty"], "once, and from the whole call"
    assert len(outcome.resets) == 1
    kinds = [type(event) for event in outcome.events]
    assert kinds.index(ToolCallStarted) < kinds.index(StepReset) < kinds.index(ToolRunning)
    assert outcome.bodies[0] == outcome.bodies[1]
    assert len(outcome.bodies) == 3
    assert outcome.end.usage == begun(wire) + spent(wire, 2)


@every_wire
async def test_partial_text_stays_when_every_attempt_is_cut(wire: Wire) -> None:
    cuts = [broken(half_text(wire)) for _ in range(3)]
    limits = Limits(max_retries=2, retry_min_s=0.01, retry_max_s=0.02)
    outcome = await run(wire, *cuts, limits=limits)
    assert (outcome.end.status, outcome.end.error_code) == ("failed", "stream_cut")
    assert outcome.end.retryable
    assert outcome.end.text == outcome.shown == "Half an ans"
    assert len(outcome.resets) == 2
    assert len(outcome.bodies) == 3
    assert outcome.end.usage == begun(wire) + begun(wire) + begun(wire)


@every_wire
async def test_run_is_answered_when_a_socket_is_cut_in_mid_answer(wire: Wire) -> None:
    """The same over a real connection, which the server drops between two chunks."""
    served = 0

    async def behave(write: Write) -> None:
        nonlocal served
        served += 1
        if served == 1:
            await write(half_text(wire))
            raise ConnectionResetError
        await write(good(wire))

    async with running(Server(behave)) as server:
        outcome = await run(wire, provider=connect(wire, server), limits=FAST)
        assert (outcome.end.status, outcome.end.text) == ("completed", "All is well.")
        assert len(outcome.resets) == 1
        assert server.requests == 2


@every_wire
async def test_stalled_stream_ends_with_the_run_and_keeps_what_was_shown(wire: Wire) -> None:
    limits = Limits(max_seconds=0.3, final_seconds=0.2)
    async with asyncio.timeout(5):
        outcome = await run(wire, stalled(half_text(wire)), limits=limits)
    assert (outcome.end.status, outcome.end.error_code) == ("failed", "deadline")
    assert outcome.end.text == "Half an ans"
    assert len(outcome.bodies) == 1


# --- events that are none --------------------------------------------------------------------------------------------


@every_wire
async def test_step_is_asked_again_when_an_event_is_broken_json(wire: Wire) -> None:
    body = half_text(wire) + b'event: message_delta\ndata: {"type": \n\n'
    outcome = await run(wire, body, good(wire))
    assert (outcome.end.status, outcome.shown) == ("completed", "All is well.")
    assert outcome.resets == ["malformed_response"]
    assert len(outcome.bodies) == 2
    assert outcome.end.usage == begun(wire) + spent(wire)


@every_wire
@pytest.mark.parametrize(
    ("status", "word", "code"),
    [
        (529, "overloaded_error", "provider_unavailable"),
        (500, "server_error", "provider_unavailable"),
        (429, "rate_limit_error", "rate_limited"),
    ],
)
@pytest.mark.parametrize("visible", [False, True], ids=["at-once", "after-text"])
async def test_step_is_asked_again_when_a_stream_reports_an_error_that_may_pass(
    wire: Wire, status: int, word: str, code: str, visible: bool
) -> None:
    before = half_text(wire) if visible else b""
    outcome = await run(wire, before + stream_error(wire, status, word), good(wire))
    assert (outcome.end.status, outcome.shown) == ("completed", "All is well.")
    assert outcome.resets == ([code] if visible else [])
    assert len(outcome.bodies) == 2
    assert outcome.end.usage == (begun(wire) if visible else Usage()) + spent(wire)


@every_wire
@pytest.mark.parametrize(
    ("status", "word", "code"),
    [
        (429, "insufficient_quota", "quota_exhausted"),
        (401, "authentication_error", "auth_failed"),
        (400, "context_length_exceeded", "context_too_long"),
    ],
)
async def test_run_fails_after_one_request_when_a_stream_reports_an_error_that_stays(
    wire: Wire, status: int, word: str, code: str
) -> None:
    outcome = await run(wire, half_text(wire) + stream_error(wire, status, word))
    assert (outcome.end.status, outcome.end.error_code) == ("failed", code)
    assert outcome.end.text == "Half an ans"
    assert outcome.resets == []
    assert len(outcome.bodies) == 1


@pytest.mark.parametrize("wire", [OPENAI, XAI], ids=str)
@pytest.mark.parametrize(
    ("error", "status", "code"),
    [
        ({"code": "server_error", "message": "oops"}, "completed", ""),
        ({"code": "rate_limit_exceeded", "message": "oops"}, "completed", ""),
        ({"code": "insufficient_quota", "message": "oops"}, "failed", "quota_exhausted"),
        ({"code": "invalid_prompt", "message": "flagged"}, "failed", "content_refused"),
    ],
    ids=lambda value: str(value)[:40],
)
async def test_failed_response_is_counted_once_and_asked_again_only_when_it_may_pass(
    wire: Wire, error: dict[str, str], status: str, code: str
) -> None:
    usage = {"input_tokens": 9, "output_tokens": 1}
    response = {"id": "r", "status": "failed", "error": error, "output": [], "usage": usage}
    failed = sse({"type": "response.failed", "response": response}, named=True)
    outcome = await run(wire, failed, *([good(wire)] if status == "completed" else []))
    assert (outcome.end.status, outcome.end.error_code) == (status, code)
    told = Usage(input_total=9, output_total=1, requests=1)
    assert outcome.end.usage == (told + spent(wire) if status == "completed" else told)


# --- answers without one -----------------------------------------------------------------------------------------------

EMPTY: list[tuple[Wire, bytes]] = [
    (
        wire,
        sse(
            {"type": "response.completed", "response": {"id": "r", "status": "completed", "output": []}},
            named=True,
        ),
    )
    for wire in (OPENAI, XAI)
] + [
    (COMPATIBLE, sse({"id": "c", "choices": []}, {"id": "c", "choices": None}, done=True)),
    (ANTHROPIC, sse({"type": "message_start", "message": {"id": "m"}}, named=True)),
    (GOOGLE, sse({"candidates": []}, {"candidates": None}, {"responseId": "g"})),
]


@pytest.mark.parametrize(("wire", "body"), EMPTY, ids=lambda value: str(value)[:10])
async def test_step_is_asked_again_when_there_is_no_choice_in_the_answer(wire: Wire, body: bytes) -> None:
    outcome = await run(wire, body, good(wire))
    assert (outcome.end.status, outcome.end.text) == ("completed", "All is well.")
    assert outcome.resets == []
    assert len(outcome.bodies) == 2


@every_wire
async def test_empty_answer_is_an_answer_when_the_model_ended_it_itself(wire: Wire) -> None:
    """Models do end a turn without a word, after a tool's result above all; asking again would give the same."""
    script = Script(reasoning="Nothing to add.")
    outcome = await run(wire, wire.encode(script))
    assert (outcome.end.status, outcome.end.text, outcome.end.stop) == ("completed", "", "end")
    assert len(outcome.bodies) == 1


@pytest.mark.parametrize("reason", ["MALFORMED_FUNCTION_CALL", "UNEXPECTED_TOOL_CALL"])
async def test_unusable_call_of_gemini_is_counted_and_asked_again(reason: str) -> None:
    usage = {"promptTokenCount": 9, "candidatesTokenCount": 1}
    bad = sse({"candidates": [{"finishReason": reason}], "usageMetadata": usage})
    outcome = await run(GOOGLE, bad, good(GOOGLE))
    assert outcome.end.status == "completed"
    told = Usage(input_total=9, output_total=1, requests=1)
    assert outcome.end.usage == told + spent(GOOGLE)


# --- calls that must not run ---------------------------------------------------------------------------------------------


@every_wire
async def test_no_tool_is_run_when_its_turn_was_cut_off_by_the_output_limit(wire: Wire) -> None:
    raw = CALL.raw if wire is GOOGLE else '{"query": "du'
    cut = wire.encode(Script(calls=[CALL, Call("call_b", raw=raw)], stop="length"))
    outcome = await run(wire, cut, good(wire))
    assert (outcome.end.status, outcome.end.text) == ("completed", "All is well.")
    assert outcome.ran == []
    assert [f.result.error_code for f in outcome.results] == ["truncated", "truncated"]
    told = wire.results(outcome.bodies[1])
    assert len(told) == 2
    assert all("cut off" in content for _, content, _ in told)
    assert outcome.end.usage == spent(wire, 2)


@pytest.mark.parametrize("wire", [OPENAI, XAI, COMPATIBLE, ANTHROPIC], ids=str)
async def test_no_tool_is_run_when_its_arguments_are_no_json(wire: Wire) -> None:
    bad = wire.encode(Script(calls=[Call("call_a", raw='{"query": "du')]))
    outcome = await run(wire, bad, good(wire))
    assert outcome.end.status == "completed"
    assert outcome.ran == []
    (finished,) = outcome.results
    assert finished.result.error_code == "invalid_arguments"
    assert "JSON" in wire.results(outcome.bodies[1])[0][1]


FILTERED: list[tuple[Wire, str]] = [
    (ANTHROPIC, "refusal"),
    *((wire, "filter") for wire in (OPENAI, XAI, COMPATIBLE, GOOGLE)),
]


@pytest.mark.parametrize(("wire", "stop"), FILTERED, ids=str)
async def test_no_tool_is_run_when_the_turn_was_refused_or_filtered(wire: Wire, stop: str) -> None:
    outcome = await run(wire, wire.encode(Script(text=["I "], calls=[CALL], stop=stop)))
    assert (outcome.end.status, outcome.end.stop) == ("completed", stop)
    assert outcome.ran == []
    assert len(outcome.bodies) == 1
    assert outcome.end.usage == spent(wire)


# --- refusals --------------------------------------------------------------------------------------------------------

REFUSALS: list[tuple[Wire, str]] = [
    *((wire, "refusal") for wire in (OPENAI, XAI, COMPATIBLE, ANTHROPIC)),
    *((wire, "filter") for wire in (OPENAI, XAI, COMPATIBLE, GOOGLE)),
]


@pytest.mark.parametrize(("wire", "stop"), REFUSALS, ids=str)
async def test_refusal_is_an_end_that_says_so(wire: Wire, stop: str) -> None:
    outcome = await run(wire, wire.encode(Script(text=["I cannot."], stop=stop)))
    assert (outcome.end.status, outcome.end.stop) == ("completed", stop)
    assert outcome.end.text == "I cannot."
    assert outcome.resets == []
    assert len(outcome.bodies) == 1
    assert outcome.end.usage == spent(wire)


def gemini_block() -> bytes:
    return sse({"promptFeedback": {"blockReason": "SAFETY", "blockReasonMessage": "no"}})


def anthropic_block() -> bytes:
    return ANTHROPIC.encode(Script(stop="refusal"))


def chat_block() -> bytes:
    return COMPATIBLE.encode(Script(stop="filter"))


def responses_block() -> bytes:
    return OPENAI.encode(Script(stop="filter"))


@pytest.mark.parametrize(
    ("wire", "block", "status", "stop", "code"),
    [
        (GOOGLE, gemini_block, "failed", "error", "content_refused"),
        (ANTHROPIC, anthropic_block, "completed", "refusal", ""),
        (COMPATIBLE, chat_block, "completed", "filter", ""),
        (OPENAI, responses_block, "completed", "filter", ""),
        (XAI, responses_block, "completed", "filter", ""),
    ],
    ids=["google", "anthropic", "compatible", "openai", "xai"],
)
async def test_blocked_prompt_ends_the_run_after_one_request(
    wire: Wire, block: Callable[[], Any], status: str, stop: str, code: str
) -> None:
    outcome = await run(wire, block())
    assert (outcome.end.status, outcome.end.stop, outcome.end.error_code) == (status, stop, code)
    assert outcome.end.text == ""
    assert not outcome.end.retryable
    assert len(outcome.bodies) == 1


@every_wire
async def test_later_step_is_asked_again_without_running_its_tools_twice(wire: Wire) -> None:
    calls = wire.encode(Script(calls=[CALL]))
    outcome = await run(wire, calls, refused(wire, 500, "api_error"), broken(half_text(wire)), good(wire))
    assert (outcome.end.status, outcome.end.text) == ("completed", "All is well.")
    assert outcome.ran == ["duty"]
    assert [event.step for event in outcome.events if isinstance(event, StepReset)] == [1]
    assert outcome.bodies[1] == outcome.bodies[2] == outcome.bodies[3]
    assert outcome.end.usage == begun(wire) + spent(wire, 2)
