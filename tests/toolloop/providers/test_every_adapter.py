"""What every adapter must do, through the real SDKs over a mock transport."""

from __future__ import annotations

import asyncio
import gc
import json
from typing import Any

import httpx2
import pytest

from tests.toolloop.providers.wires import (
    ANTHROPIC,
    COMPATIBLE,
    GOOGLE,
    KEY,
    OPENAI,
    SEARCH,
    WIRES,
    XAI,
    Call,
    Recorder,
    Script,
    SlowStream,
    Wire,
    play,
    stored,
)
from toolloop import errors
from toolloop.events import (
    ReasoningDelta,
    TextDelta,
    ToolArgumentsDelta,
    ToolCallStarted,
    TurnFinished,
)
from toolloop.messages import ToolCall, ToolResult, Turn, Usage, UserMessage

every_wire = pytest.mark.parametrize("wire", WIRES, ids=str)
USER = UserMessage("What is the duty?")
A, B, C = Call("call_a"), Call("call_b"), Call("call_c")


def foreign_turn(*calls: Call, **changes: Any) -> Turn:
    """A turn that some other provider wrote."""
    given: dict[str, Any] = {
        "provider": "elsewhere",
        "model": "m",
        "text": "I will look.",
        "tool_calls": tuple(ToolCall(c.id, c.name, json.loads(c.raw), c.raw) for c in calls),
        "stop": "tools" if calls else "end",
        "native": [{"type": "reasoning", "encrypted_content": "SECRET-OF-ANOTHER"}],
        "account": "other",
        **changes,
    }
    return Turn(**given)


def result(call: Call, content: str = "", **changes: Any) -> ToolResult:
    return ToolResult(call.id, call.name, content or f"found for {call.id}", **changes)


# --- streaming -------------------------------------------------------------------------------------------------------


@every_wire
async def test_text_streams_and_adds_up_when_the_model_answers(wire: Wire) -> None:
    recorder = Recorder(wire.encode(Script(text=["The duty", " is 5 %."], reasoning="Hm.")))
    events, turn = await play(wire.provider(recorder), wire.request())

    assert [e.text for e in events if isinstance(e, TextDelta)] == ["The duty", " is 5 %."]
    assert turn.text == "The duty is 5 %."
    assert turn.reasoning == "Hm."
    assert "".join(e.text for e in events if isinstance(e, ReasoningDelta)) == "Hm."
    assert (turn.stop, turn.provider, turn.model) == ("end", wire.name, wire.model)
    assert turn.tool_calls == ()
    assert turn.account
    assert KEY not in turn.account
    assert recorder.requests[0].url.path == wire.path


@every_wire
async def test_calls_are_announced_and_parsed_when_the_model_calls_in_parallel(wire: Wire) -> None:
    recorder = Recorder(wire.encode(Script(text=["Let me see."], calls=[A, B])))
    events, turn = await play(wire.provider(recorder), wire.request())

    assert turn.stop == "tools"
    assert [(c.id, c.name, c.arguments) for c in turn.tool_calls] == [
        ("call_a", "search_documents", {"query": "duty"}),
        ("call_b", "search_documents", {"query": "duty"}),
    ]
    started = [e for e in events if isinstance(e, ToolCallStarted)]
    assert [(e.call_id, e.name) for e in started] == [(c.id, c.name) for c in turn.tool_calls]
    for call in turn.tool_calls:
        pieces = [
            e.delta for e in events if isinstance(e, ToolArgumentsDelta) and e.call_id == call.id
        ]
        assert json.loads("".join(pieces)) == call.arguments


@every_wire
async def test_usage_is_normalised_when_the_provider_reports_it(wire: Wire) -> None:
    _, turn = await play(wire.provider(Recorder(wire.encode(Script(text=["x"])))), wire.request())
    written = 7 if wire in {OPENAI, XAI, ANTHROPIC} else 0
    assert turn.usage == Usage(100, 40, written, 20, 5, requests=1)


@every_wire
async def test_usage_is_zero_when_the_provider_reports_none(wire: Wire) -> None:
    body = wire.encode(Script(text=["x"], usage=False))
    _, turn = await play(wire.provider(Recorder(body)), wire.request())
    assert turn.usage == Usage(requests=1)


# --- calls that are not as they should be ----------------------------------------------------------------------------


@every_wire
async def test_empty_arguments_become_an_empty_object(wire: Wire) -> None:
    body = wire.encode(Script(calls=[Call("call_a", raw="")]))
    _, turn = await play(wire.provider(Recorder(body)), wire.request())
    assert turn.tool_calls[0].arguments == {}
    assert turn.tool_calls[0].problem == ""


