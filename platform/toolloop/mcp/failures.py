"""How a conversation with an MCP server fails, in words that say what to do."""

from __future__ import annotations

from typing import Literal

from toolloop.errors import ToolloopError

Kind = Literal["unreachable", "gone", "timeout", "protocol", "refused", "session_lost", "server"]

# JSON-RPC codes by which our transports tell their own failures from what a server says; the range that JSON-RPC 2.0
# leaves to implementations. A server that sends them itself gains nothing: at most one reconnection.
SESSION_LOST = -32091
UNREACHABLE = -32092
REFUSED = -32093
TIMED_OUT = -32094


class McpError(ToolloopError):
    """A server could not be used.

    Args:
        message: what happened and what to do.
        kind: ``unreachable`` (no connection), ``gone`` (it was there), ``timeout``, ``protocol`` (what it sent is not
            MCP), ``refused`` (by us or by it: credentials, redirect, URL guard, size), ``session_lost`` (it forgot the
            session), ``server`` (it answered with an error).
    """

    code = "mcp_error"

    def __init__(self, message: str, kind: Kind = "server") -> None:
        super().__init__(message)
        self.kind: Kind = kind
