"""The REST API: /api/v1/... (namespace ``api``)."""

from __future__ import annotations

from importlib.util import find_spec

from django.urls import include, path

app_name = "api"
urlpatterns = [
    path("", include(module))
    for module in ("web.api_urls", "apps.collections.api_urls", "apps.conversations.api_urls")
    if find_spec(module)
]
