"""Where a request came from, for the audit trail: set by the edge, read by the services that write it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from ipaddress import ip_address

_BRACKETED = re.compile(r"\[([^\]]+)\](?::\d+)?")


@dataclass(frozen=True, slots=True)
class Origin:
    """The caller's address ("" for jobs and commands) and the id of the request."""

    ip: str = ""
    request_id: str = ""


_origin: ContextVar[Origin] = ContextVar("origin", default=Origin())  # noqa: B039 - frozen


def current() -> Origin:
    """Return the origin of what runs now; empty outside a request."""
    return _origin.get()


@contextmanager
def origin_scope(*, ip: str, request_id: str) -> Iterator[None]:
    """Run the block as work that this request asked for; an address that is none is left out."""
    token = _origin.set(Origin(valid_ip(ip), request_id))
    try:
        yield
    finally:
        _origin.reset(token)


def valid_ip(text: str) -> str:
    """Return the address in its plain form, or "" when the text is none (a Unix socket has no address).

    Some proxies append the port: ``203.0.113.9:4711``, ``[2001:db8::1]:4711``.
    """
    text = text.strip()
    if found := _BRACKETED.fullmatch(text):
        text = found[1]
    elif text.count(":") == 1:
        text = text.partition(":")[0]
    try:
        address = ip_address(text)
    except ValueError:
        return ""
    mapped = getattr(address, "ipv4_mapped", None)
    return str(mapped or address)
