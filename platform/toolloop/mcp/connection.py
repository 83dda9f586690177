"""One live session with a server, owned by a task of its own."""

from __future__ import annotations

import asyncio
import contextlib
import importlib
import logging
from collections.abc import Callable, Iterator
from contextlib import AbstractAsyncContextManager
from typing import TYPE_CHECKING, Any, Literal

from toolloop.errors import ConfigurationError
from toolloop.mcp.failures import REFUSED, SESSION_LOST, TIMED_OUT, UNREACHABLE, Kind, McpError
from toolloop.mcp.text import text_clean
from toolloop.mcp.transports import HttpTransport, Transport

if TYPE_CHECKING:
    from mcp import Client

    from toolloop.mcp._stdio import StdioProcess

logger = logging.getLogger(__name__)

Protocol = Literal["auto", "legacy"]
_CLOSE_SECONDS = 15.0
_RELISTEN_SECONDS = 10.0
_SHOWN_CHARS = 2_000


class Connection:
    """A session from its handshake to its end; it does not come back.

    The SDK's cancel scopes must be left in the task that entered them, so a task of our own holds them, and any other
    may call.

    Args:
        name: of the server, for messages.
        transport: where it is.
        changed: called when the server says that its tools have changed.
        call_timeout_s: seconds a tool call may take, for messages; who calls passes it on.
        request_timeout_s: seconds anything else may take.
        protocol: ``auto`` asks for the newest protocol first, ``legacy`` begins with the older handshake at once.
    """

    def __init__(
        self,
        name: str,
        transport: Transport,
        *,
        changed: Callable[[], None],
        call_timeout_s: float,
        request_timeout_s: float,
        protocol: Protocol,
    ) -> None:
        self._name, self._transport, self._changed = name, transport, changed
        self._call_timeout_s, self._request_timeout_s = call_timeout_s, request_timeout_s
        self._protocol = protocol
        self._closing = asyncio.Event()
        self._client: Client | None = None
        self._task: asyncio.Task[None] | None = None
        self._processes: list[StdioProcess] = []
        self._is_broken = self._is_retired = False
        self._users = 0

    @property
    def client(self) -> Client:
        """Return the SDK's client. Raises McpError when the session is not there."""
        if self._client is None or not self.alive:
            raise McpError(self._in_words("the connection is closed"), "gone")
        return self._client

    @property
    def alive(self) -> bool:
        """Tell whether calls can be made."""
        running = self._task is not None and not self._task.done() and not self._closing.is_set()
        if self._is_broken or not running:
            return False
        return not any(process.failure for process in self._processes)

    @property
    def has_ended(self) -> bool:
        """Tell whether nothing is left of it."""
        return self._task is None or self._task.done()

    @property
    def process(self) -> StdioProcess | None:
        """Return the program behind a stdio connection."""
        return self._processes[-1] if self._processes else None

    async def open(self, timeout_s: float) -> None:
        """Connect and shake hands.

        Raises:
            McpError: it did not work within ``timeout_s``.
            ConfigurationError: the SDK is not installed.
        """
        await asyncio.to_thread(_sdk_load)  # It takes most of a second, once.
        ready: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._task = asyncio.create_task(self._run(ready), name=f"mcp-{self._name}")
        try:
            async with asyncio.timeout(timeout_s):
                await asyncio.shield(ready)
        except TimeoutError:
            words = self._in_words(f"it did not complete the handshake within {timeout_s:g} s")
            await self.close(at_once=True)
            raise McpError(words, "timeout") from None
        except asyncio.CancelledError:
            await self.close(at_once=True)
            raise

    async def close(self, *, at_once: bool = False) -> None:
        """End the session, and the program behind it; never raises for what the server does."""
        self._closing.set()
        task = self._task
        if task is None:
            return
        if at_once:
            task.cancel()
        await asyncio.wait({task}, timeout=_CLOSE_SECONDS)
        if not task.done():
            task.cancel()
            await asyncio.wait({task}, timeout=_CLOSE_SECONDS)

    @contextlib.contextmanager
    def using(self) -> Iterator[None]:
        """Count a request that is under way."""
        self._users += 1
        try:
            yield
        finally:
            self._users -= 1
            if self._is_retired and not self._users:
                self._closing.set()

    def retire(self) -> None:
        """End the session once the requests that are under way have their answers."""
        self._is_retired = True
        if not self._users:
            self._closing.set()

    async def _run(self, ready: asyncio.Future[None]) -> None:
        listener: asyncio.Task[None] | None = None
        try:
            async with self._client_make() as client:
                self._client = client
                listener = asyncio.create_task(self._listen(client))
                ready.set_result(None)
                try:
                    await self._closing.wait()
                finally:
                    listener.cancel()
                    await asyncio.wait({listener})
        except asyncio.CancelledError:
            if not ready.done():
                ready.cancel()
            raise
        except BaseException as error:
            # The SDK may raise groups, and errors of the network; whoever waits gets one that says what to do.
            if ready.done():
                logger.warning("the connection to MCP server %s was lost: %r", self._name, error)
            else:
                ready.set_exception(self.failure(error))
            if not isinstance(error, Exception):
                raise

    def _client_make(self) -> Client:
        from mcp import Client
        from mcp.types import Implementation

        return Client(
            self._transport_open(),
            mode=self._protocol,
            cache=None,
            message_handler=self._notified,
            client_info=Implementation(name="toolloop", version="1"),
            read_timeout_seconds=self._request_timeout_s,
        )

    def _transport_open(self) -> AbstractAsyncContextManager[Any]:
        if isinstance(self._transport, HttpTransport):
            from toolloop.mcp._http import http_open

            return http_open(self._transport, self._request_timeout_s)
        from toolloop.mcp._stdio import stdio_open

        return stdio_open(self._transport, self._processes)

    async def _notified(self, message: Any) -> None:
        from mcp.types import ToolListChangedNotification

        if isinstance(message, ToolListChangedNotification):
            self._changed()

    async def _listen(self, client: Client) -> None:
        """Subscribe to changes where the protocol wants that (2026-07-28); before, servers tell unasked."""
        from mcp.client.subscriptions import SubscriptionLost
        from mcp.shared.exceptions import MCPError
        from mcp.types.version import MODERN_PROTOCOL_VERSIONS

        tools = client.server_capabilities.tools
        if client.protocol_version not in MODERN_PROTOCOL_VERSIONS or not (tools and tools.list_changed):
            return
        while True:
            with contextlib.suppress(SubscriptionLost, TimeoutError):
                try:
                    async with client.listen(tools_list_changed=True) as events:
                        async for _ in events:
                            self._changed()
                except MCPError as error:
                    logger.info("MCP server %s refuses to report changes: %s", self._name, error.message)
                    return
            await asyncio.sleep(_RELISTEN_SECONDS)
            self._changed()  # What happened in between was not told.

    def failure(self, error: BaseException) -> McpError:
        """Turn whatever the SDK or the network raised into an error that says what happened."""
        from mcp.shared.exceptions import MCPError
        from pydantic import ValidationError

        while isinstance(error, BaseExceptionGroup):
            error = error.exceptions[0]
        if isinstance(error, McpError):
            return error
        kind: Kind = "protocol"
        words = f"{type(error).__name__}: {text_clean(str(error), 300)}"
        if isinstance(error, MCPError):
            kind, words = self._sdk_failure(error)
        elif isinstance(error, ValidationError):
            words = f"what it sent is not MCP ({error.error_count()} problems, in {error.title})"
        elif isinstance(error, TimeoutError):
            kind, words = "timeout", "it did not answer in time"
        elif isinstance(error, OSError):
            kind = "unreachable"
        return McpError(self._in_words(words), kind)

    def _sdk_failure(self, error: Any) -> tuple[Kind, str]:
        from mcp.types import CONNECTION_CLOSED, PARSE_ERROR, REQUEST_TIMEOUT

        said = text_clean(error.message, _SHOWN_CHARS)
        ours: dict[int, Kind] = {
            SESSION_LOST: "session_lost",
            UNREACHABLE: "unreachable",
            REFUSED: "refused",
            TIMED_OUT: "timeout",
            PARSE_ERROR: "protocol",
        }
        if error.code in ours:
            return ours[error.code], said
        if error.code == CONNECTION_CLOSED:
            # The same code stands for one answer that broke off; this text, for the session as a whole.
            self._is_broken = self._is_broken or said == "Connection closed"
            return "gone", said
        if error.code == REQUEST_TIMEOUT:
            is_call = "tools/call" in said
            seconds = self._call_timeout_s if is_call else self._request_timeout_s
            return "timeout", f"it did not answer within {seconds:g} s"
        return "server", f"it answered with error {error.code}: {said}"

    def _in_words(self, words: str) -> str:
        process = self.process
        if process is not None and process.failure:
            words = f"{words} ({process.failure})"
        return f"MCP server {self._name!r} ({self._transport.shown}): {words}"


def _sdk_load() -> None:
    try:
        importlib.import_module("mcp")
    except ImportError as error:
        raise ConfigurationError(
            "MCP needs the package 'mcp': install requirements/base.txt, or: pip install 'mcp>=2.3,<3'"
        ) from error
