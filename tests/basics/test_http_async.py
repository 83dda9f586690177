"""The transport of models' clients, on real sockets: what servers do well, and what they do badly. On both event loops."""

from __future__ import annotations

import asyncio
import contextlib
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from pathlib import Path
from typing import Any

import httpx2
import pytest
import uvloop

from basics import http_async, http_connection
from basics.http_async import AsyncioTransport, http_client
from tests.certificates import certificate
from tests.patience import PATIENCE_S
from tests.servers import free_port

Serve = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]
Run = Callable[[Coroutine[Any, Any, None]], None]
TLS = httpx2.create_ssl_context()
OK = b"HTTP/1.1 200 OK\r\n"


@pytest.fixture(params=[asyncio.run, uvloop.run], ids=["asyncio", "uvloop"])
def run(request: pytest.FixtureRequest) -> Run:
    found: Run = request.param
    return found


async def asked(reader: asyncio.StreamReader) -> bytes:
    """Return the head of a request, with the body that its length tells of."""
    head = await reader.readuntil(b"\r\n\r\n")
    for line in head.split(b"\r\n"):
        if line.lower().startswith(b"content-length:"):
            head += await reader.readexactly(int(line.split(b":")[1]))
    return head


@contextlib.asynccontextmanager
async def server(serve: Serve, **settings: Any) -> AsyncIterator[str]:
    """Serve each connection by a function, and yield the URL."""

    async def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(OSError, asyncio.IncompleteReadError):
            await serve(reader, writer)
        writer.close()

    listening = await asyncio.start_server(connected, "127.0.0.1", 0, **settings)
    try:
        yield f"http://127.0.0.1:{listening.sockets[0].getsockname()[1]}"
    finally:
        listening.close()


