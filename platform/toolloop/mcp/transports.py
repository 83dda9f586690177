"""Where an MCP server is and what it may do to us: settings of the two transports."""

from __future__ import annotations

import urllib.parse
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from toolloop.errors import ConfigurationError

if TYPE_CHECKING:
    import httpx2

UrlGuard = Callable[[str], Awaitable[None] | None]
"""Called with the URL of every request before it is sent; raises to refuse it, and the text is told."""


@dataclass(frozen=True, kw_only=True)
class HttpTransport:
    """A server over streamable HTTP.

    Attributes:
        url: the endpoint, http or https.
        headers: sent with every request.
        bearer: token for the ``Authorization`` header, "" for none. Never shown in errors.
        auth: any other authentication, OAuth of the SDK for one.
        connect_timeout_s: seconds to reach the server.
        max_response_bytes: of one answer, and of one message.
        follow_redirects: follow those that stay within the endpoint's origin and keep the method. Every hop passes the
            guard. Off: an answer that redirects is an error that names the new location.
        guard: checks each URL. It sees names, not addresses: against DNS that changes its answer, give ``network`` too.
        network: what opens connections, in place of httpx2's own; a transport that connects to checked addresses only,
            or one with other certificates.
    """

    url: str
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    bearer: str = field(default="", repr=False)
    auth: httpx2.Auth | None = field(default=None, repr=False)
    connect_timeout_s: float = 10.0
    max_response_bytes: int = 10_000_000
    follow_redirects: bool = False
    guard: UrlGuard | None = None
    network: httpx2.AsyncBaseTransport | None = None

    def __post_init__(self) -> None:
        parts = urllib.parse.urlsplit(self.url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise ConfigurationError("the URL of an MCP server must begin with http:// or https://")
        if parts.username or parts.password:
            raise ConfigurationError("put credentials into headers or bearer, not into the URL")
        if self.max_response_bytes < 1 or self.connect_timeout_s <= 0:
            raise ConfigurationError("max_response_bytes and connect_timeout_s must be above 0")

    @property
    def shown(self) -> str:
        """Return the endpoint for messages, without its query."""
        return urllib.parse.urlsplit(self.url)._replace(query="", fragment="").geturl()


@dataclass(frozen=True, kw_only=True)
class StdioTransport:
    """A server that is a program of this machine, spoken to over its standard input and output.

    Attributes:
        command: program and arguments; no shell.
        env: variables the program gets.
        env_inherit: names of our own variables it gets besides; everything else stays with us.
        cwd: its working directory, ours when None.
        max_message_bytes: of one line it writes.
        stop_grace_s: seconds to end by itself once its input is closed, then again after SIGTERM; then its whole
            process group is killed.
    """

    command: Sequence[str]
    env: Mapping[str, str] = field(default_factory=dict, repr=False)
    env_inherit: Sequence[str] = ("PATH", "HOME", "LANG", "LC_ALL", "TZ", "TMPDIR")
    cwd: str | Path | None = None
    max_message_bytes: int = 10_000_000
    stop_grace_s: float = 2.0

    def __post_init__(self) -> None:
        if isinstance(self.command, str) or not self.command:
            raise ConfigurationError(
                "command must be a list: the program, then its arguments (no shell reads it)"
            )
        if self.max_message_bytes < 1 or self.stop_grace_s < 0:
            raise ConfigurationError("max_message_bytes must be above 0, stop_grace_s not below it")

    @property
    def shown(self) -> str:
        """Return the program for messages; arguments may hold secrets."""
        return Path(self.command[0]).name


Transport = HttpTransport | StdioTransport
