"""REST of a workspace's own tools (included by ``apps.tools.api_urls``)."""

from __future__ import annotations

from django.urls import path

from apps.tools.sources import api as source_api

_ONE = "tool-sources/<int:pk>"
urlpatterns = [
    path("tool-sources", source_api.SourcesView.as_view(), name="tool-sources-list"),
    path(_ONE, source_api.SourceView.as_view(), name="tool-sources-detail"),
    path(f"{_ONE}/refresh", source_api.SourceRefreshView.as_view(), name="tool-sources-refresh"),
    path(f"{_ONE}/versions", source_api.VersionsView.as_view(), name="tool-versions-list"),
    path(f"{_ONE}/versions/accept", source_api.VersionsAcceptView.as_view(), name="tool-versions-accept"),
    path(f"{_ONE}/versions/reject", source_api.VersionsRejectView.as_view(), name="tool-versions-reject"),
    path(f"{_ONE}/versions/<int:version_pk>", source_api.VersionView.as_view(), name="tool-versions-detail"),
    path(f"{_ONE}/credentials", source_api.CredentialsView.as_view(), name="tool-credentials-list"),
    path(
        f"{_ONE}/credentials/<int:credential_pk>",
        source_api.CredentialView.as_view(),
        name="tool-credentials-detail",
    ),
    path(f"{_ONE}/contract-tests", source_api.ContractTestsView.as_view(), name="contract-tests-list"),
    path(
        f"{_ONE}/contract-tests/<int:test_pk>",
        source_api.ContractTestView.as_view(),
        name="contract-tests-detail",
    ),
    path(
        f"{_ONE}/contract-tests/<int:test_pk>/run",
        source_api.ContractTestRunView.as_view(),
        name="contract-tests-run",
    ),
]
