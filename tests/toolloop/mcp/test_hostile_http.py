"""A server over HTTP that breaks the rules, on purpose or not: every call ends, in bounded time and memory, in words."""

from __future__ import annotations

import asyncio
import gzip
import json
import tracemalloc
from dataclasses import replace
from typing import Any

import pytest

from tests.patience import PATIENCE_S
from tests.toolloop.mcp.conftest import TOOL, Raw, send, stream_head
from toolloop.errors import ConfigurationError
from toolloop.mcp import HttpTransport, McpError, McpServer
from toolloop.tools import ToolError, ToolOutput


def connect(raw: Raw, transport: HttpTransport | None = None, **settings: Any) -> McpServer:
    settings.setdefault("protocol", "legacy")
    return McpServer("raw", transport or HttpTransport(url=raw.url), **settings)


async def echo(server: McpServer, **arguments: Any) -> ToolOutput:
    found = server.tool("raw__echo")
    assert found is not None
    output = await found.function(**arguments)
    assert isinstance(output, ToolOutput)
    return output


async def test_headers_and_bearer_are_sent_and_never_shown(raw: Raw) -> None:
    transport = HttpTransport(url=raw.url, headers={"X-Team": "a-secret"}, bearer="tok-secret")
    assert "secret" not in repr(transport)

    async def refuse(_: Raw, __: Any, writer: asyncio.StreamWriter) -> None:
        send(writer, b"no", status="401 Unauthorized")

    async with connect(raw, transport) as server:
        assert (await echo(server)).content == "ok"
        raw.handlers["tools/call"] = refuse
        with pytest.raises(ToolError, match="refused the credentials") as caught:
            await echo(server)
    assert "secret" not in str(caught.value)
    assert {headers.get("authorization") for _, headers in raw.requests} == {"Bearer tok-secret"}
    assert {headers.get("x-team") for _, headers in raw.requests} == {"a-secret"}
    assert {headers.get("accept-encoding") for _, headers in raw.requests} == {"identity"}


async def test_unreachable_server_is_an_error_in_words() -> None:
    server = McpServer("raw", HttpTransport(url="http://127.0.0.1:9/mcp?key=secret"))
    with pytest.raises(McpError, match=r"'raw'.*ConnectError") as caught:
        await server.connect()
    assert caught.value.kind == "unreachable"
    assert "secret" not in str(caught.value)


async def test_redirect_is_not_followed_but_named(raw: Raw) -> None:
    async def away(_: Raw, __: Any, writer: asyncio.StreamWriter) -> None:
        extra = "location: http://169.254.169.254/latest?token=x\r\n"
        send(writer, b"", status="307 Temporary Redirect", extra=extra)

    raw.handlers["initialize"] = away
    for transport in (HttpTransport(url=raw.url), HttpTransport(url=raw.url, follow_redirects=True)):
        with pytest.raises(McpError, match=r"169\.254\.169\.254/latest") as caught:
            await connect(raw, transport).connect()
        assert "token" not in str(caught.value)


async def test_guard_sees_every_url_also_behind_a_redirect(raw: Raw) -> None:
    seen: list[str] = []

    async def guard(url: str) -> None:
        seen.append(url)
        if url.endswith("/private"):
            raise PermissionError("this address is ours")

    async def away(_: Raw, __: Any, writer: asyncio.StreamWriter) -> None:
        send(writer, b"", status="307 Temporary Redirect", extra="location: /private\r\n")

    transport = HttpTransport(url=raw.url, guard=guard, follow_redirects=True)
    raw.handlers["tools/call"] = away
    async with connect(raw, transport) as server:
        calls = len(raw.seen)
        with pytest.raises(ToolError, match="may not be used: this address is ours"):
            await echo(server)
    assert seen[0] == raw.url
    assert [m for m in raw.methods()[calls:] if m == "tools/call"] == ["tools/call"]
    with pytest.raises(McpError, match="no way"):
        await connect(raw, HttpTransport(url=raw.url, guard=_never)).connect()


def _never(url: str) -> None:
    raise ValueError("no way")


