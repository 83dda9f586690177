"""REST of the call log and of what it tells (included by ``apps.tools.api_urls``)."""

from __future__ import annotations

from django.urls import path

from apps.tools.log_api import ToolCallsExportView, ToolCallsView, ToolCallView

urlpatterns = [
    path("tool-calls", ToolCallsView.as_view(), name="tool-calls-list"),
    path("tool-calls/file", ToolCallsExportView.as_view(), name="tool-calls-file"),
    path("tool-calls/<int:pk>", ToolCallView.as_view(), name="tool-calls-read"),
]
