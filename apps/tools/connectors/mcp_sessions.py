"""Live sessions with MCP servers: one a source and its credentials in each event loop, closed when nobody has used it for a while.

A worker's loop keeps them from one run to the next. Elsewhere (a request, a test of a tool) the loop lives for one piece
of work, and who owns it closes them with ``sessions_close``.
"""

from __future__ import annotations

import asyncio
import contextvars
import hashlib
import json
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

import httpx2
from django.conf import settings

from apps.tools.connectors import http
from apps.tools.connectors.base import SourceError
from apps.tools.connectors.secrets import SourceSecret
from basics.net_guard_async import AsyncGuardedTransport
from basics.net_policy import AddressRefused, NetPolicy
from basics.texts import gettext as _
from toolloop.mcp import HttpTransport, McpServer, StdioTransport

if TYPE_CHECKING:
    from apps.tools.models import ToolSource

IDLE_S = 60.0
MAX_KEPT = 200
"""Sessions that one event loop keeps while nobody uses them."""
CALL_SECONDS = 60.0
_INHERITED = ("PATH", "LANG", "LC_ALL", "TZ")


@dataclass(slots=True, eq=False)
class _Session:
    server: McpServer
    connecting: asyncio.Task[object]
    users: int = 0
    closing: asyncio.TimerHandle | None = None


@dataclass(slots=True)
class _Pool:
    sessions: dict[str, _Session] = field(default_factory=dict)
    ending: set[asyncio.Task[None]] = field(default_factory=set)


_pools: WeakKeyDictionary[asyncio.AbstractEventLoop, _Pool] = WeakKeyDictionary()


@asynccontextmanager
async def session(
    source: ToolSource, secrets: Sequence[SourceSecret], policy: NetPolicy
) -> AsyncIterator[McpServer]:
    """Give the live session with a source's server, connecting it first where there is none.

    Args:
        source: as it is now: another address, command or credential is another session, and so is another policy.
        policy: where the workspace's requests may go now.

    Raises:
        McpError: the server cannot be reached or used.
        SourceError: the operator does not allow its command (any more).
    """
    pool = _pools.setdefault(asyncio.get_running_loop(), _Pool())
    key = _key(source, secrets, policy)
    held = pool.sessions.get(key)
    if held is None or (held.connecting.done() and _failed(held.connecting)):
        held = pool.sessions[key] = _connected(server_make(source, secrets, policy))
    if held.closing is not None:
        held.closing.cancel()
        held.closing = None
    held.users += 1
    try:
        # Shielded: others wait for it too when this call is given up.
        await asyncio.shield(held.connecting)
        yield held.server
    finally:
        held.users -= 1
        if not held.users:
            _rest(pool, key, held)


async def sessions_close() -> None:
    """End all sessions of this event loop; a worker calls it before it exits."""
    pool = _pools.pop(asyncio.get_running_loop(), None)
    if pool is None:
        return
    for key, held in list(pool.sessions.items()):
        _end(pool, key, held)
    while pool.ending:
        await asyncio.wait(pool.ending)


def server_make(source: ToolSource, secrets: Sequence[SourceSecret], policy: NetPolicy) -> McpServer:
    """Return a source's server, not connected yet. Raises SourceError: the operator does not allow its command."""
    return McpServer(
        source.name,
        _transport(source, secrets, policy),
        # What is offered is what the workspace accepted: see ``apps.tools.connectors.mcp``.
        offer_added=True,
        resources=False,
        prompts=False,
        call_timeout_s=CALL_SECONDS,
    )


def _transport(
    source: ToolSource, secrets: Sequence[SourceSecret], policy: NetPolicy
) -> HttpTransport | StdioTransport:
    name = source.settings.get("command", "")
    if name:
        command = settings.MCP_COMMANDS.get(name)
        if command is None:
            raise SourceError(command_refused(name), code="command_refused")
        return StdioTransport(command=command, env_inherit=_INHERITED)
    return HttpTransport(
        url=source.url,
        network=SourceNetwork(source, secrets, policy),
        guard=lambda url: http.host_check(source, url),
    )


def command_refused(name: str) -> str:
    """Say why a program is not started."""
    text = _(
        "The operator doesn't allow the command “%(name)s”. Only programs named in GROUNDWORK_MCP_COMMANDS can be "
        "started. Allowed: %(allowed)s."
    )
    return text % {"name": name[:64], "allowed": ", ".join(sorted(settings.MCP_COMMANDS)) or _("none")}


class SourceNetwork(httpx2.AsyncBaseTransport):
    """What opens the connections of a source's session: where the policy allows it, its secrets for its own server alone."""

    def __init__(self, source: ToolSource, secrets: Sequence[SourceSecret], policy: NetPolicy) -> None:
        self._source, self._secrets = source, secrets
        self._inner = AsyncGuardedTransport(policy, resolver=http.resolver, keepalive=2)

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        """Send a request. Raises httpx2.TransportError."""
        http.secrets_apply(request, self._source, self._secrets)
        try:
            return await self._inner.handle_async_request(request)
        except AddressRefused as error:
            # The kind that costs this one call and not the session.
            raise httpx2.ConnectError(error.message) from None

    async def aclose(self) -> None:
        """Close the connections."""
        await self._inner.aclose()


def _key(source: ToolSource, secrets: Sequence[SourceSecret], policy: NetPolicy) -> str:
    what = [
        source.tenant_id,
        source.pk,
        source.name,
        source.url,
        source.settings.get("command", ""),
        source.allowed_hosts,
        [(one.placement, one.parameter, one.secret.reveal()) for one in secrets],
        sorted(policy.hosts),
        sorted(map(str, policy.allow)),
    ]
    return hashlib.sha256(json.dumps(what).encode()).hexdigest()


def _connected(server: McpServer) -> _Session:
    # In a context of its own: what runs on in the background must not hold the scope of who happened to come first.
    task = asyncio.get_running_loop().create_task(
        server.connect(), context=contextvars.Context(), name=f"mcp-connect-{server.name}"
    )
    return _Session(server, task)


def _failed(connecting: asyncio.Task[object]) -> bool:
    return connecting.cancelled() or connecting.exception() is not None


def _rest(pool: _Pool, key: str, held: _Session) -> None:
    """Let a session that nobody uses wait for its next use; one that never came about, or one too many, ends now."""
    if not held.connecting.done() or pool.sessions.get(key) is not held:
        _end(pool, key, held)
    elif _failed(held.connecting):
        del pool.sessions[key]
    else:
        idle = IDLE_S if len(pool.sessions) <= MAX_KEPT else 0.0
        held.closing = asyncio.get_running_loop().call_later(idle, _end, pool, key, held)


def _end(pool: _Pool, key: str, held: _Session) -> None:
    if pool.sessions.get(key) is held:
        del pool.sessions[key]
    if held.closing is not None:
        held.closing.cancel()
    task = asyncio.get_running_loop().create_task(
        _close(held), context=contextvars.Context(), name=f"mcp-close-{held.server.name}"
    )
    pool.ending.add(task)
    task.add_done_callback(pool.ending.discard)


async def _close(held: _Session) -> None:
    held.connecting.cancel()
    await asyncio.wait({held.connecting})
    await held.server.close()
