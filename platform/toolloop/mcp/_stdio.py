"""A program spoken to over its standard streams, with bounds on what it may send, and no way to outlive us.

In place of the SDK's own transport, which lets a line grow without end and hands on part of our environment in any
case.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import os
import signal
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import anyio
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
from mcp.shared.message import SessionMessage
from mcp_types import PARSE_ERROR, ErrorData, JSONRPCError, JSONRPCResponse, jsonrpc_message_adapter

from toolloop.mcp.failures import McpError
from toolloop.mcp.transports import StdioTransport

logger = logging.getLogger(__name__)

_CHUNK = 65_536
_STDERR_KEPT = 16_384
_MAX_GARBAGE = 100  # Lines that are no JSON-RPC; programs that print a greeting are common, and harmless.
_BURST, _PER_SECOND = 1_000.0, 100.0  # Notifications and requests of the server.

Item = SessionMessage | Exception


class StdioProcess:
    """A running server.

    Attributes:
        failure: why the conversation ended, "" while it goes on or when we ended it.
    """

    def __init__(self, settings: StdioTransport, process: asyncio.subprocess.Process) -> None:
        self._settings, self._process = settings, process
        self.failure = ""
        self._stderr = bytearray()
        self._garbage = 0
        self._tokens, self._filled_at = _BURST, time.monotonic()

    @property
    def pid(self) -> int:
        """Return the program's process id, which is its group's as well."""
        return self._process.pid

    @property
    def stderr(self) -> str:
        """Return the end of what it wrote to its standard error."""
        return self._stderr.decode("utf-8", "replace")

    async def read(self, out: MemoryObjectSendStream[Item]) -> None:
        """Hand on messages until the program's output ends or breaks a rule."""
        stdout = self._process.stdout
        assert stdout is not None  # noqa: S101 - opened with a pipe
        buffer, searched = bytearray(), 0
        async with out:
            while chunk := await stdout.read(_CHUNK):
                buffer += chunk
                while (end := buffer.find(b"\n", searched)) >= 0:
                    line = bytes(buffer[:end])
                    del buffer[: end + 1]
                    searched = 0
                    if line.strip() and not await self._hand_on(line, out):
                        return
                searched = len(buffer)
                if searched > self._settings.max_message_bytes:
                    limit = self._settings.max_message_bytes
                    self.failure = f"it sent a message of more than {limit} bytes"
                    return
            self.failure = self.failure or "it closed its output"

    async def _hand_on(self, line: bytes, out: MemoryObjectSendStream[Item]) -> bool:
        """Pass one message on; False when the conversation must end."""
        if len(line) > self._settings.max_message_bytes:
            self.failure = f"it sent a message of more than {self._settings.max_message_bytes} bytes"
            return False
        try:
            message: Any = jsonrpc_message_adapter.validate_json(line, by_name=False)
        except ValueError:
            self._garbage += 1
            if self._garbage > _MAX_GARBAGE:
                self.failure = "it writes output that isn't JSON-RPC"
                return False
            message = _broken_answer(line)
            if message is None:
                return True
        if not isinstance(message, JSONRPCResponse | JSONRPCError) and not self._may_send():
            self.failure = "it sends too many unsolicited messages"
            return False
        try:
            await out.send(SessionMessage(message))
        except (anyio.BrokenResourceError, anyio.ClosedResourceError):
            return False
        return True

    def _may_send(self) -> bool:
        now = time.monotonic()
        self._tokens = min(_BURST, self._tokens + (now - self._filled_at) * _PER_SECOND) - 1
        self._filled_at = now
        return self._tokens >= 0

    async def read_stderr(self) -> None:
        """Keep the end of the standard error; reading it all keeps the program from blocking on it."""
        stderr = self._process.stderr
        assert stderr is not None  # noqa: S101 - opened with a pipe
        while chunk := await stderr.read(_CHUNK):
            self._stderr += chunk
            del self._stderr[:-_STDERR_KEPT]

    async def write(
        self, messages: MemoryObjectReceiveStream[SessionMessage], out: MemoryObjectSendStream[Item]
    ) -> None:
        """Send what the session writes."""
        stdin = self._process.stdin
        assert stdin is not None  # noqa: S101 - opened with a pipe
        async with messages:
            async for item in messages:
                text = item.message.model_dump_json(by_alias=True, exclude_unset=True)
                try:
                    stdin.write(text.encode() + b"\n")
                    await stdin.drain()
                except (OSError, RuntimeError):
                    self.failure = self.failure or "it closed its input"
                    await out.aclose()  # The session sees the end instead of waiting for answers.
                    return

    async def stop(self) -> None:
        """Close its input, wait, then end its whole process group."""
        stdin = self._process.stdin
        if stdin is not None:
            stdin.close()
        grace = self._settings.stop_grace_s
        if not await self._ended(grace):
            self._signal(signal.SIGTERM)
            await self._ended(grace)
        # Always, and to the group: a program that ended may have left others behind.
        self.kill()
        await self._ended(grace + 1.0)

    async def _ended(self, seconds: float) -> bool:
        # Not process.wait(): it also waits for pipes that a grandchild may hold open, and there is no event for less.
        deadline = time.monotonic() + seconds
        while self._process.returncode is None and time.monotonic() < deadline:  # noqa: ASYNC110
            await asyncio.sleep(0.01)
        return self._process.returncode is not None

    def kill(self) -> None:
        """Kill the process group at once."""
        self._signal(signal.SIGKILL)

    def release(self) -> None:
        """Let go of the pipes: what the program wrote last was not read, so their end is never met."""
        transport = getattr(self._process, "_transport", None)  # asyncio offers no public way.
        if transport is not None:
            with contextlib.suppress(PermissionError):
                transport.close()

    def _signal(self, number: signal.Signals) -> None:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self._process.pid, number)


