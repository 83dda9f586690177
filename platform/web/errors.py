"""How a refusal looks: a page for people, a fragment for htmx, one JSON shape for programs."""

from __future__ import annotations

import sys
from typing import Any

from django.http import HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import render
from django.template.loader import render_to_string
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from basics.errors import DomainError, database_busy

_HEADINGS = {
    403: gettext_lazy("You can't do this"),
    404: gettext_lazy("There is nothing here"),
    409: gettext_lazy("Not possible right now"),
    429: gettext_lazy("Too many attempts"),
    503: gettext_lazy("Too busy right now"),
}


def error_body(request: Any, code: str, message: str, details: Any = None) -> dict[str, Any]:
    """Return the one error shape of the API."""
    return {
        "code": code,
        "message": message,
        "details": details or {},
        "request_id": getattr(request, "request_id", ""),
    }


def wants_json(request: HttpRequest) -> bool:
    """Tell whether the caller is a program: anything under /api/, or who asks for JSON."""
    return request.path.startswith("/api/") or request.headers.get("Accept") == "application/json"


def refusal(request: HttpRequest, status: int, code: str, message: str, details: Any = None) -> HttpResponse:
    """Return the answer to a refused request in the form its caller can use."""
    response = _in_form(request, status, code, message, details)
    if details and "retry_after" in details:
        response["Retry-After"] = str(details["retry_after"])
    return response


def _in_form(request: HttpRequest, status: int, code: str, message: str, details: Any) -> HttpResponse:
    if wants_json(request):
        return JsonResponse(error_body(request, code, message, details), status=status)
    # Without a database, context processors would each wait for a connection once more.
    context_of = None if status == 503 else request
    page: dict[str, Any] = {"code": code, "message": message}
    name = "components/_error.html"
    if not request.headers.get("HX-Request"):
        name = "error.html"
        ident = getattr(request, "request_id", "")
        heading = _HEADINGS.get(status, _("This did not work"))
        page |= {"status": status, "heading": heading, "request_id": ident}
    return HttpResponse(render_to_string(name, page, request=context_of), status=status)


def error_response(request: HttpRequest, error: DomainError) -> HttpResponse:
    """Return the answer to an action that a service refused."""
    return refusal(request, error.status, error.code, error.message, error.data)


def bad_request(request: HttpRequest, exception: Exception) -> HttpResponse:
    """Django's handler400: a request that cannot be read."""
    return refusal(request, 400, "bad_request", _("This request could not be understood."))


def permission_denied(request: HttpRequest, exception: Exception) -> HttpResponse:
    """Django's handler403."""
    message = str(exception) or _("You do not have permission to do this.")
    return refusal(request, 403, "permission_denied", message)


def not_found(request: HttpRequest, exception: Exception) -> HttpResponse:
    """Django's handler404; the reason is kept back, it may name what the caller must not know of."""
    if wants_json(request) or request.headers.get("HX-Request"):
        message = _("This does not exist, or you don't have access to it.")
        return refusal(request, 404, "not_found", message)
    return render(request, "404.html", status=404)


def too_many_requests(request: HttpRequest, exception: Exception | None = None) -> HttpResponse:
    """What allauth answers when one of its limits is reached (sign-up, password reset, addresses)."""
    message = _("Too many attempts from here. Wait a minute, then try again.")
    return refusal(request, 429, "rate_limited", message, {"retry_after": 60})


def server_error(request: HttpRequest) -> HttpResponse:
    """Django's handler500: says what to quote, and nothing of what happened.

    What middleware raises comes here alone; so a busy database, which is no fault, is told apart here too.
    """
    raised = sys.exception()
    busy = None if raised is None else database_busy(raised)
    if busy is not None:
        return error_response(request, busy)
    ident = getattr(request, "request_id", "")
    message = (
        _("The server failed to answer. The error is in the log under %(id)s.") % {"id": ident}
        if ident
        else _("The server failed to answer. The error is in the log under the time of this request.")
    )
    if wants_json(request):
        return JsonResponse(error_body(request, "server_error", message), status=500)
    # Without context processors: they may be what failed.
    return HttpResponse(render_to_string("500.html", {"request_id": ident}), status=500)


def csrf_failure(request: HttpRequest, reason: str = "") -> HttpResponse:
    """Django's CSRF_FAILURE_VIEW."""
    message = _("This page was open for too long, or in two sessions. Reload it and try again.")
    return refusal(request, 403, "csrf_failed", message, {"reason": reason})