@pytest.mark.parametrize("declared", [True, False])
async def test_a_result_of_100_mb_is_refused_without_being_held(raw: Raw, declared: bool) -> None:
    sent = 0

    async def huge(_: Raw, message: Any, writer: asyncio.StreamWriter) -> None:
        nonlocal sent
        length = f"content-length: {100_000_000}" if declared else "connection: close"
        writer.write(f"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n{length}\r\n\r\n".encode())
        for _part in range(1_000):
            writer.write(b"x" * 100_000)
            await writer.drain()
            sent += 100_000

    raw.handlers["tools/call"] = huge
    transport = HttpTransport(url=raw.url, max_response_bytes=1_000_000)
    async with connect(raw, transport) as server:
        tracemalloc.start()
        with pytest.raises(ToolError, match=r"limit is 1000000|more than 1000000 bytes"):
            await echo(server)
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        del raw.handlers["tools/call"]
        assert (await echo(server)).content == "ok"
    assert peak < 20_000_000
    assert sent < 20_000_000


async def test_a_compressed_bomb_is_refused(raw: Raw) -> None:
    async def bomb(_: Raw, message: Any, writer: asyncio.StreamWriter) -> None:
        body = {"jsonrpc": "2.0", "id": message["id"], "result": "x" * 50_000_000}
        data = gzip.compress(json.dumps(body).encode())
        send(writer, data, extra="content-encoding: gzip\r\n")

    raw.handlers["tools/call"] = bomb
    async with connect(raw) as server:
        with pytest.raises(ToolError, match="encoding 'gzip', which was not requested"):
            await echo(server)


