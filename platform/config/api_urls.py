"""The REST API: /api/v1/... (namespace ``api``)."""

from __future__ import annotations

from django.urls import include, path

app_name = "api"
urlpatterns = [
    # First what is asked most: an address is compared with some 200 others before those of the last.
    path("", include("apps.conversations.api_urls")),
    path("", include("web.api_urls")),
    path("", include("apps.collections.api_urls")),
    path("", include("apps.tools.api_urls")),
    path("", include("apps.datasets.api_urls")),
    path("", include("apps.evaluations.api_urls")),
]
