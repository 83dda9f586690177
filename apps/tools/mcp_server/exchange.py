"""One request to an MCP server and its answer, through the SDK's transport: no session, nothing kept between two requests.

Each request gets a manager of its own: made without a thread, a connection or a task that would outlive it, so that no
lifespan is needed and an idle server costs nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import anyio
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager

from apps.tools.mcp_server.caller import Caller
from apps.tools.mcp_server.server import server_for


@dataclass
class HttpReply:
    """What goes back over HTTP."""

    status: int = 500
    headers: dict[str, str] = field(default_factory=dict)
    body: bytes = b""


async def exchange(caller: Caller, headers: Mapping[str, str], body: bytes) -> HttpReply:
    """Return the answer to one POST; cancelled when the caller hangs up, and with it what was called.

    Args:
        headers: of the request. Its key was checked, and stays outside.
        body: one JSON-RPC message.
    """
    scope = {
        "type": "http",
        "asgi": {"version": "3.0"},
        "http_version": "1.1",
        "method": "POST",
        "scheme": "http",
        "path": "/",
        "raw_path": b"/",
        "root_path": "",
        "query_string": b"",
        "headers": [
            (name.lower().encode("latin-1"), value.encode("latin-1", "replace"))
            for name, value in headers.items()
            if name.lower() not in ("authorization", "cookie")
        ],
    }
    given = [{"type": "http.request", "body": body, "more_body": False}]
    answer = HttpReply()

    async def receive() -> dict[str, Any]:
        if given:
            return given.pop()
        await anyio.sleep_forever()  # Django watches the connection and cancels us
        raise AssertionError

    async def send(message: Any) -> None:
        if message["type"] == "http.response.start":
            answer.status = message["status"]
            answer.headers = {
                k.decode("latin-1"): v.decode("latin-1")
                for k, v in message.get("headers", ())
                if k.lower() != b"content-length"
            }
        elif message["type"] == "http.response.body":
            answer.body += message.get("body", b"")

    manager = StreamableHTTPSessionManager(server_for(caller), json_response=True, stateless=True)
    async with manager.run():
        await manager.handle_request(scope, receive, send)
    return answer
