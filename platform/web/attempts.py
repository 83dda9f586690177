"""Wrong passwords: slowed where they come from, so that nobody can keep somebody else out by typing them.

An attempt is counted before the password is looked at, and taken back when it was right:

- A browser that has signed in to this account before (a signed cookie) has a count of its own, which no other fills.
- From elsewhere, an account takes ``PER_ACCOUNT`` wrong attempts from one address of the network; while many addresses
  fail at one account (``MANY`` in an hour), each of them has one. It is never none: the right password gets in from
  wherever nobody has just tried wrong ones.
- One address fails ``PER_ADDRESS`` times a minute over all accounts.

- A second factor's code or passkey may be wrong ``PER_CODE`` times for an account: whoever is asked for one knows the password.
- A passkey at sign-in counts by address alone, with the passwords: there is nothing to guess, and whose it is comes from
  the browser, so a count by account would let anybody keep its owner out.

Counts are kept in the database (``web.windows``), so that they hold over all web processes.
"""

from __future__ import annotations

import hashlib
import math
import secrets
from dataclasses import replace
from ipaddress import IPv6Address, IPv6Network, ip_address
from typing import Any

from django.conf import settings
from django.core import signing
from django.http import HttpRequest, HttpResponse

from basics.errors import DomainError
from basics.texts import ngettext
from tenancy.origin import valid_ip
from web.middleware import client_ip
from web.windows import Window, windows_take, windows_undo

PER_ACCOUNT = 5
PER_BROWSER = 10
PER_CODE = 5
PER_ADDRESS = 30
PASSKEYS_PER_ADDRESS = 60
MANY = 100
"""More than one address alone can fail at an account in an hour: 12 times ``PER_ACCOUNT``."""
WINDOW_S = 300
_HOUR_S = 3600
_COOKIE = "groundwork_browser"
_COOKIE_AGE_S = 180 * 86_400
_MOST_KEPT = 5


class TooManyAttempts(DomainError):
    """Too many wrong passwords have come from here, or codes for an account."""

    default_status = 429

    def __init__(self, wait_s: int, *, is_code: bool = False) -> None:
        minutes = -(-wait_s // 60)
        if is_code:
            message = ngettext(
                "Too many wrong codes were entered for this account. Wait %(count)s minute, then try again.",
                "Too many wrong codes were entered for this account. Wait %(count)s minutes, then try again.",
                minutes,
            )
        else:
            message = ngettext(
                "Too many wrong passwords were entered from here. Wait %(count)s minute, then try again. A browser that "
                "you have signed in with before, and other networks, aren't affected.",
                "Too many wrong passwords were entered from here. Wait %(count)s minutes, then try again. A browser that "
                "you have signed in with before, and other networks, aren't affected.",
                minutes,
            )
        super().__init__("too_many_attempts", message % {"count": minutes}, data={"retry_after": wait_s})


def attempt_take(request: HttpRequest, login: str) -> list[Window]:
    """Count an attempt to sign in; returns what ``attempt_undo`` takes back when the password was right.

    Args:
        login: the e-mail address as it was typed; whether it has an account plays no part.

    Raises:
        TooManyAttempts: there were too many wrong ones.
    """
    account = _account(login)
    if request.user.is_authenticated:  # who is asked once more, in a session of theirs
        return _taken(Window(f"user:{request.user.pk}", PER_BROWSER, WINDOW_S))
    browser, known = _browser(request)
    if account in known:
        return _taken(Window(f"browser:{browser}:{account}", PER_BROWSER, WINDOW_S))
    network = network_of(client_ip(request))
    by_address = Window(f"address:{network}", PER_ADDRESS, 60)
    by_account = Window(f"account:{network}:{account}", PER_ACCOUNT, WINDOW_S)
    many = Window(f"many:{account}", MANY, _HOUR_S)
    # A refused one is no guess, and counts nowhere: so one address alone never makes it many.
    full = windows_take(many, by_address, by_account)
    if full is None:
        return [many, by_address, by_account]
    if full.window != many:
        raise TooManyAttempts(math.ceil(full.wait_s))
    # A limit that falls from five to one, and never to none.
    return _taken(by_address, replace(by_account, amount=1))


def code_attempt_take(user_pk: int) -> list[Window]:
    """Count a code of somebody's second factor before it is looked at; returns what ``attempt_undo`` takes back.

    Raises:
        TooManyAttempts: there were too many wrong ones.
    """
    return _taken(Window(f"code:{user_pk}", PER_CODE, WINDOW_S), is_code=True)


def passkey_attempt_take(request: HttpRequest) -> list[Window]:
    """Count a sign-in by passkey before it is looked at; returns what ``attempt_undo`` takes back.

    Raises:
        TooManyAttempts: too many passwords and passkeys from this address were wrong.
    """
    return _taken(Window(f"address:{network_of(client_ip(request))}", PER_ADDRESS, 60))


def passkey_start_take(request: HttpRequest) -> None:
    """Count a challenge that somebody who isn't signed in asks for: each is kept in a session.

    Raises:
        TooManyAttempts: there were too many from this address.
    """
    _taken(Window(f"passkey:{network_of(client_ip(request))}", PASSKEYS_PER_ADDRESS, 60))


def attempt_undo(taken: list[Window]) -> None:
    """Take back what an attempt counted."""
    windows_undo(*taken)


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


def _taken(*windows: Window, is_code: bool = False) -> list[Window]:
    if full := windows_take(*windows):
        raise TooManyAttempts(math.ceil(full.wait_s), is_code=is_code)
    return list(windows)


def _browser(request: HttpRequest) -> tuple[str, list[str]]:
    try:
        said: Any = signing.loads(request.COOKIES[_COOKIE], salt=_COOKIE, max_age=_COOKIE_AGE_S)
        return str(said["id"]), [str(one) for one in said["known"]]
    except (KeyError, TypeError, signing.BadSignature):
        return secrets.token_hex(8), []


def network_of(address: str) -> str:
    """Return what counts as one address: of IPv6 the 64 bits that one customer has to himself.

    What is no address is all one: a limit that it can't tell apart holds for all of them together.
    """
    address = valid_ip(address)
    if not address:
        return "unknown"
    found = ip_address(address)
    return str(IPv6Network((int(found), 64), strict=False)) if isinstance(found, IPv6Address) else str(found)
