"""Serves static files from this process: small ones, each whole in its answer, and bundles of them.

WhiteNoise answers with an iterator of a file's pieces. An ASGI server can't wait for those: Django then reads them all in
another thread, and warns of it. So the file is read here, where the middleware already has a thread of its own.
"""

from __future__ import annotations

import re
from typing import Any

from django.http import HttpRequest, HttpResponse
from whitenoise.middleware import WhiteNoiseMiddleware

from web.bundles import FOLDER, Bundle, bundle_find

_YEAR_S = 31_536_000
_GZIP = re.compile(r"\bgzip\b")


class StaticFiles(WhiteNoiseMiddleware):  # type: ignore[misc]
    """WhiteNoise with whole files as answers, and with bundles."""

    def __call__(self, request: HttpRequest) -> Any:
        """Answer a request for a bundle or a static file; pass any other on."""
        is_bundle = request.path_info.startswith(f"{self.static_prefix}{FOLDER}")
        if is_bundle and request.method in ("GET", "HEAD"):
            found = bundle_find(request.path_info)
            if found is not None:
                return _bundle_answer(request, *found)
        return super().__call__(request)

    @staticmethod
    def serve(static_file: Any, request: HttpRequest) -> HttpResponse:
        """Return the answer to a request for a static file, with WhiteNoise's status and headers and no others."""
        meta = request.META
        if tag := meta.get("HTTP_IF_NONE_MATCH"):  # weak, where the answer was compressed on its way
            meta = {**meta, "HTTP_IF_NONE_MATCH": tag.removeprefix("W/")}
        found = static_file.get_response(request.method, meta)
        body = b""
        if found.file is not None:
            with found.file as file:
                body = file.read()
        response = HttpResponse(body, status=int(found.status))
        del response["content-type"]
        for key, value in found.headers:
            response[key] = value
        return response


def _bundle_answer(request: HttpRequest, bundle: Bundle, is_current: bool) -> HttpResponse:
    is_zipped = bool(_GZIP.search(request.headers.get("Accept-Encoding", "")))
    body = bundle.zipped if is_zipped else bundle.body
    headers = {
        "Content-Length": str(len(body)),
        "Cache-Control": f"max-age={_YEAR_S}, public, immutable" if is_current else "no-cache",
        "Vary": "Accept-Encoding",
    }
    if is_zipped:
        headers["Content-Encoding"] = "gzip"
    return HttpResponse(body if request.method == "GET" else b"", bundle.content_type, headers=headers)