@every_wire
@pytest.mark.parametrize("raw", ["[1, 2]", '"text"', "7", "null"])
async def test_problem_is_told_when_arguments_are_no_object(wire: Wire, raw: str) -> None:
    if wire is GOOGLE and raw == "null":
        pytest.skip("args null means no arguments on this wire")
    body = wire.encode(Script(calls=[Call("call_a", raw=raw)]))
    _, turn = await play(wire.provider(Recorder(body)), wire.request())
    assert turn.tool_calls[0].arguments is None
    assert "object" in turn.tool_calls[0].problem


@pytest.mark.parametrize("wire", [OPENAI, XAI, COMPATIBLE, ANTHROPIC], ids=str)
async def test_call_is_marked_and_stop_is_length_when_it_was_truncated(wire: Wire) -> None:
    cut = Call("call_b", raw='{"query": "du')
    recorder = Recorder(
        wire.encode(Script(calls=[A, cut], stop="length")), wire.encode(Script(text=["ok"]))
    )
    provider = wire.provider(recorder)
    turn = None
    async for event in provider.stream(wire.request()):
        if isinstance(event, TurnFinished):
            turn = event.turn
    assert turn is not None
    assert turn.stop == "length"
    assert turn.tool_calls[1].arguments is None
    assert "JSON" in turn.tool_calls[1].problem
    # The next request is valid whether or not somebody answered the calls.
    await play(provider, wire.request(USER, stored(turn), UserMessage("Go on.")))
    assert wire.results(recorder.body) == []
    assert wire.call_names(recorder.body) == []


async def test_stop_is_length_when_gemini_hits_the_limit_beside_a_call() -> None:
    body = GOOGLE.encode(Script(text=["x"], calls=[A], stop="length"))
    _, turn = await play(GOOGLE.provider(Recorder(body)), GOOGLE.request())
    assert turn.stop == "length"
    assert turn.native is None


# --- histories -------------------------------------------------------------------------------------------------------


@every_wire
async def test_results_keep_call_order_when_tools_finished_out_of_order(wire: Wire) -> None:
    first = Recorder(wire.encode(Script(calls=[A, B, C], reasoning="Hm.")))
    _, turn = await play(wire.provider(first), wire.request())
    second = Recorder(wire.encode(Script(text=["done"])))
    history = (USER, stored(turn), result(C), result(A), result(B, "it broke", is_error=True))
    await play(wire.provider(second), wire.request(*history))

    assert wire.results(second.body) == [
        ("call_a", "found for call_a", False),
        ("call_b", "it broke", True),
        ("call_c", "found for call_c", False),
    ]
    assert wire.call_names(second.body) == ["search_documents"] * 3


@every_wire
async def test_turn_is_rendered_without_its_native_form_when_another_provider_wrote_it(
    wire: Wire,
) -> None:
    recorder = Recorder(wire.encode(Script(text=["done"])))
    history = (USER, foreign_turn(A, B), result(A), result(B))
    await play(wire.provider(recorder), wire.request(*history))

    wire_text = recorder.requests[0].content.decode()
    assert "SECRET-OF-ANOTHER" not in wire_text
    assert "I will look." in wire_text
    assert wire.call_names(recorder.body) == ["search_documents"] * 2
    assert [content for _, content, _ in wire.results(recorder.body)] == [
        "found for call_a",
        "found for call_b",
    ]


@every_wire
async def test_native_form_stays_home_when_the_account_is_another(wire: Wire) -> None:
    first = Recorder(wire.encode(Script(text=["x"], calls=[A], reasoning="Hm.")))
    _, turn = await play(wire.provider(first, account="one"), wire.request())
    assert turn.native
    second = Recorder(wire.encode(Script(text=["done"])))
    await play(wire.provider(second, account="two"), wire.request(USER, turn, result(A)))
    sent = second.requests[0].content.decode()
    for secret in ("gA+/==", "Eq+/sig==", "CiQ+/sig==", "reasoning_content"):
        assert secret not in sent


@every_wire
async def test_call_ids_are_the_same_in_every_request_when_they_had_to_be_replaced(
    wire: Wire,
) -> None:
    odd = Call("functions.search:0/" + "x" * 80)
    bodies = []
    for _ in range(2):
        recorder = Recorder(wire.encode(Script(text=["done"])))
        await play(wire.provider(recorder), wire.request(USER, foreign_turn(odd), result(odd)))
        bodies.append(recorder.requests[0].content)
    assert bodies[0] == bodies[1]
    if wire in {OPENAI, XAI, ANTHROPIC}:
        sent_id = wire.results(json.loads(bodies[0]))[0][0]
        assert len(sent_id) <= 64
        assert sent_id.replace("_", "").isalnum()


