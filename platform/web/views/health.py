"""What load balancers and supervisors ask."""

from __future__ import annotations

from django.http import HttpRequest, JsonResponse
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_GET

from tenancy.health import as_json
from web.health import readiness


@never_cache
@require_GET
def healthz(request: HttpRequest) -> JsonResponse:
    """The web process lives and can answer; nothing else is looked at."""
    return JsonResponse({"status": "ok"})


@never_cache
@require_GET
def readyz(request: HttpRequest) -> JsonResponse:
    """Database, its direct line, migrations and storage: 200 when all are well, else 503 with what is missing."""
    body = as_json(readiness())
    return JsonResponse(body, status=200 if body["status"] == "ready" else 503)
