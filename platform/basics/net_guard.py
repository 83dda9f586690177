"""Requests to addresses that somebody else has named, without a way into our own network (server-side request forgery).

What counts is where the socket goes. So the check sits where the socket is opened: names are resolved here, every address
of the answer is judged, and the connection is made to the judged address itself, never to the name again. A parser that
reads a URL differently, a redirect, a DNS server that changes its answer: all of them end at the same gate. TLS still
checks the certificate against the name.
"""

from __future__ import annotations

import socket
import ssl
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network
from typing import Any

import httpcore2
import httpx2
import structlog

from basics.errors import DomainError
from basics.net_hosts import host_fits
from basics.texts import gettext as _

log = structlog.get_logger(__name__)

Address = IPv4Address | IPv6Address
Network = IPv4Network | IPv6Network
Resolver = Callable[[str, int], Iterable[str]]
MAX_URL = 2000
_DNS_SECONDS = 10.0

# IANA's special-purpose registries (RFC 6890 and successors), spelled out: what ``ipaddress`` calls global has changed
# between releases of Python.
_BLOCKED: tuple[tuple[IPv4Network, str], ...] = tuple(
    (IPv4Network(text), why)
    for text, why in (
        ("0.0.0.0/8", "“this host”"),
        ("10.0.0.0/8", "private"),
        ("100.64.0.0/10", "shared between a provider's customers"),
        ("127.0.0.0/8", "loopback"),
        ("168.63.129.16/32", "Azure's own"),  # it answers machines of that cloud alone
        ("169.254.0.0/16", "link-local"),
        ("172.16.0.0/12", "private"),
        ("192.0.0.0/24", "reserved"),
        ("192.0.2.0/24", "for documentation"),
        ("192.31.196.0/24", "reserved"),
        ("192.52.193.0/24", "reserved"),
        ("192.88.99.0/24", "a 6to4 relay"),
        ("192.168.0.0/16", "private"),
        ("192.175.48.0/24", "reserved"),
        ("198.18.0.0/15", "for benchmarks"),
        ("198.51.100.0/24", "for documentation"),
        ("203.0.113.0/24", "for documentation"),
        ("224.0.0.0/4", "multicast"),
        ("240.0.0.0/4", "reserved or broadcast"),
    )
)
_UNICAST6 = IPv6Network("2000::/3")  # the only block from which public addresses are given out
_BLOCKED6: tuple[tuple[IPv6Network, str], ...] = (
    (IPv6Network("2001::/23"), "reserved or a tunnel (Teredo, ORCHID)"),
    (IPv6Network("2001:db8::/32"), "for documentation"),
    (IPv6Network("2002::/16"), "a 6to4 tunnel"),
    (IPv6Network("2620:4f:8000::/48"), "reserved"),
    (IPv6Network("3fff::/20"), "for documentation"),
)


class AddressRefused(DomainError):
    """The address may not be called; the message says why."""

    def __init__(self, message: str) -> None:
        super().__init__("address_refused", message, status=400)


@dataclass(frozen=True, slots=True)
class NetPolicy:
    """Where requests may go.

    Attributes:
        ports: of the server.
        high_ports: every port from 1024 on is allowed too.
        allow: networks that are allowed although they are not public; on them any port is.
        hosts: patterns (``basics.net_hosts``) of the only hosts that may be called; without any, every host may.
    """

    ports: frozenset[int] = frozenset({80, 443, 8080, 8443})
    allow: tuple[Network, ...] = ()
    hosts: frozenset[str] = frozenset()
    high_ports: bool = False

    @classmethod
    def of(cls, networks: Iterable[str], hosts: Iterable[str] = ()) -> NetPolicy:
        """Return the usual policy with some networks allowed besides. Raises ValueError for a text that is none."""
        return cls(allow=tuple(ip_network(text) for text in networks), hosts=frozenset(hosts))


PUBLIC = NetPolicy()


