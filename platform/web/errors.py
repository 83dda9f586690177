"""How a refusal looks: a page for people, a fragment for htmx, one JSON shape for programs."""

from __future__ import annotations

from typing import Any

from django.http import HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import render

from basics.errors import DomainError


def error_body(request: Any, code: str, message: str, details: Any = None) -> dict[str, Any]:
    """Return the one error shape of the API."""
    return {
        "code": code,
        "message": message,
        "details": details or {},
        "request_id": getattr(request, "request_id", ""),
    }


def error_response(request: HttpRequest, error: DomainError) -> HttpResponse:
    """Return the answer to a refused action: JSON under /api/ or where asked for, else HTML."""
    if request.path.startswith("/api/") or request.headers.get("Accept") == "application/json":
        return JsonResponse(
            error_body(request, error.code, error.message, error.data), status=error.status
        )
    template = "components/_error.html" if request.headers.get("HX-Request") else "error.html"
    context = {"error": error, "request_id": getattr(request, "request_id", "")}
    return render(request, template, context, status=error.status)
