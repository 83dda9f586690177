"""Addresses that a server of this machine listens on, and who reaches them."""

from __future__ import annotations

import socket
from ipaddress import ip_address


def reached(host: str) -> str:
    """Return an address of this machine behind the one that a server listens on."""
    return {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(host, host)  # noqa: S104


def free_port() -> int:
    """Return a port of this machine that nobody listens on now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def is_loopback(host: str) -> bool:
    """Tell whether only this machine reaches a server that listens on a host; a name that is not known does not count."""
    try:
        return ip_address(host.partition("%")[0]).is_loopback
    except ValueError:
        return host.lower() == "localhost"