@every_wire
async def test_unanswered_calls_are_left_out_when_a_run_was_stopped_between(wire: Wire) -> None:
    recorder = Recorder(wire.encode(Script(text=["done"])))
    history = (USER, foreign_turn(A, B), result(A), UserMessage("And now?"))
    await play(wire.provider(recorder), wire.request(*history))
    assert len(wire.call_names(recorder.body)) == len(wire.results(recorder.body)) == 1


@every_wire
async def test_request_is_refused_when_a_result_answers_no_call(wire: Wire) -> None:
    recorder = Recorder(wire.encode(Script(text=["never"])))
    with pytest.raises(errors.BadRequest, match="call_a"):
        await play(wire.provider(recorder), wire.request(USER, result(A)))
    assert recorder.requests == []


@every_wire
async def test_tools_stay_declared_when_they_may_not_be_called(wire: Wire) -> None:
    recorder = Recorder(wire.encode(Script(text=["x"])))
    await play(wire.provider(recorder), wire.request(tool_choice="none"))
    body = recorder.body
    assert SEARCH.name in json.dumps(body["tools"])
    choice = body.get("tool_choice") or body["toolConfig"]["functionCallingConfig"]["mode"]
    assert choice in ("none", {"type": "none"}, "NONE")


@every_wire
async def test_no_identifier_leaves_in_clear_when_keys_are_given(wire: Wire) -> None:
    settings = {"send_keys": True} if wire is COMPATIBLE else {}
    bodies = []
    for _ in range(2):
        recorder = Recorder(wire.encode(Script(text=["x"])))
        request = wire.request(cache_key="tenant-7:conversation-9", user_key="ada@example.org")
        await play(wire.provider(recorder, **settings), request)
        bodies.append(recorder.requests[0].content)
    assert bodies[0] == bodies[1]
    assert b"tenant-7" not in bodies[0]
    assert b"ada@" not in bodies[0]


# --- stops -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("wire", "stop"),
    [
        *((wire, "length") for wire in WIRES),
        *((wire, "filter") for wire in (OPENAI, XAI, COMPATIBLE, GOOGLE)),
        *((wire, "refusal") for wire in (OPENAI, XAI, COMPATIBLE, ANTHROPIC)),
        (ANTHROPIC, "pause"),
        (ANTHROPIC, "context"),
    ],
    ids=lambda value: str(value),
)
async def test_stop_is_normalised(wire: Wire, stop: str) -> None:
    body = wire.encode(Script(text=["I cannot"], stop=stop))
    _, turn = await play(wire.provider(Recorder(body)), wire.request())
    assert turn.stop == stop
    assert turn.text == "I cannot"
    assert turn.stop_detail
    if stop != "pause":
        assert turn.native is None


@pytest.mark.parametrize("wire", [OPENAI, XAI, COMPATIBLE, ANTHROPIC], ids=str)
async def test_refused_turn_is_not_replayed(wire: Wire) -> None:
    first = Recorder(wire.encode(Script(text=["I refuse"], stop="refusal")))
    _, turn = await play(wire.provider(first), wire.request())
    second = Recorder(wire.encode(Script(text=["ok"])))
    await play(wire.provider(second), wire.request(USER, turn, UserMessage("Else?")))
    assert "I refuse" not in second.requests[0].content.decode()


@every_wire
async def test_error_is_retryable_when_the_stream_ends_without_a_terminal_event(
    wire: Wire,
) -> None:
    body = wire.encode(Script(text=["half an ans"], stop=""))
    with pytest.raises(errors.ProviderUnavailable, match="ended before") as caught:
        await play(wire.provider(Recorder(body)), wire.request())
    assert caught.value.retryable


@every_wire
async def test_error_is_retryable_when_the_body_is_empty(wire: Wire) -> None:
    with pytest.raises(errors.ProviderUnavailable):
        await play(wire.provider(Recorder(b"")), wire.request())


# --- errors ----------------------------------------------------------------------------------------------------------

