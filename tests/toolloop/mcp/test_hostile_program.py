"""A program over stdio that breaks the rules: every call ends in words, and no process is left behind."""

from __future__ import annotations

import asyncio
import contextlib
import os
import sys
import tracemalloc
from pathlib import Path
from typing import Any

import psutil
import pytest

from tests.patience import PATIENCE_S
from tests.processes import is_gone
from tests.servers import wait_for
from tests.toolloop.mcp.conftest import raw_stdio
from toolloop.errors import ConfigurationError
from toolloop.mcp import McpError, McpServer, StdioTransport
from toolloop.tools import ToolError, ToolOutput

pytestmark = pytest.mark.servers


def connect(mode: str, *arguments: str, **settings: Any) -> McpServer:
    return McpServer("raw", raw_stdio(mode, *arguments, stop_grace_s=0.3), protocol="legacy", **settings)


async def echo(server: McpServer) -> ToolOutput:
    found = server.tool("raw__echo")
    assert found is not None
    output = await found.function()
    assert isinstance(output, ToolOutput)
    return output


def process_id(server: McpServer) -> int:
    assert server._connection is not None
    assert server._connection.process is not None
    return server._connection.process.pid


async def wait_gone(pid: int) -> None:
    await asyncio.to_thread(wait_for, lambda: is_gone(pid), f"the end of process {pid}")


def running() -> list[psutil.Process]:
    """Our hostile programs that run; one that ended and was not reaped yet has no command line."""
    found = []
    for child in psutil.Process().children(recursive=True):
        with contextlib.suppress(psutil.NoSuchProcess):
            if "hostile_program.py" in " ".join(child.cmdline()):
                found.append(child)
    return found


@pytest.mark.parametrize(
    ("mode", "reason"),
    [("huge", "more than 1000000 bytes"), ("flood", "unsolicited"), ("garbage", "that isn't JSON-RPC")],
)
async def test_a_program_that_breaks_the_rules_is_stopped(mode: str, reason: str) -> None:
    transport = raw_stdio(mode, stop_grace_s=0.3, max_message_bytes=1_000_000)
    async with McpServer("raw", transport, protocol="legacy", call_timeout_s=20) as server:
        pid = process_id(server)
        tracemalloc.start()
        with pytest.raises(ToolError, match=reason):
            await echo(server)
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        await wait_gone(pid)
    assert peak < 30_000_000


@pytest.mark.parametrize("mode", ["broken", "deep"])
async def test_an_answer_that_is_no_json_rpc_fails_the_call_only(mode: str) -> None:
    async with connect(mode, call_timeout_s=1.0) as server:
        pid = process_id(server)
        with pytest.raises(ToolError, match=r"isn't valid JSON-RPC|did not answer"):
            await echo(server)
        assert process_id(server) == pid
        assert (await server.refresh()).changes == ()


async def test_a_program_that_hangs_is_given_up_and_replaced_when_it_reads_no_more() -> None:
    async with connect("hang", call_timeout_s=0.5) as server:
        async with asyncio.timeout(PATIENCE_S):
            with pytest.raises(ToolError, match=r"did not answer within 0\.5 s"):
                await echo(server)
        pid = process_id(server)
    await wait_gone(pid)


async def test_a_silent_program_does_not_hold_up_connecting() -> None:
    server = connect("silent", connect_timeout_s=0.5)
    with pytest.raises(McpError, match="handshake within"):
        await server.connect()
    assert not running()


@pytest.mark.parametrize("mode", ["stubborn", "family"])
async def test_the_whole_process_group_ends_with_the_connection(mode: str, tmp_path: Path) -> None:
    async with connect(mode, str(tmp_path / "pids")) as server:
        assert (await echo(server)).content == "ok"
        pids = [int(pid) for pid in (tmp_path / "pids").read_text().split()]
        assert len(pids) == 2
        assert all(psutil.pid_exists(pid) for pid in pids)
        assert os.getpgid(pids[0]) != os.getpgid(0)
    for pid in pids:
        await wait_gone(pid)


async def test_cancelling_connect_leaves_no_process(tmp_path: Path) -> None:
    server = connect("silent")
    task = asyncio.create_task(server.connect())
    children: list[psutil.Process] = []
    async with asyncio.timeout(PATIENCE_S):
        while not children:
            await asyncio.sleep(0.05)
            children = running()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    await wait_gone(children[0].pid)


async def test_much_on_standard_error_neither_blocks_nor_fills_memory() -> None:
    async with connect("stderr") as server:
        assert (await echo(server)).content == "quiet"
        assert "noise" in server.stderr
        assert len(server.stderr) <= 16_384


async def test_a_greeting_on_standard_output_is_passed_over() -> None:
    async with connect("greeting") as server:
        assert (await echo(server)).content == "ok"


async def test_a_program_that_cannot_be_started_is_an_error_in_words(tmp_path: Path) -> None:
    missing = McpServer("raw", StdioTransport(command=[str(tmp_path / "missing")]))
    with pytest.raises(McpError, match="missing cannot be started") as caught:
        await missing.connect()
    assert caught.value.kind == "unreachable"
    quits = McpServer("raw", StdioTransport(command=[sys.executable, "-c", "raise SystemExit(3)"]))
    with pytest.raises(McpError, match=r"it closed its (output|input)"):
        await quits.connect()


def test_a_command_line_for_a_shell_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="must be a list"):
        StdioTransport(command="server --port 1; rm -rf /")