def address_refusal(address: Address, policy: NetPolicy = PUBLIC) -> str:
    """Return why an address may not be called, "" when it may."""
    if any(address.version == net.version and address in net for net in policy.allow):
        return ""
    if isinstance(address, IPv4Address):
        return next((why for net, why in _BLOCKED if address in net), "")
    if address.ipv4_mapped is not None:
        return address_refusal(address.ipv4_mapped, policy) or "an IPv4 address written as IPv6"
    if address.is_loopback:
        return "loopback"
    if address not in _UNICAST6:
        return "private, link-local, multicast, NAT64 or reserved"
    if int(address) >> 32 & 0xFDFFFFFF == 0x5EFE:
        return "an ISATAP tunnel"  # RFC 5214: the last 32 bits are the IPv4 address it ends at
    return next((why for net, why in _BLOCKED6 if address in net), "")


def url_check(text: str, policy: NetPolicy = PUBLIC) -> httpx2.URL:
    """Return a URL whose form is allowed; where its name leads is judged when the connection is made.

    Raises:
        AddressRefused: no http(s) URL, with a user name or password in it, too long, of a host that is not listed, or with a
            port that is not allowed.
    """
    if len(text) > MAX_URL:
        raise AddressRefused(_("The address has more than %(most)s characters.") % {"most": MAX_URL})
    # A backslash, a blank or a control character is read differently by different parsers.
    if not text.isprintable() or any(mark in text for mark in " \\"):
        raise AddressRefused(_("The address contains blanks, backslashes or control characters."))
    try:
        url = httpx2.URL(text)
    except (httpx2.InvalidURL, ValueError, UnicodeError) as error:
        raise AddressRefused(_("This isn't a web address. Expected https://host/path.")) from error
    if url.scheme not in ("http", "https") or not url.raw_host:
        raise AddressRefused(_("Only addresses that begin with http:// or https:// can be read."))
    if url.userinfo or "@" in url.netloc.decode("ascii", "replace"):
        raise AddressRefused(_("The address can't contain a user name or password."))
    port = url.port or (443 if url.scheme == "https" else 80)
    host = url.raw_host.decode("ascii", "replace").strip("[]")
    _judge_host(host, policy)
    try:
        literal: Address | None = ip_address(host.split("%")[0])
    except ValueError:
        literal = None
    if literal is not None:
        _judge(literal, host, policy)
    _judge_port(port, literal, policy)
    return url


def _judge(address: Address, host: str, policy: NetPolicy) -> None:
    """Refuse an address that was written as such."""
    if why := address_refusal(address, policy):
        text = _(
            "%(host)s is not a public address (%(why)s), so it is not called. The operator can allow networks with "
            "GROUNDWORK_FETCH_NETWORKS."
        )
        raise AddressRefused(text % {"host": host[:200], "why": why})


def _name_refused(host: str) -> AddressRefused:
    # One text for a name that nobody knows and for one that leads inside: two would let a stranger ask our own DNS which
    # names and addresses our network has.
    text = _(
        "The name %(host)s is unknown or has no public address, so it is not called. The operator can allow "
        "networks with GROUNDWORK_FETCH_NETWORKS."
    )
    return AddressRefused(text % {"host": host[:200]})


def _judge_host(host: str, policy: NetPolicy) -> None:
    if policy.hosts and not host_fits(host, policy.hosts):
        text = _(
            "The host “%(host)s” is not on this workspace's list of outgoing hosts, so it is not called. An owner can "
            "add it under Settings, Outgoing hosts."
        )
        raise AddressRefused(text % {"host": host[:200]})


def _judge_port(port: int, address: Address | None, policy: NetPolicy) -> None:
    # Whether a name lies in an allowed network is known only when it is resolved.
    inside = policy.allow and (
        address is None or any(address.version == net.version and address in net for net in policy.allow)
    )
    is_high = policy.high_ports and port >= 1024
    if port not in policy.ports and not is_high and not inside:
        known = ", ".join(str(one) for one in sorted(policy.ports))
        text = _("Port %(port)s is not allowed; allowed are %(ports)s.")
        if policy.high_ports:
            text = _("Port %(port)s is not allowed; allowed are %(ports)s and those from 1024 on.")
        raise AddressRefused(text % {"port": port, "ports": known})