STATUSES = [
    (400, "invalid_request_error", "bad tool schema", errors.BadRequest, False),
    (400, "invalid_request_error", "prompt is too long: 9 > 8", errors.ContextTooLong, False),
    (401, "authentication_error", f"Incorrect key {KEY}", errors.AuthFailed, False),
    (403, "permission_error", "not for you", errors.AuthFailed, False),
    (402, "billing_error", "pay first", errors.QuotaExhausted, False),
    (404, "not_found_error", "no such model", errors.BadRequest, False),
    (408, "timeout_error", "slow", errors.ProviderUnavailable, True),
    (413, "request_too_large", "too big", errors.ContextTooLong, False),
    (429, "rate_limit_error", "slow down", errors.RateLimited, True),
    (429, "insufficient_quota", "no money", errors.QuotaExhausted, False),
    (500, "api_error", "oops", errors.ProviderUnavailable, True),
    (503, "overloaded_error", "busy", errors.ProviderUnavailable, True),
    (529, "overloaded_error", "busy", errors.ProviderUnavailable, True),
]


@every_wire
@pytest.mark.parametrize(
    ("status", "word", "message", "kind", "retryable"), STATUSES, ids=lambda v: str(v)[:24]
)
async def test_status_becomes_a_kind(
    wire: Wire,
    status: int,
    word: str,
    message: str,
    kind: type[errors.ProviderError],
    retryable: bool,
) -> None:
    response = httpx2.Response(status, json=wire.error_body(status, word, message))
    recorder = Recorder(response)
    with pytest.raises(errors.ProviderError) as caught:
        await play(wire.provider(recorder), wire.request())

    assert type(caught.value) is kind
    assert caught.value.retryable is retryable
    assert caught.value.status == status
    assert caught.value.code == kind.code
    assert KEY not in str(caught.value)
    assert caught.value.__cause__ is None
    assert len(recorder.requests) == 1, "the SDK must not retry by itself"


@every_wire
@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({"retry-after": "7"}, 7.0),
        ({"retry-after": "86400"}, 86_400.0),
        ({"retry-after-ms": "250"}, 0.25),
        ({"retry-after": "Wed, 21 Oct 2015 07:28:00 GMT"}, 0.0),
        ({"retry-after": "soon"}, None),
        ({}, None),
    ],
    ids=str,
)
async def test_wait_is_handed_on_and_not_obeyed_when_the_provider_names_one(
    wire: Wire, headers: dict[str, str], seconds: float | None
) -> None:
    body = wire.error_body(429, "rate_limit_error", "slow down")
    recorder = Recorder(httpx2.Response(429, headers=headers, json=body))
    async with asyncio.timeout(5):
        with pytest.raises(errors.RateLimited) as caught:
            await play(wire.provider(recorder), wire.request())
    assert caught.value.retry_after_s == seconds
    assert len(recorder.requests) == 1


@every_wire
@pytest.mark.parametrize("status", [400, 502])
async def test_error_has_a_kind_when_its_body_is_html(wire: Wire, status: int) -> None:
    recorder = Recorder(httpx2.Response(status, text="<html>Bad gateway</html>"))
    with pytest.raises(errors.ProviderError) as caught:
        await play(wire.provider(recorder), wire.request())
    assert caught.value.retryable is (status == 502)
    assert caught.value.message


@every_wire
@pytest.mark.parametrize(
    "failure",
    [
        httpx2.ConnectError("refused"),
        httpx2.ReadTimeout("slow"),
        httpx2.RemoteProtocolError("cut"),
        httpx2.PoolTimeout("full"),
    ],
    ids=lambda f: type(f).__name__,
)
async def test_error_is_retryable_when_the_connection_fails(wire: Wire, failure: Exception) -> None:
    calls = 0

    def handler(request: httpx2.Request) -> httpx2.Response:
        nonlocal calls
        calls += 1
        raise failure

    with pytest.raises(errors.ProviderUnavailable) as caught:
        await play(wire.provider(handler), wire.request())
    assert caught.value.retryable
    assert calls == 1


@every_wire
@pytest.mark.parametrize(
    "failure", [httpx2.ReadTimeout("slow"), httpx2.RemoteProtocolError("cut")], ids=repr
)
async def test_error_is_retryable_when_the_stream_breaks(wire: Wire, failure: Exception) -> None:
    async def break_off() -> None:
        raise failure

    body = SlowStream([wire.encode(Script(text=["half"], stop=""))], break_off)
    provider = wire.provider(Recorder(httpx2.Response(200, stream=body)))
    stream = provider.stream(wire.request())
    assert isinstance(await anext(stream), TextDelta)
    with pytest.raises(errors.ProviderUnavailable):
        await anext(stream)
    assert body.closed
    await provider.aclose()


