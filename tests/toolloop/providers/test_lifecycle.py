"""Clients over real sockets: event loops that come and go, threads, cancelled tasks, cut connections."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import pytest

from tests.toolloop.providers.encodings import Script
from tests.toolloop.providers.wires import KEY, WIRES, Wire, play
from toolloop import errors
from toolloop.events import TextDelta, TurnFinished
from toolloop.providers.base import Provider
from toolloop.providers.registry import make_provider

every_wire = pytest.mark.parametrize("wire", WIRES, ids=str)
Write = Callable[[bytes], Awaitable[None]]


@dataclass
class Server:
    """A bare HTTP/1.1 server: ``behave`` writes the chunks of each answer."""

    behave: Callable[[Write], Awaitable[None]]
    status: bytes = b"200 OK"
    headers: bytes = b"content-type: text/event-stream"
    port: int = 0
    connections: int = 0
    requests: int = 0
    hung_up: asyncio.Event = field(default_factory=asyncio.Event)

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1

        async def write(chunk: bytes) -> None:
            writer.write(b"%x\r\n%b\r\n" % (len(chunk), chunk))
            await writer.drain()

        try:
            while True:
                head = (await reader.readuntil(b"\r\n\r\n")).decode().lower()
                length = int(head.split("content-length:")[1].split("\r\n")[0])
                await reader.readexactly(length)
                self.requests += 1
                writer.write(b"HTTP/1.1 " + self.status + b"\r\n" + self.headers + b"\r\n")
                writer.write(b"transfer-encoding: chunked\r\n\r\n")
                await self.behave(write)
                await write(b"")
        except (asyncio.IncompleteReadError, ConnectionError):
            self.hung_up.set()
        finally:
            writer.close()


@asynccontextmanager
async def running(server: Server) -> AsyncIterator[Server]:
    listener = await asyncio.start_server(server.serve, "127.0.0.1", 0)
    server.port = listener.sockets[0].getsockname()[1]
    try:
        yield server
    finally:
        listener.close()


def connect(wire: Wire, server: Server) -> Provider:
    suffix = "" if wire.name in {"anthropic", "google"} else "/v1"
    url = f"http://127.0.0.1:{server.port}{suffix}"
    return make_provider(wire.name, **{**wire.settings, "api_key": KEY, "base_url": url})


def answering(wire: Wire) -> Callable[[Write], Awaitable[None]]:
    async def behave(write: Write) -> None:
        for line in wire.encode(Script(text=["one", "two"])).splitlines(keepends=True):
            await write(line)

    return behave


@every_wire
def test_three_event_loops_in_a_row_each_get_an_answer(wire: Wire) -> None:
    async def once() -> str:
        async with running(Server(answering(wire))) as server:
            _, turn = await play(connect(wire, server), wire.request())
            return turn.text

    assert [asyncio.run(once()) for _ in range(3)] == ["onetwo"] * 3


@every_wire
def test_threads_with_their_own_loops_do_not_disturb_each_other(wire: Wire) -> None:
    texts: list[str] = []

    async def several() -> None:
        async with running(Server(answering(wire))) as server:
            for _ in range(3):
                _, turn = await play(connect(wire, server), wire.request())
                texts.append(turn.text)

    threads = [threading.Thread(target=lambda: asyncio.run(several())) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert texts == ["onetwo"] * 9


@every_wire
async def test_connection_is_used_again_when_a_run_takes_several_turns(wire: Wire) -> None:
    async with running(Server(answering(wire))) as server:
        provider = connect(wire, server)
        for _ in range(3):
            last: Any = None
            async for event in provider.stream(wire.request()):
                last = event
            assert isinstance(last, TurnFinished)
        await provider.aclose()
        assert server.requests == 3
        assert server.connections == 1


@every_wire
async def test_two_calls_at_once_do_not_mix(wire: Wire) -> None:
    async with running(Server(answering(wire))) as server:
        provider = connect(wire, server)

        async def text() -> str:
            parts = [e async for e in provider.stream(wire.request()) if isinstance(e, TextDelta)]
            return "".join(part.text for part in parts)

        assert await asyncio.gather(*(text() for _ in range(5))) == ["onetwo"] * 5
        await provider.aclose()


def stalling(wire: Wire) -> Callable[[Write], Awaitable[None]]:
    async def behave(write: Write) -> None:
        await write(wire.encode(Script(text=["half"], stop="")))
        while True:  # a write to a closed socket is how a server notices
            await asyncio.sleep(0.01)
            await write(b": keep-alive\n\n")

    return behave


@every_wire
async def test_server_sees_the_connection_close_when_the_generator_is_closed(wire: Wire) -> None:
    async with running(Server(stalling(wire))) as server:
        provider = connect(wire, server)
        stream = provider.stream(wire.request())
        assert isinstance(await anext(stream), TextDelta)
        await stream.aclose()  # type: ignore[attr-defined]
        await asyncio.wait_for(server.hung_up.wait(), 1)
        await provider.aclose()


@every_wire
async def test_server_sees_the_connection_close_when_the_task_is_cancelled(wire: Wire) -> None:
    async with running(Server(stalling(wire))) as server:
        provider = connect(wire, server)
        started = asyncio.Event()

        async def consume() -> None:
            try:
                async for _ in provider.stream(wire.request()):
                    started.set()
            finally:
                await provider.aclose()

        task = asyncio.create_task(consume())
        await asyncio.wait_for(started.wait(), 5)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await asyncio.wait_for(server.hung_up.wait(), 1)


@every_wire
async def test_error_is_retryable_when_the_connection_is_cut_mid_way(wire: Wire) -> None:
    async def behave(write: Write) -> None:
        await write(wire.encode(Script(text=["half"], stop="")))
        raise ConnectionResetError

    async with running(Server(behave)) as server:
        provider = connect(wire, server)
        stream = provider.stream(wire.request())
        assert isinstance(await anext(stream), TextDelta)
        with pytest.raises(errors.ProviderUnavailable) as caught:
            await anext(stream)
        assert caught.value.retryable
        assert server.requests == 1
        await provider.aclose()


@every_wire
async def test_error_is_retryable_when_nobody_listens(wire: Wire) -> None:
    async with running(Server(answering(wire))) as server:
        pass
    with pytest.raises(errors.ProviderUnavailable) as caught:
        await play(connect(wire, server), wire.request())
    assert caught.value.retryable
    assert KEY not in str(caught.value)


@every_wire
async def test_error_body_is_read_when_it_arrives_in_pieces(wire: Wire) -> None:
    body = json.dumps(wire.error_body(429, "rate_limit_error", "slow down, please")).encode()

    async def behave(write: Write) -> None:
        for start in range(0, len(body), 9):
            await write(body[start : start + 9])

    headers = b"content-type: application/json\r\nretry-after: 120"
    async with running(Server(behave, b"429 Too Many Requests", headers)) as server:
        with pytest.raises(errors.RateLimited, match="slow down, please") as caught:
            await play(connect(wire, server), wire.request())
        assert caught.value.retry_after_s == 120
        assert server.requests == 1