def system_resolver(host: str, port: int) -> list[str]:
    """Ask the system for all addresses of a host, waiting at most ten seconds. Raises OSError."""
    found: list[str] = []
    failure: list[OSError | UnicodeError] = []

    def ask() -> None:
        try:
            answers = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
        except (OSError, UnicodeError) as error:
            failure.append(error)
        else:
            found.extend(str(answer[4][0]) for answer in answers)

    # getaddrinfo() knows no time limit and cannot be interrupted: a thread that hangs is left to its end.
    thread = threading.Thread(target=ask, name="resolver", daemon=True)
    thread.start()
    thread.join(_DNS_SECONDS)
    if thread.is_alive():
        raise TimeoutError(f"no answer about {host} within {_DNS_SECONDS:g} s")
    if failure:
        raise OSError(f"the name {host} has no address ({failure[0]})")
    return found


def addresses_checked(
    host: str, port: int, policy: NetPolicy, resolver: Resolver = system_resolver
) -> list[Address]:
    """Return the addresses of a host, each of them allowed.

    Raises:
        AddressRefused: it has none, or one of them is not; a name that has public and private addresses is refused as a
            whole. A host that is not listed is not even asked about.
    """
    _judge_host(host, policy)
    addresses: list[Address] = []
    try:
        for text in resolver(host, port):
            address = ip_address(text)
            if address not in addresses:
                addresses.append(address)
    except (OSError, ValueError) as error:
        log.info("name_not_resolved", host=host, error=str(error))
        raise _name_refused(host) from None
    is_literal = len(addresses) == 1 and str(addresses[0]) == host
    for address in addresses:
        if is_literal:
            _judge(address, host, policy)
        elif why := address_refusal(address, policy):
            log.warning("name_refused", host=host, address=str(address), why=why)
            raise _name_refused(host)
        _judge_port(port, address, policy)
    if not addresses:
        raise _name_refused(host)
    return addresses


UNREACHED = "no connection was made; check the address, the port and the certificate"
NETWORK_ERRORS = (httpcore2.TimeoutException, httpcore2.NetworkError, httpcore2.ProtocolError)


def error_translated(error: Exception) -> httpx2.TransportError:
    """Return the error of httpx2 that says what one of ``NETWORK_ERRORS`` says.

    What kept a connection from being made is told in one text: whether a port is closed, silent, or speaks something else
    than TLS is nobody's business who may name an address. The log has it.
    """
    # Errors of the protocol hold what a stranger wrote.
    said = "" if isinstance(error, httpcore2.ProtocolError) else str(error)[:200]
    log.info("request_failed", error=type(error).__name__, said=said)
    if isinstance(error, httpcore2.ConnectError | httpcore2.ConnectTimeout):
        return httpx2.ConnectError(UNREACHED)
    if isinstance(error, httpcore2.TimeoutException):
        return httpx2.ReadTimeout("the server did not answer in time")
    if isinstance(error, httpcore2.ProtocolError):
        return httpx2.RemoteProtocolError("the answer was not understood")
    return httpx2.ReadError("the connection broke")


class _TimedStream(httpcore2.NetworkStream):
    """A connection that ends at a deadline, however slowly the other side drips."""

    def __init__(self, inner: httpcore2.NetworkStream, deadline: float) -> None:
        self._inner, self._deadline = inner, deadline

    def _left(self, timeout: float | None) -> float:
        left = self._deadline - time.monotonic()
        if left <= 0:
            raise httpcore2.ReadTimeout("the whole answer took too long")
        return left if timeout is None else min(left, timeout)

    def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        return self._inner.read(max_bytes, self._left(timeout))

    def write(self, buffer: bytes, timeout: float | None = None) -> None:
        self._inner.write(buffer, self._left(timeout))

    def close(self) -> None:
        self._inner.close()

    def start_tls(
        self, ssl_context: ssl.SSLContext, server_hostname: str | None = None, timeout: float | None = None
    ) -> httpcore2.NetworkStream:
        secured = self._inner.start_tls(ssl_context, server_hostname, self._left(timeout))
        return _TimedStream(secured, self._deadline)

    def get_extra_info(self, info: str) -> Any:
        return self._inner.get_extra_info(info)


