"""REST of tools (included under /api/v1/, namespace ``api``)."""

from __future__ import annotations

from django.urls import include, path

from apps.tools.api import ToolsExecuteView, ToolsView

urlpatterns = [
    path("tools", ToolsView.as_view(), name="tools-list"),
    path("tools/execute", ToolsExecuteView.as_view(), name="tools-execute"),
    path("", include("apps.tools.log_api_urls")),
]