def saying(*answers: bytes) -> Serve:
    """Return a server that gives these answers one after the other, and closes."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        for answer in answers:
            await asked(reader)
            writer.write(answer)
            await writer.drain()

    return serve


def client(connections: int = 4, **timeouts: float) -> httpx2.AsyncClient:
    timeout = httpx2.Timeout(30, **timeouts)
    transport = AsyncioTransport(verify=TLS, keepalive=2, connections=connections)
    return httpx2.AsyncClient(transport=transport, timeout=timeout)


@pytest.mark.parametrize(
    ("answer", "body"),
    [
        (OK + b"Content-Length: 5\r\n\r\nhello", b"hello"),
        (
            OK + b"Transfer-Encoding: chunked\r\n\r\n2\r\nhe\r\n3;x=y\r\nllo\r\n0\r\nTrailer: a\r\n\r\n",
            b"hello",
        ),
        (OK + b"\r\nhello", b"hello"),
        (OK.replace(b"\r", b"") + b"Content-Length: 5\n\nhello", b"hello"),
        (b"HTTP/1.0 200 OK\r\nContent-Length: 5\r\n\r\nhello", b"hello"),
        (b"HTTP/1.1 100 Continue\r\nX: y\r\n\r\n" + OK + b"Content-Length: 5\r\n\r\nhello", b"hello"),
        (b"HTTP/1.1 204 None\r\n\r\n", b""),
    ],
)
def test_answer_is_read_however_it_is_delimited(run: Run, answer: bytes, body: bytes) -> None:
    async def ask() -> None:
        for step in (len(answer), 1):  # in one piece, and byte by byte

            async def serve(
                reader: asyncio.StreamReader, writer: asyncio.StreamWriter, step: int = step
            ) -> None:
                await asked(reader)
                for at in range(0, len(answer), step):
                    writer.write(answer[at : at + step])
                    await asyncio.sleep(0)

            async with server(serve) as url, client() as http:
                response = await http.post(url, content=b"hi", headers={"X-Key": "k"})
                assert response.content == body
                assert "x" not in response.headers

    run(ask())


def test_request_arrives_as_it_was_made(run: Run) -> None:
    heard: list[bytes] = []

    async def ask() -> None:
        async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            heard.append(await asked(reader))
            writer.write(OK + b"Content-Length: 0\r\n\r\n")
            heard.append(await reader.readuntil(b"0\r\n\r\n"))
            writer.write(OK + b"Content-Length: 0\r\n\r\n")

        async def pieces() -> AsyncIterator[bytes]:
            for piece in (b"ab", b"", b"c" * 20):
                yield piece

        async with server(serve) as url, client() as http:
            await http.post(url + "/a b?c=ü", content=b"hi", headers={"X-Key": "k"})
            await http.put(url + "/2", content=pieces())

    run(ask())
    assert heard[0].startswith(b"POST /a%20b?c=%C3%BC HTTP/1.1\r\nHost: 127.0.0.1:")
    assert b"\r\nX-Key: k\r\n" in heard[0]
    assert heard[0].endswith(b"\r\n\r\nhi")
    assert heard[1].startswith(b"PUT /2 HTTP/1.1\r\n")
    assert heard[1].endswith(b"\r\n\r\n2\r\nab\r\n14\r\n" + b"c" * 20 + b"\r\n0\r\n\r\n")


def test_what_would_be_a_second_request_is_not_sent(run: Run) -> None:
    heard: list[bytes] = []

    async def ask() -> None:
        async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            heard.append(await reader.read(1))

        async with server(serve) as url, client() as http:
            for headers in (
                {b"X-Key": b"a\r\nX-Other: b"},
                {b"X-Key: a\r\nX": b"b"},
                {b"X": b"a\nb"},
                {b"": b"x"},
            ):
                with pytest.raises(httpx2.LocalProtocolError):
                    await http.get(url, headers=[*headers.items()])

    run(ask())
    assert not any(heard)


@pytest.mark.parametrize(
    ("answer", "error"),
    [
        (b"", httpx2.RemoteProtocolError),
        (OK, httpx2.RemoteProtocolError),
        (OK + b"Content-Length: 9\r\n\r\nhello", httpx2.RemoteProtocolError),
        (OK + b"Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n", httpx2.RemoteProtocolError),
        (b"SSH-2.0-OpenSSH_9.6\r\n", httpx2.ReadError),
        (OK + b"Transfer-Encoding: chunked\r\n\r\nnonsense", httpx2.ReadError),
        (b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\n", httpx2.ReadError),
        (OK + b"X: " + b"y" * (http_connection.MOST_HEAD + 1), httpx2.ReadError),
    ],
)
def test_answer_that_is_none_is_an_error(run: Run, answer: bytes, error: type[Exception]) -> None:
    async def ask() -> None:
        async with server(saying(answer)) as url, client() as http:
            with pytest.raises(error):
                await http.get(url)

    run(ask())


def test_connection_is_used_again_only_after_a_whole_answer(run: Run) -> None:
    connections = 0

    async def ask() -> None:
        async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            nonlocal connections
            connections += 1
            while True:
                head = await asked(reader)
                if b"/close" in head:
                    writer.write(OK + b"Connection: close\r\nContent-Length: 2\r\n\r\nhi")
                    return
                if b"/more" in head:  # something that nobody has asked for comes after the answer
                    writer.write(OK + b"Content-Length: 2\r\n\r\nhi" + OK + b"Content-Length: 3\r\n\r\nbad")
                else:
                    writer.write(OK + b"Content-Length: 2\r\n\r\nhi")

        async with server(serve) as url, client() as http:
            for path, opened in [("/", 1), ("/", 1), ("/close", 1), ("/", 2), ("/more", 2), ("/", 3)]:
                assert (await http.get(url + path)).content == b"hi"
                assert connections == opened, path
            async with http.stream("GET", url) as response:  # left before it is read
                assert response.status_code == 200
            await http.head(url)
            assert connections == 3
            assert (await http.get(url)).content == b"hi"
            assert connections > 3

    run(ask())


def test_connection_that_the_server_has_closed_meanwhile_is_not_used(run: Run) -> None:
    async def ask() -> None:
        async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await asked(reader)
            writer.write(OK + b"Content-Length: 2\r\n\r\nhi")
            await writer.drain()

        transport = AsyncioTransport(verify=TLS, keepalive=2, connections=4)
        async with server(serve) as url, httpx2.AsyncClient(transport=transport) as http:
            for _ in range(3):
                assert (await http.get(url)).content == b"hi"
                async with asyncio.timeout(PATIENCE_S):
                    while any(kept.is_reusable for idle in transport._idle.values() for _, kept in idle):  # noqa: ASYNC110
                        await asyncio.sleep(0.001)

    run(ask())


def test_answer_to_a_request_that_was_refused_half_way_is_read(run: Run) -> None:
    async def ask() -> None:
        async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await reader.readuntil(b"\r\n\r\n")
            writer.write(b"HTTP/1.1 413 Too Large\r\nContent-Length: 4\r\n\r\nmany")
            await writer.drain()
            await reader.read()

        async with server(serve) as url, client() as http:
            assert (await http.post(url, content=b"x" * 3_000_000)).status_code == 413

    run(ask())


def test_reader_that_is_slow_holds_the_server_up(run: Run) -> None:
    size, sent = 30_000_000, 0

    async def ask() -> None:
        async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            nonlocal sent
            await asked(reader)
            writer.write(OK + b"Content-Length: %d\r\n\r\n" % size)
            for _ in range(size // 100_000):
                writer.write(b"x" * 100_000)
                await writer.drain()
                sent += 100_000

        async with server(serve) as url, client() as http, http.stream("GET", url) as response:
            before = -1
            while before != sent:  # until the server can't send any more
                before = sent
                await asyncio.sleep(0.1)
            assert sent < size
            assert sum([len(piece) async for piece in response.aiter_bytes()]) == size

    run(ask())


def test_time_limits(run: Run) -> None:
    async def ask() -> None:
        async def silent(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await reader.read()

        async with server(silent) as url:
            async with client(read=0.05) as http:
                with pytest.raises(httpx2.ReadTimeout):
                    await http.get(url)
            async with client(connections=1, pool=0.05) as http:
                first = asyncio.create_task(http.get(url))
                await asyncio.sleep(0.05)
                with pytest.raises(httpx2.PoolTimeout):
                    await http.get(url)
                first.cancel()
                with pytest.raises(asyncio.CancelledError):
                    await first
            async with client(write=0.05) as http:

                async def pieces() -> AsyncIterator[bytes]:
                    while True:
                        yield b"x" * 1_000_000

                async with server(lambda r, w: asyncio.sleep(30), limit=1024) as deaf:
                    with pytest.raises(httpx2.WriteTimeout):
                        await http.post(deaf, content=pieces())

    run(ask())


class TurnedClock:
    """An event loop whose time a test turns."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.now, self.timers = 100.0, dict[asyncio.TimerHandle, float]()
        self.create_future = loop.create_future
        self._loop = loop

    def time(self) -> float:
        return self.now

    def call_at(self, when: float, callback: Callable[[], None]) -> asyncio.TimerHandle:
        handle = asyncio.TimerHandle(when, callback, (), self._loop)
        self.timers[handle] = when
        return handle

    async def turn(self, seconds: float) -> None:
        self.now += seconds
        for handle, when in list(self.timers.items()):
            if when <= self.now:
                del self.timers[handle]
                if not handle.cancelled():
                    handle._run()
        await asyncio.sleep(0)

    @property
    def waiting(self) -> list[float]:
        return [when for handle, when in self.timers.items() if not handle.cancelled()]


