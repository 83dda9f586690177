"""Whose page it is, and their time zone: their own choice, else as their browser names it in a cookie."""

from __future__ import annotations

import datetime
import re
from functools import cache
from typing import Any
from zoneinfo import ZoneInfo, available_timezones

from django.conf import settings
from django.http import HttpRequest

COOKIE = "gw.zone"
"""Set by static/js/shell.js to an IANA name, with "/" as it is."""
# The page that is there when the database isn't: it asks nobody who reads it.
_WITHOUT_PERSON = re.compile(r"/status/?\Z")
# Names that people know; the others are old spellings, and offsets whose sign is the wrong way round.
_CHOICES = re.compile(r"(?:Africa|America|Antarctica|Asia|Atlantic|Australia|Europe|Indian|Pacific)/|UTC\Z")


def reader(request: HttpRequest) -> Any:
    """Return the person or nobody (``AnonymousUser``, None) that a page is for."""
    return None if _WITHOUT_PERSON.match(request.path_info) else getattr(request, "user", None)


def reader_zone(request: HttpRequest) -> datetime.tzinfo:
    """Return the time zone of the person at the browser; the server's where no known one is chosen or named."""
    for name in (getattr(reader(request), "time_zone", ""), request.COOKIES.get(COOKIE, "")):
        if name in _names():
            return ZoneInfo(name)
    return ZoneInfo(settings.TIME_ZONE)


@cache
def zones_offered() -> tuple[str, ...]:
    """Return the names of the time zones to choose from, in the order of the alphabet."""
    return tuple(sorted(name for name in _names() if _CHOICES.match(name)))


@cache
def _names() -> frozenset[str]:
    return frozenset(available_timezones())
