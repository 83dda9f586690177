"""Events come in pieces that end anywhere, and request bodies hold what JSON libraries disagree about."""

from __future__ import annotations

import asyncio
import gzip
import json
import tracemalloc
from collections.abc import AsyncIterator
from types import MappingProxyType
from typing import Any

import httpx2
import pytest

from tests.patience import PATIENCE_S
from toolloop.errors import ProviderUnavailable
from toolloop.providers._common import json_body
from toolloop.providers._sse import EventDecoder, EventReader

STREAM = (
    ": a comment\n"
    'event: first\ndata: {"text": "grüße \U0001f642"}\nid: 7\n\n'
    "event: ping\n\n"
    "data:one\r\ndata: two\r\n\r\n"
    "retry: 10\rdata: last\r\r"
    "data: never finished"
).encode()
EVENTS = [("first", '{"text": "grüße \U0001f642"}'), ("", "one\ntwo"), ("", "last")]


@pytest.mark.parametrize("size", [1, 2, 3, 5, 7, 64, 10_000])
def test_events_are_the_same_when_pieces_end_anywhere(size: int) -> None:
    decoder, found = EventDecoder(), []
    for start in range(0, len(STREAM), size):
        found += decoder.feed(STREAM[start : start + size])
    assert found == EVENTS


def test_crlf_is_one_line_end_when_it_is_cut_in_two() -> None:
    decoder = EventDecoder()
    assert decoder.feed(b"data: a\r") == []
    assert decoder.feed(b"\ndata: b\r") == []
    assert decoder.feed(b"\n\r") == [("", "a\nb")]
    assert decoder.feed(b"\n") == []


def test_an_event_is_refused_when_it_is_not_utf_8() -> None:
    with pytest.raises(UnicodeDecodeError):
        EventDecoder().feed(b"data: \xff\n\n")


def test_a_long_line_is_not_copied_for_each_piece_when_it_comes_in_many() -> None:
    decoder, piece = EventDecoder(), b"x" * 1000
    decoder.feed(b"data: ")
    for _ in range(19_500):
        decoder.feed(piece)
    taken = 0
    tracemalloc.start()
    try:
        for _ in range(500):
            tracemalloc.reset_peak()
            before = tracemalloc.get_traced_memory()[0]
            decoder.feed(piece)
            taken += tracemalloc.get_traced_memory()[1] - before
    finally:
        tracemalloc.stop()
    [(_, data)] = decoder.feed(b"\n\n")
    assert len(data) == 20_000_000
    assert taken < 100_000_000, taken  # bytes; a buffer may grow by copying now and then, not 500 times


class Body(httpx2.AsyncByteStream):
    """A body in pieces; None is a silence that does not end."""

    def __init__(self, *pieces: bytes | None) -> None:
        self.pieces, self.is_closed = pieces, False

    async def __aiter__(self) -> AsyncIterator[bytes]:
        for piece in self.pieces:
            if piece is None:
                await asyncio.sleep(60)
            else:
                yield piece

    async def aclose(self) -> None:
        self.is_closed = True


def reader(body: Body, seconds: float = 5.0) -> EventReader:
    request = httpx2.Request("POST", "http://example.test/")
    response = httpx2.Response(200, stream=body, request=request)
    return EventReader(response, asyncio.get_running_loop().time() + seconds)


async def test_what_has_come_counts_and_waiting_ends_when_the_deadline_passes() -> None:
    body = Body(b"data: 1\n\ndata: 2\n\n", None)
    events = reader(body, 0.05)
    assert await anext(events) == ("", "1")
    await asyncio.sleep(0.1)  # the consumer's own time is not the stream's
    assert await anext(events) == ("", "2")
    with pytest.raises(ProviderUnavailable) as caught:
        await anext(events)
    assert caught.value.code == "provider_timeout"
    await events.aclose()
    assert body.is_closed


async def test_nothing_is_left_for_the_loop_to_close_when_reading_stops_early() -> None:
    left: list[Any] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, context: left.append(context))
    body = Body(b"data: 1\n\n", b"data: 2\n\n")
    events = reader(body)
    assert await anext(events) == ("", "1")
    before = asyncio.all_tasks()
    await events.aclose()
    del events
    await asyncio.sleep(0)
    assert body.is_closed
    assert asyncio.all_tasks() == before
    assert not left


async def test_draining_gives_up_when_the_server_keeps_silent() -> None:
    events = reader(Body(b"data: 1\n\n", None))
    await anext(events)
    async with asyncio.timeout(PATIENCE_S):
        await events.drain()
    await events.aclose()


def nested(levels: int) -> dict[str, Any]:
    value: dict[str, Any] = {}
    for _ in range(levels):
        value = {"a": value}
    return value


@pytest.mark.parametrize(
    "body",
    [
        {"a": 1, "b": [True, None, 1.5, -0.0, 1e300, 2**70], "text": 'ü\u2028\n"\\\x00'},
        nested(400),
        {"schema": MappingProxyType({"type": "object"}), "pair": (1, 2)},
    ],
)
def test_a_body_says_what_json_says_when_it_is_unusual(body: dict[str, Any]) -> None:
    assert json.loads(json_body(body)) == json.loads(json.dumps(body, default=dict))


def test_a_body_stays_valid_json_when_a_model_wrote_no_number() -> None:
    assert json.loads(json_body({"a": float("nan"), "b": float("-inf")})) == {"a": None, "b": None}


def test_half_a_surrogate_pair_is_named_when_a_body_holds_one() -> None:
    with pytest.raises(UnicodeEncodeError):
        json_body({"text": "\ud800"})


async def test_a_body_that_the_server_has_compressed_is_read_as_any_other() -> None:
    packed = gzip.compress(b"data: 1\n\ndata: 2\n\n")
    request = httpx2.Request("POST", "http://example.test/")
    body = Body(packed[:10], packed[10:])
    response = httpx2.Response(200, headers={"Content-Encoding": "gzip"}, stream=body, request=request)
    events = EventReader(response, asyncio.get_running_loop().time() + PATIENCE_S)
    assert [event async for event in events] == [("", "1"), ("", "2")]
    await events.aclose()
    assert body.is_closed
