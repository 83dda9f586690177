"""Wrong passwords: slowed where they come from, so that nobody can keep somebody else out by typing them.

An attempt is counted before the password is looked at, and taken back when it was right:

- A browser that has signed in to this account before (a signed cookie) has a count of its own, which no other fills.
- From elsewhere, an account takes ``PER_ACCOUNT`` wrong attempts from one address of the network; while many addresses
  fail at one account (``MANY`` in an hour), each of them has one. It is never none: the right password gets in from
  wherever nobody has just tried wrong ones.
- One address fails ``PER_ADDRESS`` times a minute over all accounts.

Counts are kept by each process, as those of the OAuth addresses are (docs/threat-model.md).
"""

from __future__ import annotations

import hashlib
import math
import secrets
import threading
import time
from collections import OrderedDict
from ipaddress import IPv6Address, IPv6Network, ip_address
from typing import Any

from django.conf import settings
from django.core import signing
from django.http import HttpRequest, HttpResponse

from basics.errors import DomainError
from web.middleware import client_ip

PER_ACCOUNT = 5
PER_BROWSER = 10
PER_ADDRESS = 30
MANY = 50
WINDOW_S = 300
_HOUR_S = 3600
_COOKIE = "groundwork_browser"
_COOKIE_AGE_S = 180 * 86_400
_MOST_KEPT = 5


class TooManyAttempts(DomainError):
    """Too many wrong passwords have come from here."""

    default_status = 429

    def __init__(self, wait_s: int) -> None:
        minutes = -(-wait_s // 60)
        super().__init__(
            "too_many_attempts",
            f"Too many wrong passwords were entered from here. Wait {minutes} {'minute' if minutes == 1 else 'minutes'}, then "
            "try again. A browser that you have signed in with before, and other networks, are not held up by this.",
            data={"retry_after": wait_s},
        )


def attempt_take(request: HttpRequest, login: str) -> list[str]:
    """Count an attempt to sign in; returns what ``attempt_undo`` takes back when the password was right.

    Args:
        login: the e-mail address as it was typed; whether it has an account plays no part.

    Raises:
        TooManyAttempts: there were too many wrong ones.
    """
    account = _account(login)
    if request.user.is_authenticated:  # who is asked once more, in a session of theirs
        return _taken((f"user:{request.user.pk}", PER_BROWSER, WINDOW_S))
    browser, known = _browser(request)
    if account in known:
        return _taken((f"browser:{browser}:{account}", PER_BROWSER, WINDOW_S))
    address = _network(client_ip(request))
    # A limit that falls from five to one, and never to none.
    many = f"many:{account}"
    is_many = windows.take(many, MANY, _HOUR_S) > 0
    try:
        taken = _taken(
            (f"address:{address}", PER_ADDRESS, 60),
            (f"account:{address}:{account}", 1 if is_many else PER_ACCOUNT, WINDOW_S),
        )
    except TooManyAttempts:
        if not is_many:  # A refused one is no guess: one address alone never makes it many.
            windows.undo(many)
        raise
    return taken if is_many else [*taken, many]


def attempt_undo(taken: list[str]) -> None:
    """Take back what an attempt counted."""
    for key in taken:
        windows.undo(key)


def browser_remember(request: HttpRequest, response: HttpResponse, login: str) -> None:
    """Let a browser that has just signed in keep a count of its own for this account."""
    account = _account(login)
    browser, known = _browser(request)
    kept = [account, *(one for one in known if one != account)][:_MOST_KEPT]
    response.set_cookie(
        _COOKIE,
        signing.dumps({"id": browser, "known": kept}, salt=_COOKIE),
        max_age=_COOKIE_AGE_S,
        httponly=True,
        samesite="Lax",
        secure=bool(settings.SESSION_COOKIE_SECURE),
        path="/accounts/",
    )


def _account(login: str) -> str:
    return hashlib.sha256(login.strip().lower().encode("utf-8", "replace")).hexdigest()[:32]


def _taken(*limits: tuple[str, int, int]) -> list[str]:
    """Count one in each window (key, amount, seconds), or in none of them when one is full."""
    done: list[str] = []
    for key, amount, seconds in limits:
        if wait := windows.take(key, amount, seconds):
            attempt_undo(done)
            raise TooManyAttempts(math.ceil(wait))
        done.append(key)
    return done


def _browser(request: HttpRequest) -> tuple[str, list[str]]:
    try:
        said: Any = signing.loads(request.COOKIES[_COOKIE], salt=_COOKIE, max_age=_COOKIE_AGE_S)
        return str(said["id"]), [str(one) for one in said["known"]]
    except (KeyError, TypeError, signing.BadSignature):
        return secrets.token_hex(8), []


def _network(address: str) -> str:
    """Return what counts as one address: of IPv6 the 64 bits that one customer has to himself."""
    try:
        found = ip_address(address)
    except ValueError:
        return address
    if isinstance(found, IPv6Address):
        return (
            str(IPv6Network((found, 64), strict=False))
            if found.ipv4_mapped is None
            else str(found.ipv4_mapped)
        )
    return str(found)


class _Windows:
    """Counts in sliding windows: at most ``MOST`` of them, the one least lately used is forgotten first."""

    MOST = 100_000

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._taken: OrderedDict[str, list[float]] = OrderedDict()

    def take(self, key: str, amount: int, seconds: int) -> float:
        """Count one; returns 0, or the seconds to wait when the window is full, and then nothing is counted."""
        now = time.monotonic()
        with self._lock:
            times = [one for one in self._taken.pop(key, []) if one > now - seconds]
            wait = times[len(times) - amount] + seconds - now if len(times) >= amount else 0.0
            if not wait:
                times.append(now)
            self._taken[key] = times
            while len(self._taken) > self.MOST:
                self._taken.popitem(last=False)
        return wait

    def undo(self, key: str) -> None:
        """Take the last count back."""
        with self._lock:
            if times := self._taken.get(key):
                times.pop()

    def clear(self) -> None:
        """Forget everything."""
        with self._lock:
            self._taken.clear()


windows = _Windows()
