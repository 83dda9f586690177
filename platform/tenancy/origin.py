"""Where a request came from, for the audit trail: set by the edge, read by the services that write it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from ipaddress import ip_address


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
    """Return the address in its plain form, or "" when the text is none (a Unix socket has no address)."""
    try:
        address = ip_address(text.strip())
    except ValueError:
        return ""
    mapped = getattr(address, "ipv4_mapped", None)
    return str(mapped or address)