async def test_silence_is_counted_from_the_last_piece() -> None:
    connection = http_connection.Connection()
    clock = TurnedClock(asyncio.get_running_loop())
    connection._loop = clock  # type: ignore[assignment]
    connection.data_received(OK + b"Content-Length: 6\r\n\r\n")
    for piece in (b"a", b"b"):
        reading = asyncio.create_task(connection.body(timeout_s=10))
        await asyncio.sleep(0)
        await clock.turn(9)
        connection.data_received(piece)
        assert await reading == piece
    reading = asyncio.create_task(connection.body(timeout_s=10))
    await asyncio.sleep(0)
    await clock.turn(9)
    assert not reading.done()
    await clock.turn(1)
    with pytest.raises(httpx2.ReadTimeout):
        await reading
    # Who waits for less than the one before is told in time, and who waits without end never.
    reading = asyncio.create_task(connection.body(timeout_s=10))
    await asyncio.sleep(0)
    connection.data_received(b"c")
    assert await reading == b"c"
    reading = asyncio.create_task(connection.body(timeout_s=1))
    await asyncio.sleep(0)
    await clock.turn(1)
    with pytest.raises(httpx2.ReadTimeout):
        await reading
    reading = asyncio.create_task(connection.body(timeout_s=None))
    await asyncio.sleep(0)
    await clock.turn(1000)
    connection.data_received(b"d")
    assert await reading == b"d"
    reading = asyncio.create_task(connection.body(timeout_s=10))
    await asyncio.sleep(0)
    connection.data_received(b"ef")
    assert await reading == b"ef"
    assert not clock.waiting  # an answer that is over leaves no timer, which would keep the connection


def test_who_is_cancelled_gives_the_connection_back(run: Run) -> None:
    async def ask() -> None:
        begun = asyncio.Event()

        async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            if b"/wait" in await asked(reader):
                begun.set()
                assert await reader.read() == b"", "the connection is closed"
            writer.write(OK + b"Content-Length: 2\r\n\r\nhi")

        async with server(serve) as url, client(connections=1) as http:
            for _ in range(2):
                begun.clear()
                waiting = asyncio.create_task(http.get(url + "/wait"))
                await begun.wait()
                waiting.cancel()
                with pytest.raises(asyncio.CancelledError):
                    await waiting
                assert (await http.get(url)).content == b"hi"

    run(ask())