@every_wire
async def test_error_is_retryable_when_a_chunk_is_broken_json(wire: Wire) -> None:
    body = wire.encode(Script(text=["x"], stop="")) + b'event: ping2\ndata: {"type": \n\n'
    with pytest.raises(errors.MalformedResponse) as caught:
        await play(wire.provider(Recorder(body)), wire.request())
    assert caught.value.retryable


@every_wire
@pytest.mark.parametrize("junk", [b"data: null\n\n", b"data: [1]\n\n", b'data: {"usage": 7}\n\n'])
async def test_unknown_chunks_are_ignored(wire: Wire, junk: bytes) -> None:
    if wire is ANTHROPIC:
        junk = b"event: news\n" + junk
    body = junk + wire.encode(Script(text=["x"]))
    _, turn = await play(wire.provider(Recorder(body)), wire.request())
    assert turn.text == "x"


# --- time and closing ------------------------------------------------------------------------------------------------


async def forever() -> None:
    await asyncio.Event().wait()


@every_wire
async def test_call_ends_at_its_time_limit_when_the_stream_stalls(wire: Wire) -> None:
    body = SlowStream([wire.encode(Script(text=["half"], stop=""))], forever)
    provider = wire.provider(Recorder(httpx2.Response(200, stream=body)))
    stream = provider.stream(wire.request(timeout_s=0.2))
    assert isinstance(await anext(stream), TextDelta)
    async with asyncio.timeout(5):
        with pytest.raises(errors.ProviderUnavailable) as caught:
            await anext(stream)
    assert caught.value.code == "provider_timeout"
    assert body.closed
    await provider.aclose()


@every_wire
async def test_call_ends_at_its_time_limit_when_no_answer_begins(wire: Wire) -> None:
    async def handler(request: httpx2.Request) -> httpx2.Response:
        await forever()
        raise AssertionError

    async with asyncio.timeout(5):
        with pytest.raises(errors.ProviderUnavailable) as caught:
            await play(wire.provider(handler), wire.request(timeout_s=0.2))
    assert caught.value.code == "provider_timeout"


@every_wire
async def test_response_is_closed_when_the_generator_is_closed_early(wire: Wire) -> None:
    body = SlowStream([wire.encode(Script(text=["half"], stop=""))], forever)
    provider = wire.provider(Recorder(httpx2.Response(200, stream=body)))
    stream = provider.stream(wire.request())
    assert isinstance(await anext(stream), TextDelta)
    await stream.aclose()  # type: ignore[attr-defined]
    assert body.closed, "closing must not wait for the garbage collector"
    await provider.aclose()


@every_wire
async def test_response_is_closed_when_the_task_is_cancelled(wire: Wire) -> None:
    body = SlowStream([wire.encode(Script(text=["half"], stop=""))], forever)
    provider = wire.provider(Recorder(httpx2.Response(200, stream=body)))
    seen = asyncio.Event()

    async def consume() -> None:
        async for _ in provider.stream(wire.request()):
            seen.set()

    task = asyncio.create_task(consume())
    await asyncio.wait_for(seen.wait(), 5)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert body.closed
    await provider.aclose()
    gc.collect()


@every_wire
async def test_http_client_is_closed_with_the_adapter(wire: Wire) -> None:
    from toolloop.providers.registry import make_provider

    client = httpx2.AsyncClient(transport=httpx2.MockTransport(Recorder()))
    provider = make_provider(wire.name, api_key=KEY, http_client=client, **wire.settings)
    await provider.aclose()
    assert client.is_closed


# --- parameters ------------------------------------------------------------------------------------------------------


@every_wire
async def test_unknown_model_gets_no_risky_parameter(wire: Wire) -> None:
    recorder = Recorder(wire.encode(Script(text=["x"])))
    options = {"temperature": 0.3, "effort": "high", "colour": "ultraviolet"}
    request = wire.request(model="brand-new", options=options, tool_choice="required")
    await play(wire.provider(recorder), request)
    sent = recorder.requests[0].content.decode()
    assert "ultraviolet" not in sent
    assert "high" not in sent
    assert "inking" not in sent
    assert ("temperature" in sent) is (wire is COMPATIBLE)


@every_wire
async def test_schema_is_sent_unaltered(wire: Wire) -> None:
    recorder = Recorder(wire.encode(Script(text=["x"])))
    await play(wire.provider(recorder), wire.request())
    assert json.dumps(SEARCH.parameters) in json.dumps(recorder.body["tools"])
