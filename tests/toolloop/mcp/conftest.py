"""Real MCP servers for the tests: the official SDK's, and raw ones that break the rules."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest

from basics.processes import die_with_parent
from tests.servers import wait_for
from toolloop.mcp import HttpTransport, StdioTransport

HERE = Path(__file__).resolve().parent
CAN_FORK = hasattr(os, "pidfd_open")  # Linux


@dataclass
class Official:
    """The official server over HTTP, in a process of its own."""

    port: int
    notes_path: Path
    process: subprocess.Popen[bytes]
    program: list[str]

    @property
    def transport(self) -> HttpTransport:
        return HttpTransport(url=f"http://127.0.0.1:{self.port}/mcp")

    def notes(self) -> list[str]:
        return self.notes_path.read_text().splitlines() if self.notes_path.exists() else []

    def stop(self) -> None:
        # What was forked is ended by the program that asked for it, which ends only then.
        self.process.send_signal(signal.SIGTERM if CAN_FORK else signal.SIGKILL)
        self.process.wait()

    def _is_open(self) -> bool:
        with socket.socket() as probe:
            return probe.connect_ex(("127.0.0.1", self.port)) == 0

    def start(self) -> None:
        command = [*self.program, str(self.port)]
        env = {"NOTES": str(self.notes_path)}
        self.process = subprocess.Popen(
            command,
            env=env,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            preexec_fn=die_with_parent(signal.SIGKILL, os.getpid()),
        )
        wait_for(lambda: self._is_open() or self.process.poll() is not None, "the official server to start")
        assert self.process.poll() is None, "the official server ended at once"


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@pytest.fixture(scope="module")
def official_program() -> Iterator[list[str]]:
    """What starts an official server, given how it serves: where it can, forked from one that has imported the SDK."""
    if not CAN_FORK:
        yield [sys.executable, str(HERE / "official_server.py")]
        return
    fork = str(HERE / "official_fork.py")
    with TemporaryDirectory() as folder, socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as listener:
        path = f"{folder}/socket"
        listener.bind(path)
        listener.listen()  # who asks before the imports are done waits
        process = subprocess.Popen(
            [sys.executable, fork, "serve", str(listener.fileno())],
            pass_fds=(listener.fileno(),),
            preexec_fn=die_with_parent(signal.SIGKILL, os.getpid()),
        )
        yield [sys.executable, "-I", "-S", fork, path]
        process.kill()
        process.wait()


@pytest.fixture
def official(tmp_path: Path, official_program: list[str]) -> Iterator[Official]:
    server = Official(free_port(), tmp_path / "notes", None, official_program)  # type: ignore[arg-type]
    server.start()
    yield server
    server.stop()


@pytest.fixture
def official_stdio(tmp_path: Path, official_program: list[str]) -> StdioTransport:
    return StdioTransport(
        command=[*official_program, "stdio"],
        env={"NOTES": str(tmp_path / "notes")},
    )


def raw_stdio(mode: str, *arguments: str, **settings: Any) -> StdioTransport:
    """Return the hostile program in one of its modes."""
    command = [sys.executable, str(HERE / "hostile_program.py"), mode, *arguments]
    return StdioTransport(command=command, **settings)


TOOL = {"name": "echo", "description": "Echo.", "inputSchema": {"type": "object"}}

Handler = Callable[["Raw", dict[str, Any], asyncio.StreamWriter], Awaitable[None]]


@dataclass
class Raw:
    """A server made of sockets: ``handlers`` by RPC method may answer whatever they like, ``tools`` is what it lists."""

    url: str = ""
    tools: list[Any] = field(default_factory=lambda: [dict(TOOL)])
    handlers: dict[str, Handler] = field(default_factory=dict)
    seen: list[dict[str, Any]] = field(default_factory=list)
    requests: list[tuple[str, dict[str, str]]] = field(default_factory=list)
    result: Any = None

    def methods(self) -> list[str]:
        return [str(message.get("method")) for message in self.seen]

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while head := await reader.readuntil(b"\r\n\r\n"):
                lines = head.decode().split("\r\n")
                verb = lines[0].split(" ")[0]
                headers = {
                    name.lower(): value.strip()
                    for name, _, value in (line.partition(":") for line in lines[1:] if line)
                }
                body = await reader.readexactly(int(headers.get("content-length", "0")))
                self.requests.append((verb, headers))
                message = json.loads(body) if body else {"method": verb}
                message["session"] = headers.get("mcp-session-id", "")
                self.seen.append(message)
                handler = self.handlers.get(message.get("method", ""), type(self).answer)
                await handler(self, message, writer)
                await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()

    async def answer(self, message: dict[str, Any], writer: asyncio.StreamWriter) -> None:
        """Answer as a well-behaved server of the older protocol would."""
        method = message.get("method")
        if method == "initialize":
            reply(
                writer,
                message,
                {
                    "protocolVersion": "2025-11-25",
                    "capabilities": {"tools": {"listChanged": True}},
                    "serverInfo": {"name": "raw", "version": "1"},
                },
            )
        elif method == "tools/list":
            reply(writer, message, {"tools": self.tools})
        elif method == "tools/call":
            result = self.result or {"content": [{"type": "text", "text": "ok"}]}
            reply(writer, message, result)
        elif method in ("GET", "DELETE"):
            send(writer, b"", status="405 Method Not Allowed")
        elif "id" in message:
            error = {"code": -32601, "message": "Method not found"}
            send(writer, json.dumps({"jsonrpc": "2.0", "id": message["id"], "error": error}))
        else:
            send(writer, b"", status="202 Accepted")


def reply(writer: asyncio.StreamWriter, message: dict[str, Any], result: Any, extra: str = "") -> None:
    send(writer, json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": result}), extra=extra)


def send(writer: asyncio.StreamWriter, body: str | bytes, *, status: str = "200 OK", extra: str = "") -> None:
    data = body.encode() if isinstance(body, str) else body
    head = (
        f"HTTP/1.1 {status}\r\ncontent-type: application/json\r\n{extra}content-length: {len(data)}\r\n\r\n"
    )
    writer.write(head.encode() + data)


def stream_head(writer: asyncio.StreamWriter) -> None:
    writer.write(b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n")


@pytest.fixture
async def raw() -> AsyncIterator[Raw]:
    server = Raw()
    listener = await asyncio.start_server(server.serve, "127.0.0.1", 0)
    server.url = f"http://127.0.0.1:{listener.sockets[0].getsockname()[1]}/mcp"
    yield server
    listener.close()
