"""Which language a page speaks: the person's own choice, else the browser's cookie, else what the browser asks for, else English.

Only pages for people do. Everything that programs read (the API, SCIM, MCP, metrics) and the admin site is English: their
texts are a contract.
"""

from __future__ import annotations

import re
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import aclosing
from datetime import tzinfo
from typing import Any, cast

from django.conf import settings
from django.http import HttpRequest, HttpResponseBase
from django.utils import timezone
from django.utils.cache import patch_vary_headers
from django.utils.translation import override
from django.utils.translation.trans_real import parse_accept_lang_header

from tenancy.portal_languages import ENGLISH, languages_offered, person_language
from web.reader_zone import reader, reader_zone

_NOT_PAGES = re.compile(
    r"/(?:api|admin|scim|static|\.well-known|healthz|readyz|metrics)(?:/|\Z)"
    r"|/t/[-a-zA-Z0-9_]+/(?:mcp|oauth/(?:register|token|revoke))\Z"
)
EVENT_STREAM = "text/event-stream"


def request_language(request: HttpRequest) -> str:
    """Return the code of the language that the answer to a request speaks."""
    if _NOT_PAGES.match(request.path_info):
        return ENGLISH
    offered = languages_offered()
    if chosen := person_language(reader(request)):
        return chosen
    if (kept := request.COOKIES.get(settings.LANGUAGE_COOKIE_NAME, "")) in offered:
        return kept
    for asked, _weight in parse_accept_lang_header(request.headers.get("Accept-Language", "")):
        code = asked.partition("-")[0]  # all of ours are whole languages: de-AT is de
        if code in offered:
            return code
    return ENGLISH


def language_chosen(get_response: Callable[[HttpRequest], Any]) -> Callable[[HttpRequest], Any]:
    """Middleware: let a page, and every part of an event stream, speak its reader's language and tell times in their zone.

    Both are context variables: they follow the request into threads and tasks, and end with it. A stream is sent after that,
    so it enters them itself.
    """

    def middleware(request: HttpRequest) -> HttpResponseBase:
        if _NOT_PAGES.match(request.path_info):
            with override(ENGLISH):
                answer: HttpResponseBase = get_response(request)
            return answer
        language, zone = request_language(request), reader_zone(request)
        with override(language), timezone.override(zone):
            response: Any = get_response(request)
        kind = response.headers.get("Content-Type", "")
        if kind.startswith(("text/html", EVENT_STREAM)):
            response.headers.setdefault("Content-Language", language)
            patch_vary_headers(response, ("Accept-Language", "Cookie"))
        if response.streaming and kind.startswith(EVENT_STREAM):
            response.streaming_content = _spoken(response.streaming_content, language, zone)
        return cast("HttpResponseBase", response)

    return middleware


async def _spoken(parts: AsyncGenerator[bytes], language: str, zone: tzinfo) -> AsyncIterator[bytes]:
    """Make each part in a language and a zone, which nobody else sees between two of them."""
    async with aclosing(parts):
        while True:
            with override(language), timezone.override(zone):
                try:
                    part = await anext(parts)
                except StopAsyncIteration:
                    return
            yield part