def _broken_answer(line: bytes) -> Any:
    """Return an error for the request that a broken line was meant to answer, None when it cannot be told."""
    try:
        data = json.loads(line)
    except (ValueError, RecursionError):
        return None
    request_id = data.get("id") if isinstance(data, dict) and "method" not in data else None
    if not isinstance(request_id, str | int) or isinstance(request_id, bool):
        return None
    error = ErrorData(code=PARSE_ERROR, message="the answer isn't valid JSON-RPC")
    return JSONRPCError(jsonrpc="2.0", id=request_id, error=error)


@asynccontextmanager
async def stdio_open(settings: StdioTransport, started: list[StdioProcess]) -> AsyncIterator[tuple[Any, Any]]:
    """Start the program; yields the SDK's two message streams.

    Args:
        started: the process is appended, for who wants to know why it ended.

    Raises:
        McpError: it cannot be started.
    """
    env = {name: os.environ[name] for name in settings.env_inherit if name in os.environ}
    try:
        process = await asyncio.create_subprocess_exec(
            *settings.command,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            env={**env, **settings.env},
            cwd=settings.cwd,
            start_new_session=True,
        )
    except (OSError, ValueError) as error:
        raise McpError(f"{settings.shown} cannot be started: {error}", "unreachable") from error
    server = StdioProcess(settings, process)
    started.append(server)
    incoming, read_stream = anyio.create_memory_object_stream[Item](0)
    write_stream, outgoing = anyio.create_memory_object_stream[SessionMessage](0)
    tasks = [
        asyncio.create_task(server.read(incoming)),
        asyncio.create_task(server.read_stderr()),
        asyncio.create_task(server.write(outgoing, incoming)),
    ]
    try:
        yield read_stream, write_stream
    finally:
        try:
            # What was accepted for sending (a cancellation, say) still goes out, if the program reads.
            write_stream.close()
            await asyncio.wait({tasks[2]}, timeout=0.5)
            await server.stop()
        finally:
            server.kill()
            server.release()
            for task in tasks:
                task.cancel()
            for stream in (read_stream, incoming, outgoing):
                stream.close()
            results = await asyncio.gather(*tasks, return_exceptions=True)
            for result in results:
                if isinstance(result, Exception):
                    logger.warning("reading from %s failed: %r", settings.shown, result)
