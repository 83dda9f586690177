"""Where requests to addresses that somebody else has named may go: public addresses, and what a policy adds."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network

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
