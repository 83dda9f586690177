"""The one error shape of the API."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django.core.exceptions import PermissionDenied
from django.http import Http404
from rest_framework import exceptions
from rest_framework.response import Response
from rest_framework.views import set_rollback

from basics.errors import refusal_of
from web.errors import error_body


def exception_handler(exc: Exception, context: Mapping[str, Any]) -> Response | None:
    """Return every refusal as ``{code, message, details, request_id}``, a full disk and a busy database too; other exceptions stay 500s."""
    request = context["request"]._request
    headers: dict[str, str] = {}
    refusal = refusal_of(exc)
    if refusal is not None:
        set_rollback()
        body = error_body(request, refusal.code, refusal.message, refusal.data)
        if "retry_after" in refusal.data:
            headers["Retry-After"] = str(refusal.data["retry_after"])
        return Response(body, status=refusal.status, headers=headers)
    if isinstance(exc, Http404):
        exc = exceptions.NotFound()
    elif isinstance(exc, PermissionDenied):
        exc = exceptions.PermissionDenied()
    if not isinstance(exc, exceptions.APIException):
        return None
    set_rollback()
    if auth_header := getattr(exc, "auth_header", None):
        headers["WWW-Authenticate"] = auth_header
    if wait := getattr(exc, "wait", None):
        headers["Retry-After"] = str(int(wait))
    if isinstance(exc, exceptions.ValidationError):
        body = error_body(request, "invalid", "Some fields are invalid; see details.", {"fields": exc.detail})
    else:
        codes: Any = exc.get_codes()
        body = error_body(request, codes if isinstance(codes, str) else "error", str(exc.detail))
    return Response(body, status=exc.status_code, headers=headers)
