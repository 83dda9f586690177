"""REST of tools (included under /api/v1/, namespace ``api``)."""

from __future__ import annotations

from django.urls import include, path

from apps.tools.api import ToolsExecuteView, ToolsView
from apps.tools.approval_api import ApprovalHandOverView, ApprovalsView

urlpatterns = [
    path("tools", ToolsView.as_view(), name="tools-list"),
    path("tools/execute", ToolsExecuteView.as_view(), name="tools-execute"),
    path("approvals", ApprovalsView.as_view(), name="approvals-list"),
    path(
        "approvals/<int:pk>/hand-over", ApprovalHandOverView.as_view(), name="approvals-hand-over"
    ),
    path("", include("apps.tools.log_api_urls")),
    path("", include("apps.tools.source_api_urls")),
]
