"""Compresses pages on their way to a browser."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponseBase
from django.middleware.gzip import GZipMiddleware

_TYPES = ("text/html", "image/svg+xml")


class PagesCompressed(GZipMiddleware):
    """Django's compression, with its defence against guessing by length, for pages and drawings alone.

    A stream is passed on as it is: it would wait in the compressor. Styles and scripts are compressed once, see ``bundles``.
    """

    def process_response(self, request: HttpRequest, response: HttpResponseBase) -> HttpResponseBase:
        """Return the response, compressed where the browser can read that and it is shorter."""
        kind = response.headers.get("Content-Type", "").partition(";")[0]
        is_part = response.status_code == 206  # and a part is of the plain file
        if response.streaming or kind not in _TYPES or is_part:
            return response
        return super().process_response(request, response)
