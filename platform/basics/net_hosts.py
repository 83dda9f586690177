"""Patterns of hosts: ``api.example.com``, or ``*.example.com`` for every host below one. Pure: no name is resolved."""

from __future__ import annotations

import re
from collections.abc import Iterable
from ipaddress import ip_address

import httpx2

from basics.texts import gettext as _

MAX_PATTERN = 253
_NAME = re.compile(
    r"(?=.{1,253}\Z)(?:[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?\.)*[a-z](?:[a-z0-9-]{0,61}[a-z0-9])?\Z"
)


def host_pattern(text: str) -> str:
    """Return a pattern as it is stored and compared: small letters, other scripts as DNS knows them (IDNA).

    Raises:
        ValueError: it is neither a host nor ``*.`` before one of two or more parts; the message says so.
    """
    bare = text.strip().lower().rstrip(".")
    is_wide = bare.startswith("*.")
    name = bare.removeprefix("*.")
    problem = _(
        "“%(host)s” isn't a host. Enter a name such as api.example.com, or *.example.com for all its subdomains, "
        "without https://, port or path."
    ) % {"host": text.strip()[:80]}
    if address := _address(name):
        if is_wide:
            raise ValueError(problem)
        return address
    # What a URL would read as something else than a host has no place in one.
    if not name.isprintable() or any(sign in name for sign in "/\\:@?#%[]* "):
        raise ValueError(problem)
    try:
        host = httpx2.URL(f"https://{name}/").raw_host.decode("ascii")
    except (httpx2.InvalidURL, ValueError, UnicodeError):
        raise ValueError(problem) from None
    if not _NAME.match(host):
        raise ValueError(problem)
    if is_wide and "." not in host:
        raise ValueError(
            _("“%(host)s” is too broad. Use at least two parts after *, as in *.example.com.")
            % {"host": f"*.{host}"}
        )
    pattern = f"*.{host}" if is_wide else host
    if len(pattern) > MAX_PATTERN:
        raise ValueError(problem)
    return pattern


def host_fits(host: str, patterns: Iterable[str]) -> bool:
    """Tell whether a URL's host (``raw_host`` as text) is one of the patterns; an IP address must be named as such."""
    name = host.lower().rstrip(".")
    address = _address(name)
    known = frozenset(patterns)
    if (address or name) in known:
        return True
    if name.startswith("."):
        return False
    # Each host above it in turn: as many looks as it has parts, however many patterns there are.
    above = "" if address else name.partition(".")[2]
    while above:
        if f"*.{above}" in known:
            return True
        above = above.partition(".")[2]
    return False


def _address(text: str) -> str:
    """Return an IP address in its one canonical form, "" for anything else."""
    if text.startswith("[") and text.endswith("]"):
        text = text[1:-1]
    try:
        return str(ip_address(text.partition("%")[0]))
    except ValueError:
        return ""