def test_open_stream_ends_when_its_client_is_closed(run: Run) -> None:
    async def ask() -> None:
        async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await asked(reader)
            writer.write(OK + b"\r\nhello")
            await reader.read()

        async with server(serve) as url:
            http = client()
            response = await http.send(http.build_request("GET", url), stream=True)
            pieces = response.aiter_raw()
            assert await anext(pieces) == b"hello"
            await http.aclose()
            with pytest.raises(httpx2.ReadError):
                await anext(pieces)

    run(ask())


def test_another_address_is_tried(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http_async, "ANOTHER_S", 0.0)

    async def ask() -> None:
        async with server(saying(OK + b"Content-Length: 2\r\n\r\nhi")) as url, client() as http:

            async def known(host: str, port: int) -> list[Any]:
                return [(0, 0, 0, "", (address, port)) for address in ("::1", "127.0.0.1")]

            monkeypatch.setattr(http_async, "_resolved", known)
            assert (await http.get(url.replace("127.0.0.1", "one.test"))).content == b"hi"
            with pytest.raises(httpx2.ConnectError):
                await http.get(f"http://none.test:{free_port()}")

    run(ask())


def test_certificate_that_nobody_vouches_for_is_refused(run: Run, tmp_path: Path) -> None:
    pem = certificate(tmp_path)
    own = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    own.load_cert_chain(pem)
    knows = ssl.create_default_context(cafile=str(pem))

    async def ask() -> None:
        async with server(saying(OK + b"Content-Length: 2\r\n\r\nhi"), ssl=own) as url:
            secure = url.replace("http:", "https:")

            async def said(verify: ssl.SSLContext, url: str) -> bytes:
                transport = AsyncioTransport(verify=verify, keepalive=2, connections=4)
                async with httpx2.AsyncClient(transport=transport) as http:
                    return (await http.get(url)).content

            assert await said(knows, secure) == b"hi"
            for verify, asked_for in ((TLS, secure), (knows, secure.replace("127.0.0.1", "localhost"))):
                with pytest.raises(httpx2.ConnectError, match="certificate verify failed"):
                    await said(verify, asked_for)

    run(ask())


async def test_proxies_of_the_environment_are_used(monkeypatch: pytest.MonkeyPatch) -> None:
    heard: list[bytes] = []

    async def proxy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        heard.append(await asked(reader))
        writer.write(OK + b"Content-Length: 2\r\n\r\nhi")

    async with server(proxy) as url:
        monkeypatch.setenv("HTTP_PROXY", url)
        async with http_client(verify=TLS, keepalive=1, connections=1) as http:
            assert (await http.get("http://model.test/v1")).content == b"hi"
    assert heard[0].startswith(b"GET http://model.test/v1 HTTP/1.1\r\n")


async def test_clients_that_are_open_together_share_connections_and_close_what_is_theirs(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(http_async, "KEEPALIVE_S", 10 * PATIENCE_S)
    opened: list[asyncio.Event] = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        opened.append(ended := asyncio.Event())
        try:
            while (request := await asked(reader)).startswith(b"GET /whole"):
                writer.write(OK + b"Content-Length: 2\r\n\r\nhi")
            if request:
                writer.write(OK + b"Content-Length: 9\r\n\r\nhalf")
                await reader.read()
        finally:
            ended.set()

    def one() -> httpx2.AsyncClient:
        return http_client(verify=TLS, keepalive=2, connections=4)

    async with server(serve) as url:
        first, second = one(), one()
        for http in (first, second, first):
            assert (await http.get(f"{url}/whole")).content == b"hi"
        assert len(opened) == 1
        half = await first.send(first.build_request("GET", f"{url}/half"), stream=True)
        assert (await second.get(f"{url}/whole")).content == b"hi"
        assert [ended.is_set() for ended in opened] == [False, False]
        await first.aclose()  # with the answer that it has not read, and with nothing of the other's
        await asyncio.wait_for(opened[0].wait(), PATIENCE_S)
        assert half.is_closed
        assert (await second.get(f"{url}/whole")).content == b"hi"
        assert len(opened) == 2
        await second.aclose()
        await asyncio.wait_for(opened[1].wait(), PATIENCE_S)
        async with one() as third:
            assert (await third.get(f"{url}/whole")).content == b"hi"
        assert len(opened) == 3
