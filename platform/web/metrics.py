"""Count what this process answers, and answer ``/metrics`` before anything else looks at the request."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from django.conf import settings
from django.http import HttpRequest, HttpResponse

from basics.metrics import HTTP_SECONDS
from tenancy.exposition import CONTENT_TYPE, metrics_text, token_given

PATH = "/metrics"
_UNMATCHED = "unmatched"  # an address that there isn't, a static file


def requests_measured(get_response: Callable[[HttpRequest], Any]) -> Callable[[HttpRequest], Any]:
    """Note how long each request took, by the name of its route: addresses hold names of workspaces and are no labels.

    ``/metrics`` is answered here, because Prometheus asks each process by its address, which is no host name that the
    server answers to, and by plain HTTP.
    """

    def middleware(request: HttpRequest) -> Any:
        if _is_for_metrics(request):
            return _metrics(request)
        began = time.perf_counter()
        response = get_response(request)
        _note(request, response, began)
        return response

    return middleware


def _note(request: HttpRequest, response: Any, began: float) -> None:
    match = request.resolver_match
    route = (match.view_name if match is not None else "") or _UNMATCHED
    HTTP_SECONDS.observe(route, f"{response.status_code // 100}xx", seconds=time.perf_counter() - began)


def _is_for_metrics(request: HttpRequest) -> bool:
    """Without a token there is no such address, and what answers unknown ones answers this."""
    return request.path_info == PATH and bool(settings.METRICS_TOKEN)


def _metrics(request: HttpRequest) -> HttpResponse:
    if not token_given(request.headers.get("Authorization", "")):
        answer = HttpResponse("Send the token of GROUNDWORK_METRICS_TOKEN.\n", "text/plain", status=401)
        answer["WWW-Authenticate"] = "Bearer"
    elif request.method not in ("GET", "HEAD"):
        answer = HttpResponse(status=405)
        answer["Allow"] = "GET, HEAD"
    else:
        answer = HttpResponse(metrics_text(), CONTENT_TYPE)
    answer["Cache-Control"] = "no-store"
    return answer
