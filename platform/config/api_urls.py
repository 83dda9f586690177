"""The REST API: /api/v1/... (namespace ``api``)."""

from __future__ import annotations

from django.urls import include, path

app_name = "api"
urlpatterns = [
    path("", include("web.api_urls")),
    path("", include("apps.collections.api_urls")),
    path("", include("apps.tools.api_urls")),
    path("", include("apps.conversations.api_urls")),
    path("", include("apps.datasets.api_urls")),
    path("", include("apps.evaluations.api_urls")),
]