@pytest.mark.parametrize("where", ["head", "body", "stream"])
async def test_a_hanging_server_costs_one_timeout_and_is_told(raw: Raw, where: str) -> None:
    async def hang(_: Raw, message: Any, writer: asyncio.StreamWriter) -> None:
        if where == "body":
            head = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 99\r\n\r\n{"
            writer.write(head)
        elif where == "stream":
            stream_head(writer)
        await writer.drain()
        await asyncio.Event().wait()

    raw.handlers["tools/call"] = hang
    async with connect(raw, call_timeout_s=0.5) as server:
        async with asyncio.timeout(PATIENCE_S):
            with pytest.raises(ToolError, match="did not answer within"):
                await echo(server)
            while raw.methods()[-1] != "notifications/cancelled":  # noqa: ASYNC110 - the server writes it down
                await asyncio.sleep(0.01)
        cancelled = raw.seen[-1]["params"]["requestId"]
        assert cancelled == next(m["id"] for m in raw.seen if m["method"] == "tools/call")


async def test_connecting_gives_up_when_the_handshake_hangs(raw: Raw) -> None:
    async def hang(_: Raw, __: Any, writer: asyncio.StreamWriter) -> None:
        await asyncio.Event().wait()

    raw.handlers["initialize"] = hang
    server = connect(raw, connect_timeout_s=0.5)
    async with asyncio.timeout(PATIENCE_S):
        with pytest.raises(McpError, match="handshake within"):
            await server.connect()


@pytest.mark.parametrize(
    "answer",
    [
        "no JSON",
        "[]",
        '"text"',
        '{"jsonrpc": "1.0", "id": %d, "result": {}}',
        '{"jsonrpc": "2.0", "id": %d}',
        '{"jsonrpc": "2.0", "id": %d, "result": {"content": "text"}}',
        '{"jsonrpc": "2.0", "id": %d, "result": {"content": [{"type": "hologram"}]}}',
        '{"jsonrpc": "2.0", "id": %d, "error": "just text"}',
        '{"jsonrpc": "2.0", "id": %d, "result": ' + "[" * 100_000,
        '{"jsonrpc": "2.0", "id": %d, "result": {"content": [], "structuredContent": "\\ud800"}}',
    ],
)
async def test_an_answer_that_is_not_mcp_fails_the_call_only(raw: Raw, answer: str) -> None:
    async def wrong(_: Raw, message: Any, writer: asyncio.StreamWriter) -> None:
        send(writer, answer.replace("%d", str(message["id"])))

    raw.handlers["tools/call"] = wrong
    async with connect(raw, call_timeout_s=2.0) as server:
        with pytest.raises(ToolError, match="MCP server 'raw'"):
            await echo(server)
        del raw.handlers["tools/call"]
        assert (await echo(server)).content == "ok"


async def test_a_server_error_is_told_to_the_model_without_controls(raw: Raw) -> None:
    async def fails(_: Raw, message: Any, writer: asyncio.StreamWriter) -> None:
        error = {"code": -32050, "message": "out of stock\x1b[2J\u202e" + "y" * 10_000}
        body = {"jsonrpc": "2.0", "id": message["id"], "error": error}
        send(writer, json.dumps(body))

    raw.handlers["tools/call"] = fails
    async with connect(raw) as server:
        with pytest.raises(ToolError, match=r"error -32050: out of stock\[2Jyyy") as caught:
            await echo(server)
    assert len(caught.value.message) < 2_500


async def test_output_schema_is_checked_and_its_pattern_is_not_run(raw: Raw) -> None:
    schema = {
        "type": "object",
        "properties": {"n": {"type": "integer"}, "s": {"type": "string", "pattern": "^(a+)+$"}},
        "required": ["n"],
    }
    raw.tools = [{**TOOL, "outputSchema": schema}]
    async with connect(raw) as server:
        raw.result = {"content": [], "structuredContent": {"n": "one"}}
        with pytest.raises(ToolError, match=r"broke its own output schema.*expected integer"):
            await echo(server)
        raw.result = {"content": []}
        with pytest.raises(ToolError, match="did not return the structured output"):
            await echo(server)
        # Run, the pattern would take 2**60 steps, and no timeout could interrupt them.
        raw.result = {"content": [], "structuredContent": {"n": 1, "s": "a" * 60 + "!"}}
        assert (await echo(server)).payload["n"] == 1


async def test_a_flood_of_notifications_in_an_answer_is_bounded(raw: Raw) -> None:
    async def flood(_: Raw, message: Any, writer: asyncio.StreamWriter) -> None:
        stream_head(writer)
        note = json.dumps({"jsonrpc": "2.0", "method": "notifications/tools/list_changed"})
        while True:
            writer.write(f"data: {note}\n\n".encode() * 50)
            await writer.drain()

    raw.handlers["tools/call"] = flood
    transport = HttpTransport(url=raw.url, max_response_bytes=300_000)
    async with connect(raw, transport, call_timeout_s=5) as server:
        lists = raw.methods().count("tools/list")
        with pytest.raises(ToolError, match=r"broke off|ended|more than"):
            await echo(server)
        await asyncio.sleep(0.2)
        assert raw.methods().count("tools/list") - lists <= 3
        del raw.handlers["tools/call"]
        assert (await echo(server)).content == "ok"


async def test_a_stream_that_closes_again_and_again_is_not_reopened_forever(raw: Raw) -> None:
    async def close_at_once(_: Raw, message: Any, writer: asyncio.StreamWriter) -> None:
        stream_head(writer)
        writer.write(b"id: 1\nretry: 1\ndata: \n\n")
        await writer.drain()
        writer.close()

    raw.handlers.update({"tools/call": close_at_once, "GET": close_at_once})
    async with connect(raw, call_timeout_s=2) as server:
        with pytest.raises(ToolError):
            await echo(server)
        await asyncio.sleep(0.3)
        opened = raw.methods().count("GET")
        await asyncio.sleep(0.5)
    assert opened <= 20
    assert raw.methods().count("GET") == opened


async def test_sampling_and_elicitation_requests_are_declined(raw: Raw) -> None:
    answers: list[Any] = []

    async def asks(server: Raw, message: Any, writer: asyncio.StreamWriter) -> None:
        stream_head(writer)
        params = {"messages": [], "maxTokens": 10}
        ask = {"jsonrpc": "2.0", "id": "s1", "method": "sampling/createMessage", "params": params}
        writer.write(f"data: {json.dumps(ask)}\n\n".encode())
        await writer.drain()
        async with asyncio.timeout(PATIENCE_S):
            while not answers:  # noqa: ASYNC110 - told by another connection
                await asyncio.sleep(0.02)
        done = {"jsonrpc": "2.0", "id": message["id"], "result": {"content": []}}
        writer.write(f"data: {json.dumps(done)}\n\n".encode())
        await writer.drain()
        writer.close()

    async def other(server: Raw, message: Any, writer: asyncio.StreamWriter) -> None:
        answers.append(message)
        send(writer, b"", status="202 Accepted")

    raw.handlers.update({"tools/call": asks, "": other})
    async with connect(raw) as server:
        await echo(server)
    assert "error" in answers[0]


async def test_settings_that_cannot_work_are_refused() -> None:
    for url in ("ftp://example.com", "example.com/mcp", "http://user:pass@example.com/mcp"):
        with pytest.raises(ConfigurationError):
            HttpTransport(url=url)
    good = HttpTransport(url="https://example.com/mcp")
    with pytest.raises(ConfigurationError, match="above 0"):
        replace(good, max_response_bytes=0)
    for name in ("", "a__b", "a_b", "1a", "a" * 33, "é"):
        with pytest.raises(ConfigurationError, match="server name"):
            McpServer(name, good)
