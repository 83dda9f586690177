"""Serves static files from this process: small ones, each whole in its answer.

WhiteNoise answers with an iterator of a file's pieces. An ASGI server can't wait for those: Django then reads them all in
another thread, and warns of it. So the file is read here, where the middleware already has a thread of its own.
"""

from __future__ import annotations

from typing import Any

from django.http import HttpRequest, HttpResponse
from whitenoise.middleware import WhiteNoiseMiddleware


class StaticFiles(WhiteNoiseMiddleware):  # type: ignore[misc]
    """WhiteNoise with whole files as answers."""

    @staticmethod
    def serve(static_file: Any, request: HttpRequest) -> HttpResponse:
        """Return the answer to a request for a static file, with WhiteNoise's status and headers and no others."""
        found = static_file.get_response(request.method, request.META)
        body = b""
        if found.file is not None:
            with found.file as file:
                body = file.read()
        response = HttpResponse(body, status=int(found.status))
        del response["content-type"]
        for key, value in found.headers:
            response[key] = value
        return response