class GuardedBackend(httpcore2.NetworkBackend):
    """Opens connections to judged addresses only.

    Args:
        deadline: ``time.monotonic()`` at which every connection ends.
    """

    def __init__(self, policy: NetPolicy, resolver: Resolver, deadline: float) -> None:
        self._policy, self._resolver, self._deadline = policy, resolver, deadline
        self._inner = httpcore2.SyncBackend()

    def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[httpcore2.SOCKET_OPTION] | None = None,
    ) -> httpcore2.NetworkStream:
        addresses = addresses_checked(host, port, self._policy, self._resolver)
        failure: Exception = httpcore2.ConnectError("no address")
        for address in addresses:
            left = self._deadline - time.monotonic()
            if left <= 0:
                raise httpcore2.ConnectTimeout("connecting took too long")
            try:
                stream = self._inner.connect_tcp(
                    str(address),
                    port,
                    left if timeout is None else min(left, timeout),
                    local_address,
                    socket_options,
                )
            except (httpcore2.ConnectError, httpcore2.ConnectTimeout) as error:
                failure = error
                continue
            return _TimedStream(stream, self._deadline)
        raise failure

    def connect_unix_socket(
        self,
        path: str,
        timeout: float | None = None,
        socket_options: Iterable[httpcore2.SOCKET_OPTION] | None = None,
    ) -> httpcore2.NetworkStream:
        raise AddressRefused("Sockets on this machine can't be called.")


class _Body(httpx2.SyncByteStream):
    def __init__(self, response: httpcore2.Response) -> None:
        self._response = response

    def __iter__(self) -> Iterator[bytes]:
        try:
            yield from self._response.iter_stream()
        except NETWORK_ERRORS as error:
            raise error_translated(error) from error

    def close(self) -> None:
        self._response.close()


def _nothing() -> None:
    """Do nothing."""


before_request: Callable[[], None] = _nothing
"""Called by the thread that is about to wait for an answer; the platform gives its database connections back here."""


@cache
def authorities() -> ssl.SSLContext:
    """Return what checks the certificates of servers. Reading those of all authorities takes 25 ms of CPU: once a process."""
    return httpx2.create_ssl_context(trust_env=False)


class GuardedTransport(httpx2.BaseTransport):
    """A transport for httpx2 that reaches public addresses only; no proxy, no cookies, one deadline for everything.

    Args:
        policy: where it may go.
        seconds: from now until every connection is cut.
        resolver: gives the addresses of a name; tests put their own here.
        verify: checks the certificates of servers; the system's by default.
    """

    def __init__(
        self,
        policy: NetPolicy = PUBLIC,
        *,
        seconds: float = 60.0,
        resolver: Resolver = system_resolver,
        verify: ssl.SSLContext | None = None,
    ) -> None:
        self._policy = policy
        self._pool = httpcore2.ConnectionPool(
            ssl_context=verify or authorities(),
            max_connections=4,
            max_keepalive_connections=0,
            network_backend=GuardedBackend(policy, resolver, time.monotonic() + seconds),
        )

    def handle_request(self, request: httpx2.Request) -> httpx2.Response:
        """Send a request.

        Raises:
            AddressRefused: it leads where nothing may be called.
            httpx2.TransportError: the network failed.
        """
        url_check(str(request.url), self._policy)
        before_request()
        stream = request.stream
        if not isinstance(stream, httpx2.SyncByteStream):
            raise TypeError("GuardedTransport sends requests of a synchronous client")
        sent = httpcore2.Request(
            method=request.method,
            url=httpcore2.URL(
                scheme=request.url.raw_scheme,
                host=request.url.raw_host,
                port=request.url.port,
                target=request.url.raw_path,
            ),
            headers=request.headers.raw,
            content=stream,
            extensions=request.extensions,
        )
        try:
            response = self._pool.handle_request(sent)
        except NETWORK_ERRORS as error:
            raise error_translated(error) from error
        return httpx2.Response(
            response.status,
            headers=response.headers,
            stream=_Body(response),
            extensions=response.extensions,
            request=request,
        )

    def close(self) -> None:
        """Close the connections."""
        self._pool.close()
