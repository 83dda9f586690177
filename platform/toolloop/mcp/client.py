"""An MCP server as a source of tools: connects, lists, watches for drift, reconnects."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import Any, Self

from toolloop.errors import ConfigurationError
from toolloop.mcp.connection import Connection, Protocol
from toolloop.mcp.drift import Change, Definition, Drift, pin_make, pin_read
from toolloop.mcp.failures import McpError
from toolloop.mcp.listing import Listing, listing_read
from toolloop.mcp.paging import pages_fetch
from toolloop.mcp.text import server_name_is_valid, text_clean
from toolloop.mcp.tools import Approval, prompt_tools, resource_tools, tool_make
from toolloop.mcp.toolset import McpToolset
from toolloop.mcp.transports import Transport
from toolloop.tools.tool import Tool

logger = logging.getLogger(__name__)

_GRACE_S = 5.0  # Beyond the SDK's own timeout, for a write that is stuck.
_REFRESH_PAUSE_S = 1.0  # Between lists, however often a server says that they changed.
_RETRY_PAUSE_S = 3.0  # Between attempts to reach a server that could not be reached.


class McpServer:
    """One server. Connect it, give ``tools`` or ``toolset()`` to a run, close it.

    Belongs to the event loop it is connected in.

    Args:
        name: prefix of its tools' names: letters, digits and ``-``, at most 32.
        transport: where it is.
        pin: what was accepted earlier, from ``snapshot``. Without one, what is listed first counts as accepted.
        offer_added: offer tools that the pin, or the first list, does not have; else they wait for ``accept``.
        call_timeout_s: seconds one tool call may take; then the server is told that it was cancelled.
        connect_timeout_s: seconds for the handshake, and for the first list. Resources and prompts may take the longer
            of both.
        max_tools: more than these are an error.
        resources, prompts: offer tools that list and read them, where the server has any.
        trust_hints: believe ``readOnlyHint`` and ``idempotentHint``. A server is free to lie in them.
        approval: which of its tools need a person's approval.
        images: show images of its results to the model, which must take them; else a note says that there was one, and
            the payload has it.
        protocol: ``auto``, or ``legacy`` for a server that takes the older handshake only and is confused by a
            question.
    """

    def __init__(
        self,
        name: str,
        transport: Transport,
        *,
        pin: Mapping[str, Any] | None = None,
        offer_added: bool = False,
        call_timeout_s: float = 60.0,
        connect_timeout_s: float = 30.0,
        max_tools: int = 500,
        resources: bool = True,
        prompts: bool = True,
        trust_hints: bool = True,
        approval: Approval = "never",
        images: bool = False,
        protocol: Protocol = "auto",
    ) -> None:
        if not server_name_is_valid(name):
            raise ConfigurationError(
                f"the server name {name!r} must be 1 to 32 letters, digits or '-', beginning with a letter"
            )
        if call_timeout_s <= 0 or connect_timeout_s <= 0 or max_tools < 1:
            raise ConfigurationError("the timeouts and max_tools must be above 0")
        self.name, self._transport = name, transport
        self._accepted = None if pin is None else pin_read(name, pin)
        self._offer_added, self._max_tools = offer_added, max_tools
        self._call_timeout_s, self._connect_timeout_s = call_timeout_s, connect_timeout_s
        self._request_timeout_s = max(call_timeout_s, connect_timeout_s)
        self._resources, self._prompts = resources, prompts
        self._trust_hints, self._approval, self._protocol = trust_hints, approval, protocol
        self._images = images
        self._listing = Listing()
        self._tools: dict[str, Tool] = {}
        self._made: dict[str, Tool] = {}
        self._extra: list[Tool] = []
        self._connection: Connection | None = None
        self._retired: list[Connection] = []
        self._lock = asyncio.Lock()
        self._changed = asyncio.Event()
        self._refresher: asyncio.Task[None] | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._failed: tuple[float, McpError] | None = None

    async def __aenter__(self) -> Self:
        await self.connect()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def connect(self) -> Drift:
        """Connect and list the tools.

        Returns:
            How the list differs from the pin; see ``drift``.

        Raises:
            McpError: the server cannot be used, or two of its tools would have one name.
            ConfigurationError: it is already connected, or the SDK is not installed.
        """
        if self._loop is not None:
            raise ConfigurationError(f"MCP server {self.name!r} is already connected")
        self._loop = asyncio.get_running_loop()
        try:
            async with self._lock:
                await self._open()
            if self._listing.collisions:
                what = "; ".join(self._listing.collisions)
                raise McpError(f"MCP server {self.name!r}: {what}", "protocol")
        except BaseException:
            await self.close()
            raise
        if self._accepted is None:
            self._accepted = dict(self._listing.listed)
        self._refresher = asyncio.create_task(self._refresh(), name=f"mcp-{self.name}-lists")
        return self.drift

    async def close(self) -> None:
        """End the session, and the program behind it. Calls that still run fail."""
        refresher, self._refresher, self._loop = self._refresher, None, None
        if refresher is not None:
            refresher.cancel()
            await asyncio.wait({refresher})
        connections, self._retired = self._retired, []
        if self._connection is not None:
            connections.append(self._connection)
            self._connection = None
        await asyncio.gather(*(connection.close() for connection in connections))

    @property
    def tools(self) -> tuple[Tool, ...]:
        """Return the tools that are offered now."""
        return (*self._tools.values(), *self._extra)

    def tool(self, name: str) -> Tool | None:
        """Return a tool by its name for the model; one that was offered and is withheld now refuses its calls."""
        extra = (tool for tool in self._extra if tool.name == name)
        return self._tools.get(name) or self._made.get(name) or next(extra, None)

    def toolset(self, core: Iterable[Tool] = ()) -> McpToolset:
        """Return a toolset of ``core`` and of what this server offers at each moment."""
        return McpToolset([self], core)

    @property
    def drift(self) -> Drift:
        """Return how the tools listed now differ from what was accepted, and which cannot be used."""
        return self._listing.drift

    @property
    def stderr(self) -> str:
        """Return the end of what a stdio server wrote to its standard error, for a person."""
        process = self._connection.process if self._connection is not None else None
        return process.stderr if process is not None else ""

    def snapshot(self) -> dict[str, Any]:
        """Return what is accepted, as JSON values to store and to give as ``pin``."""
        return pin_make(self.name, list((self._accepted or {}).values()))

    def accept(self, *changes: Change) -> None:
        """Accept changes after a person has looked at them; the tools are offered from now on.

        Raises:
            ConfigurationError: the server has moved on since, so that what was looked at is not what is listed.
        """
        accepted = dict(self._accepted or {})
        for change in changes:
            listed = self._listing.listed.get(change.name)
            if (listed.fingerprint if listed else "") != change.fingerprint:
                raise ConfigurationError(
                    f"tool {change.name!a} of MCP server {self.name!r} has changed again: review the new "
                    f"difference"
                )
            if listed is None:
                accepted.pop(change.name, None)
            else:
                accepted[change.name] = listed
        self._accepted = accepted
        self._listing_set(self._sorted(list(self._listing.listed.values())))

    async def refresh(self) -> Drift:
        """List the tools again; done unasked when the server says that they changed."""
        definitions = await self.request(self._definitions)
        self._listing_set(await self._listing_read(definitions))
        return self.drift

    async def resources(self) -> list[Any]:
        """Return the server's resources and templates, as the SDK's objects."""

        async def listed(client: Any) -> list[Any]:
            session = client.session
            found = await self._pages(session.list_resources, "resources")
            return found + await self._pages(session.list_resource_templates, "resource_templates")

        return list(await self.request(listed))

    async def prompts(self) -> list[Any]:
        """Return the server's prompts, as the SDK's objects."""

        async def listed(client: Any) -> list[Any]:
            return await self._pages(client.session.list_prompts, "prompts")

        return list(await self.request(listed))

    def definition(self, name: str) -> Definition | None:
        """Return what the server says now about the tool that it calls ``name``, None when it has none."""
        return self._listing.listed.get(name)

    def refusal(self, name: str, fingerprint: str) -> str:
        """Say why a tool made of a definition must not be called now, "" when it may."""
        offer = self._listing.offers.get(name)
        if offer is not None and offer.definition.fingerprint == fingerprint:
            return ""
        return self._listing.withheld.get(name) or "the server no longer offers it"

    async def request(
        self, send: Callable[[Any], Awaitable[Any]], *, check: Callable[[], None] | None = None
    ) -> Any:
        """Send something to the server, over a new session where it forgot ours.

        Args:
            send: given the SDK's client.
            check: called before each attempt, after a reconnection has looked at the tools again.

        Raises:
            McpError: in words for the model as well.
        """
        if asyncio.get_running_loop() is not self._loop:
            raise McpError(
                f"MCP server {self.name!r} is not connected in this event loop: connect it first", "gone"
            )
        for attempt in (0, 1):
            connection = await self._connected()
            if check is not None:
                check()
            try:
                async with asyncio.timeout(self._request_timeout_s + _GRACE_S):
                    with connection.using():
                        return await send(connection.client)
            except Exception as error:
                failure = connection.failure(error)
                if failure.kind == "session_lost" and attempt == 0:
                    # It refused the request for the session's sake, so nothing was done yet: once more is safe.
                    self._retire(connection)
                    continue
                # A timeout of our own, not the SDK's, means that even sending is stuck.
                if not connection.alive or isinstance(error, TimeoutError):
                    await self._drop(connection)
                raise failure from error
        raise AssertionError("unreachable")

    async def _connected(self) -> Connection:
        async with self._lock:
            connection = self._connection
            if connection is not None and connection.alive:
                return connection
            if self._failed is not None and time.monotonic() - self._failed[0] < _RETRY_PAUSE_S:
                raise self._failed[1]
            if connection is not None:
                await connection.close()
            try:
                return await self._open()
            except McpError as error:
                self._failed = (time.monotonic(), error)
                raise

    async def _drop(self, connection: Connection) -> None:
        async with self._lock:
            if self._connection is connection:
                self._connection = None
                await connection.close()

    def _retire(self, connection: Connection) -> None:
        """Make way for a new session; other calls may still get their answers, or their refusals, from this one."""
        if self._connection is connection:
            self._connection = None
            self._retired.append(connection)
        connection.retire()

    async def _open(self) -> Connection:
        """Connect anew and look at the tools again; the lock is held."""
        connection = Connection(
            self.name,
            self._transport,
            changed=self._changed.set,
            call_timeout_s=self._call_timeout_s,
            request_timeout_s=self._request_timeout_s,
            protocol=self._protocol,
        )
        await connection.open(self._connect_timeout_s)
        try:
            async with asyncio.timeout(self._connect_timeout_s):
                definitions = await self._definitions(connection.client)
            self._extra = self._extra_make(connection.client.server_capabilities)
            listing = await self._listing_read(definitions)
        except Exception as error:
            failure = connection.failure(error)
            await connection.close()
            raise failure from error
        except BaseException:
            await connection.close(at_once=True)
            raise
        if self._loop is None:  # Closed meanwhile, by who did not know of this connection.
            await connection.close()
            raise McpError(f"MCP server {self.name!r} was closed", "gone")
        self._retired = [old for old in self._retired if not old.has_ended]
        self._connection, self._failed = connection, None
        self._listing_set(listing)
        return connection

    def _extra_make(self, capabilities: Any) -> list[Tool]:
        extra: list[Tool] = []
        if self._resources and capabilities.resources is not None:
            extra += resource_tools(self, call_timeout_s=self._request_timeout_s)
        if self._prompts and capabilities.prompts is not None:
            extra += prompt_tools(self, call_timeout_s=self._request_timeout_s)
        return extra

    async def _pages(self, fetch: Callable[..., Awaitable[Any]], key: str) -> list[Any]:
        return await pages_fetch(fetch, key, server=self.name, limit=self._max_tools)

    async def _definitions(self, client: Any) -> list[Definition]:
        if client.server_capabilities.tools is None:
            return []
        listed = await self._pages(client.session.list_tools, "tools")
        return [
            Definition.of(tool.model_dump(mode="json", by_alias=True, exclude_none=True)) for tool in listed
        ]

    async def _listing_read(self, definitions: list[Definition]) -> Listing:
        while True:
            accepted = self._accepted
            # Checking hundreds of schemas takes a second or two; other runs must not wait for it.
            listing = await asyncio.to_thread(self._sorted, definitions)
            if self._accepted is accepted:  # Else something was accepted in between.
                return listing

    def _sorted(self, definitions: list[Definition]) -> Listing:
        return listing_read(
            self.name,
            definitions,
            self._accepted,
            reserved=[tool.name for tool in self._extra],
            offer_added=self._offer_added,
            known=self._listing.offers,
        )

    def _listing_set(self, listing: Listing) -> None:
        made = {
            name: tool_make(
                self,
                offer,
                call_timeout_s=self._call_timeout_s,
                trust_hints=self._trust_hints,
                approval=self._approval,
                images=self._images,
            )
            for name, offer in listing.offers.items()
        }
        # Tools that are withheld now stay known, so that a call of one is told why and not that there is none.
        self._made = {**{n: t for n, t in self._made.items() if n in listing.withheld}, **made}
        self._listing, self._tools = listing, made
        if listing.drift:
            names = ", ".join(f"{c.name!a} {c.kind}" for c in listing.drift.changes[:20])
            logger.warning("tools of MCP server %s differ from what was accepted: %s", self.name, names)

    async def _refresh(self) -> None:
        while True:
            await self._changed.wait()
            self._changed.clear()
            try:
                await self.refresh()
            except McpError as error:
                logger.warning("tools of MCP server %s could not be listed again: %s", self.name, error)
            await asyncio.sleep(_REFRESH_PAUSE_S)

    @property
    def instructions(self) -> str:
        """Return what the server says about itself, for a person; it is not given to models."""
        connection = self._connection
        said = connection.client.session.instructions if connection and connection.alive else ""
        return text_clean(said or "", 4_000)
