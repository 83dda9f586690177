"""An MCP server of the official SDK on loopback, in a thread of the test's own process."""

from __future__ import annotations

import contextlib
import socket
import threading
from collections.abc import Callable, Iterator
from typing import Any

import uvicorn
from mcp.server.mcpserver import MCPServer


@contextlib.contextmanager
def served(
    server: MCPServer[Any], seen: Callable[[dict[str, str]], None] = lambda headers: None
) -> Iterator[str]:
    """Serve until the block ends; gives the address.

    Args:
        seen: told the headers of each request.
    """
    app = server.streamable_http_app()

    async def telling(scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] == "http":
            seen({key.decode(): value.decode() for key, value in scope["headers"]})
        await app(scope, receive, send)

    sock = socket.socket()
    sock.bind(("127.0.0.1", 0))
    sock.listen()  # who comes before the thread serves waits, and is not refused
    web = uvicorn.Server(
        uvicorn.Config(telling, log_level="critical", lifespan="on", timeout_graceful_shutdown=0)
    )
    thread = threading.Thread(target=web.run, kwargs={"sockets": [sock]}, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{sock.getsockname()[1]}/mcp"
    finally:
        web.should_exit = True
        thread.join(10)
        sock.close()
