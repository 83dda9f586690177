"""Pages of tools, under /t/<slug>/tools/."""

from __future__ import annotations

from django.urls import include, path

from apps.tools.approvals import views as approval_views
from apps.tools.catalog import views
from apps.tools.limits import views as views_limits
from apps.tools.permissions import dry_run_views as views_access
from apps.tools.permissions import matrix_views as views_permissions
from apps.tools.permissions import views as views_grants
from apps.tools.playground import views as views_try
from apps.tools.sources import contract_views as views_tests
from apps.tools.sources import views as views_sources
from apps.tools.toolkits import views as views_collections

app_name = "tools"
_TOOL = "catalog/<str:name>/"
urlpatterns = [
    path("", views.catalog, name="catalog"),
    path(_TOOL, views_try.tool, name="tool"),
    path(f"{_TOOL}try/", views_try.tool_try, name="tool-try"),
    path(f"{_TOOL}switch/", views.switch, name="tool-switch"),
    path(f"{_TOOL}edit/", views.edit, name="tool-edit"),
    path(f"{_TOOL}tests/new/", views_tests.test_new, name="contract-test-create"),
    path("tests/<int:pk>/", views_tests.test, name="contract-test"),
    path("sources/", views_sources.sources, name="sources"),
    path("sources/new/", views_sources.source_new, name="source-create"),
    path("sources/<int:pk>/", views_sources.source, name="source"),
    path("sources/<int:pk>/edit/", views_sources.source_edit, name="source-edit"),
    path("sources/<int:pk>/act/", views_sources.source_act, name="source-act"),
    path("sources/<int:pk>/credential/", views_sources.source_credential, name="source-credential"),
    path("sources/<int:pk>/versions/", views_sources.versions_decide, name="versions-decide"),
    path("versions/<int:pk>/", views_sources.version, name="version"),
    path("permissions/", views_permissions.permissions, name="permissions"),
    path("permissions/set/", views_permissions.permission_set, name="permission-set"),
    path("permissions/undo/", views_permissions.permission_undo, name="permission-undo"),
    path("permissions/rules/", views_grants.grants, name="grants"),
    path("permissions/rules/new/", views_grants.grant_new, name="grant-create"),
    path("permissions/rules/<int:pk>/", views_grants.grant_edit, name="grant-edit"),
    path("permissions/rules/<int:pk>/delete/", views_grants.grant_remove, name="grant-delete"),
    path("permissions/toolkits/", views_grants.toolkits, name="toolkits"),
    path("permissions/toolkits/<int:pk>/delete/", views_grants.toolkit_remove, name="toolkit-delete"),
    path("collections/<int:pk>/", views_collections.collection_tools, name="collection"),
    path("limits/", views_limits.limits, name="settings-limits"),
    path("access/", views_access.access, name="access"),
    path("approvals/", approval_views.approvals, name="approvals"),
    path("approvals/stream/", approval_views.stream, name="approvals-stream"),
    path("approvals/approve/", approval_views.approve_many, name="approvals-approve"),
    path("approvals/<int:pk>/", approval_views.approval, name="approval"),
    path("approvals/<int:pk>/decide/", approval_views.decide, name="approval-decide"),
    path("approvals/<int:pk>/hand-over/", approval_views.hand_over, name="approval-hand-over"),
    path("", include("apps.tools.call_log.urls")),
]
