"""REST of the call log and of what it tells (included by ``apps.tools.api_urls``)."""

from __future__ import annotations

from django.urls import path

from apps.tools.call_log.api import ToolCallsExportView, ToolCallsView, ToolCallView
from apps.tools.call_log.reads_api import ReadsView
from apps.tools.replay.api import CallReplayView, RunReplayView
from apps.tools.usage.api import UsageView

urlpatterns = [
    path("tool-calls", ToolCallsView.as_view(), name="tool-calls-list"),
    path("tool-calls/file", ToolCallsExportView.as_view(), name="tool-calls-file"),
    path("tool-calls/<int:pk>", ToolCallView.as_view(), name="tool-calls-read"),
    path("tool-calls/<int:pk>/replay", CallReplayView.as_view(), name="tool-calls-replay"),
    path("runs/<int:pk>/replay", RunReplayView.as_view(), name="runs-replay"),
    path("reads", ReadsView.as_view(), name="reads-list"),
    path("usage", UsageView.as_view(), name="usage"),
]
