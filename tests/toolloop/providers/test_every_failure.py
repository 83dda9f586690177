"""How every adapter fails, times out and closes, through the real SDKs over a mock transport."""

from __future__ import annotations

import asyncio
import gc

import httpx2
import pytest

from tests.toolloop.providers.encodings import Call, Script
from tests.toolloop.providers.wires import ANTHROPIC, KEY, WIRES, Recorder, SlowStream, Wire, play
from toolloop import errors
from toolloop.events import TextDelta, TurnFinished

every_wire = pytest.mark.parametrize("wire", WIRES, ids=str)
A = Call("call_a")


@every_wire
async def test_error_is_retryable_when_the_stream_ends_without_a_terminal_event(wire: Wire) -> None:
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
    wire: Wire, status: int, word: str, message: str, kind: type[errors.ProviderError], retryable: bool
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
    assert type(failure).__name__ not in caught.value.message
    assert calls == 1


@every_wire
@pytest.mark.parametrize("failure", [httpx2.ReadTimeout("slow"), httpx2.RemoteProtocolError("cut")], ids=repr)
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
    gc.freeze()  # the look below is for what this test leaves; through a whole run's it takes half a second
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
async def test_stream_may_be_driven_by_another_task_for_every_event(wire: Wire) -> None:
    """The loop awaits each event in a task of its own, so that it can be interrupted."""
    provider = wire.provider(Recorder(wire.encode(Script(text=["a", "b"], calls=[A]))))
    stream = provider.stream(wire.request())
    events = []

    async def following() -> object:
        return await anext(stream, None)

    while (event := await asyncio.create_task(following())) is not None:
        events.append(event)
    assert isinstance(events[-1], TurnFinished)
    await asyncio.create_task(stream.aclose())  # type: ignore[attr-defined]
    await provider.aclose()


@every_wire
async def test_response_is_closed_by_another_task_while_its_event_is_awaited(wire: Wire) -> None:
    body = SlowStream([wire.encode(Script(text=["half"], stop=""))], forever)
    provider = wire.provider(Recorder(httpx2.Response(200, stream=body)))
    stream = provider.stream(wire.request())

    async def following() -> object:
        return await anext(stream)

    assert isinstance(await asyncio.create_task(following()), TextDelta)
    waiting = asyncio.create_task(following())
    await asyncio.sleep(0.01)
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    assert body.closed
    await stream.aclose()  # type: ignore[attr-defined]
    await provider.aclose()


@every_wire
async def test_http_client_is_closed_with_the_adapter(wire: Wire) -> None:
    from toolloop.providers.registry import make_provider

    client = httpx2.AsyncClient(transport=httpx2.MockTransport(Recorder()))
    provider = make_provider(wire.name, api_key=KEY, http_client=client, **wire.settings)
    await provider.aclose()
    assert client.is_closed


@every_wire
async def test_absent_host_is_noticed_long_before_the_time_limit(wire: Wire) -> None:
    recorder = Recorder(wire.encode(Script(text=["x"])))
    await play(wire.provider(recorder), wire.request(timeout_s=600))
    timeout = recorder.requests[0].extensions["timeout"]
    assert timeout["connect"] <= 10
    assert timeout["read"] == 600
