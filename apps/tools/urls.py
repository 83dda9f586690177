"""Pages of tools, under /t/<slug>/tools/."""

from __future__ import annotations

from django.urls import include, path

from apps.tools import views

app_name = "tools"
_TOOL = "catalog/<str:name>/"
urlpatterns = [
    path("", views.catalog, name="catalog"),
    path(_TOOL, views.tool, name="tool"),
    path(f"{_TOOL}switch/", views.switch, name="tool-switch"),
    path(f"{_TOOL}edit/", views.edit, name="tool-edit"),
    path("", include("apps.tools.log_urls")),
]
