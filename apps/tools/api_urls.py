"""REST of tools (included under /api/v1/, namespace ``api``)."""

from __future__ import annotations

from django.urls import include, path

from apps.tools.approvals.api import ApprovalHandOverView, ApprovalsView
from apps.tools.calls.api import ToolsExecuteView, ToolsView
from apps.tools.catalog.api import SuggestionsView
from apps.tools.limits.api import ToolLimitsView, ToolLimitView
from apps.tools.permissions import api as permissions
from apps.tools.toolkits.api import CollectionToolkitView

urlpatterns = [
    path("tools", ToolsView.as_view(), name="tools-list"),
    path("tools/suggestions", SuggestionsView.as_view(), name="tools-suggestions"),
    path("tool-grants", permissions.GrantsView.as_view(), name="tool-grants-list"),
    path("tool-grants/<int:pk>", permissions.GrantView.as_view(), name="tool-grants-detail"),
    path("toolkits", permissions.ToolkitsView.as_view(), name="toolkits-list"),
    path("toolkits/<int:pk>", permissions.ToolkitView.as_view(), name="toolkits-detail"),
    path("collections/<int:pk>/toolkit", CollectionToolkitView.as_view(), name="collections-toolkit"),
    path("tool-limits", ToolLimitsView.as_view(), name="tool-limits-list"),
    path("tool-limits/<int:pk>", ToolLimitView.as_view(), name="tool-limits-detail"),
    path("tool-entries", permissions.EntriesView.as_view(), name="tool-entries-list"),
    path("tool-entries/<int:pk>", permissions.EntryView.as_view(), name="tool-entries-detail"),
    path("access", permissions.AccessView.as_view(), name="access"),
    path("access/try", permissions.AccessTryView.as_view(), name="access-try"),
    path("tools/execute", ToolsExecuteView.as_view(), name="tools-execute"),
    path("approvals", ApprovalsView.as_view(), name="approvals-list"),
    path("approvals/<int:pk>/hand-over", ApprovalHandOverView.as_view(), name="approvals-hand-over"),
    path("", include("apps.tools.call_log.api_urls")),
    path("", include("apps.tools.sources.api_urls")),
]
