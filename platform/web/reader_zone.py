"""The reader's time zone, as their browser names it in a cookie: the server cannot know it otherwise."""

from __future__ import annotations

import datetime
from functools import cache
from zoneinfo import ZoneInfo, available_timezones

from django.conf import settings
from django.http import HttpRequest

COOKIE = "gw.zone"
"""Set by static/js/shell.js to an IANA name, with "/" as it is."""


def reader_zone(request: HttpRequest) -> datetime.tzinfo:
    """Return the time zone of the person at the browser; the server's where no known one is named."""
    name = request.COOKIES.get(COOKIE, "")
    return ZoneInfo(name if name in _names() else settings.TIME_ZONE)


@cache
def _names() -> frozenset[str]:
    return frozenset(available_timezones())
