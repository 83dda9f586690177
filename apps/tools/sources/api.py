"""REST of a workspace's own tools: sources, versions, credentials, contract tests."""

from __future__ import annotations

from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework import status
from rest_framework.request import Request
from rest_framework.response import Response

from apps.collections.display.request_values import choice
from apps.tools.models import ToolVersion
from apps.tools.sources import contract_tests, credentials, services, versions
from apps.tools.sources.selectors import (
    contract_test_list,
    credential_list,
    source_get,
    source_list,
    version_changes,
    version_get,
    version_list,
)
from apps.tools.sources.shapes import (
    AcceptInput,
    ContractTestInput,
    ContractTestOutput,
    CredentialInput,
    CredentialOutput,
    DecisionInput,
    RefreshInput,
    RefreshOutput,
    RunInput,
    SourceInput,
    SourceOutput,
    SourceUpdate,
    VersionDetail,
    VersionOutput,
)
from web.drf.inputs import valid
from web.drf.pages import Pagination, WholeList
from web.drf.views import TenantAPIView

_RIGHT = "tool.manage"
_STATE = OpenApiParameter(
    "state", str, enum=ToolVersion.State.values, description="Only those in this state."
)


class SourcesView(TenantAPIView):
    """The sources of the workspace's own tools."""

    actions = {"GET": _RIGHT, "POST": _RIGHT}
    pagination_class = Pagination

    @extend_schema(operation_id="tool_sources_list", tags=["tool sources"], responses=SourceOutput(many=True))
    def get(self, request: Request) -> Response:
        """List the sources, newest first, without their documents."""
        return self.paginated(source_list(actor=self.actor), SourceOutput)

    @extend_schema(
        operation_id="tool_sources_create",
        tags=["tool sources"],
        request=SourceInput,
        responses={201: SourceOutput},
    )
    def post(self, request: Request) -> Response:
        """Add a source and read it; its tools wait to be accepted unless `accept_all` is set."""
        values = valid(SourceInput, request.data)
        row = services.source_create(tenant=self.tenant, actor=self.actor, **values)
        found = source_get(actor=self.actor, pk=row.pk)
        return Response(SourceOutput(found).data, status=status.HTTP_201_CREATED)


class SourceView(TenantAPIView):
    """One source."""

    actions = {"GET": _RIGHT, "PATCH": _RIGHT, "DELETE": _RIGHT}

    @extend_schema(operation_id="tool_sources_get", tags=["tool sources"], responses=SourceOutput)
    def get(self, request: Request, pk: int) -> Response:
        """Return a source, without its document."""
        return Response(SourceOutput(source_get(actor=self.actor, pk=pk)).data)

    @extend_schema(
        operation_id="tool_sources_update",
        tags=["tool sources"],
        request=SourceUpdate(partial=True),
        responses=SourceOutput,
    )
    def patch(self, request: Request, pk: int) -> Response:
        """Change a source; it is read again if its document or address changed."""
        values = valid(SourceUpdate, request.data, partial=True)
        services.source_update(tenant=self.tenant, actor=self.actor, pk=pk, **values)
        return self.get(request, pk)

    @extend_schema(operation_id="tool_sources_delete", tags=["tool sources"], responses={204: None})
    def delete(self, request: Request, pk: int) -> Response:
        """Remove a source with its tools, credentials and tests."""
        services.source_delete(tenant=self.tenant, actor=self.actor, pk=pk)
        return Response(status=status.HTTP_204_NO_CONTENT)


class SourceRefreshView(TenantAPIView):
    """Reading a source again."""

    actions = {"POST": _RIGHT}

    @extend_schema(
        operation_id="tool_sources_refresh",
        tags=["tool sources"],
        request=RefreshInput,
        responses={202: RefreshOutput},
    )
    def post(self, request: Request, pk: int) -> Response:
        """Read a source again in a job; changes wait to be accepted."""
        values = valid(RefreshInput, request.data)
        job = services.source_refresh(tenant=self.tenant, actor=self.actor, pk=pk, **values)
        return Response({"job": job.pk}, status=status.HTTP_202_ACCEPTED)


class VersionsView(TenantAPIView):
    """The versions of a source's tools."""

    actions = {"GET": _RIGHT}
    pagination_class = Pagination

    @extend_schema(
        operation_id="tool_versions_list",
        tags=["tool sources"],
        parameters=[_STATE],
        responses=VersionOutput(many=True),
    )
    def get(self, request: Request, pk: int) -> Response:
        """List the versions, newest first."""
        source_get(actor=self.actor, pk=pk)
        state = choice(request, "state", ToolVersion.State.values)
        rows = version_list(actor=self.actor, source=pk, state=state).defer("spec")
        return self.paginated(rows, VersionOutput)


class VersionView(TenantAPIView):
    """One version."""

    actions = {"GET": _RIGHT}

    @extend_schema(operation_id="tool_versions_get", tags=["tool sources"], responses=VersionDetail)
    def get(self, request: Request, pk: int, version_pk: int) -> Response:
        """Return a version of a tool and how it differs from the current one."""
        row = version_get(actor=self.actor, pk=version_pk, source=pk)
        row.diff = version_changes(actor=self.actor, pk=row.pk)  # type: ignore[attr-defined]
        return Response(VersionDetail(row).data)


class VersionsAcceptView(TenantAPIView):
    """Versions that become current."""

    actions = {"POST": _RIGHT}
    waits = True  # their contract tests make real calls

    @extend_schema(
        operation_id="tool_versions_accept",
        tags=["tool sources"],
        request=AcceptInput,
        responses=VersionOutput(many=True),
    )
    def post(self, request: Request, pk: int) -> Response:
        """Accept versions if their contract tests pass; otherwise 409 with the failures."""
        values = valid(AcceptInput, request.data)
        rows = versions.version_accept(
            tenant=self.tenant, actor=self.actor, pks=values["versions"], force=values["force"], source=pk
        )
        return Response(VersionOutput(rows, many=True).data)


class VersionsRejectView(TenantAPIView):
    """Versions that are turned down."""

    actions = {"POST": _RIGHT}

    @extend_schema(
        operation_id="tool_versions_reject",
        tags=["tool sources"],
        request=DecisionInput,
        responses=VersionOutput(many=True),
    )
    def post(self, request: Request, pk: int) -> Response:
        """Reject waiting versions; a refresh does not offer the same ones again."""
        values = valid(DecisionInput, request.data)
        rows = versions.version_reject(
            tenant=self.tenant, actor=self.actor, pks=values["versions"], source=pk
        )
        return Response(VersionOutput(rows, many=True).data)


class CredentialsView(TenantAPIView):
    """What a source's calls prove themselves with."""

    actions = {"GET": _RIGHT, "PUT": _RIGHT}
    pagination_class = WholeList

    @extend_schema(
        operation_id="tool_credentials_list", tags=["tool sources"], responses=CredentialOutput(many=True)
    )
    def get(self, request: Request, pk: int) -> Response:
        """List a source's credentials, without their secrets."""
        source_get(actor=self.actor, pk=pk)
        rows = credential_list(actor=self.actor, source=pk)
        return self.paginated(rows, CredentialOutput)

    @extend_schema(
        operation_id="tool_credentials_set",
        tags=["tool sources"],
        request=CredentialInput,
        responses=CredentialOutput,
    )
    def put(self, request: Request, pk: int) -> Response:
        """Store a credential, or replace the one in the same place; it is never shown again."""
        values = valid(CredentialInput, request.data)
        row = credentials.credential_set(tenant=self.tenant, actor=self.actor, source=pk, **values)
        return Response(CredentialOutput(row).data)


class CredentialView(TenantAPIView):
    """One credential."""

    actions = {"DELETE": _RIGHT}

    @extend_schema(operation_id="tool_credentials_forget", tags=["tool sources"], responses={204: None})
    def delete(self, request: Request, pk: int, credential_pk: int) -> Response:
        """Remove a credential."""
        credentials.credential_forget(tenant=self.tenant, actor=self.actor, pk=credential_pk, source=pk)
        return Response(status=status.HTTP_204_NO_CONTENT)


class ContractTestsView(TenantAPIView):
    """The contract tests of a source's tools."""

    actions = {"GET": _RIGHT, "PUT": _RIGHT}
    pagination_class = Pagination

    @extend_schema(
        operation_id="contract_tests_list", tags=["tool sources"], responses=ContractTestOutput(many=True)
    )
    def get(self, request: Request, pk: int) -> Response:
        """List the tests, newest first, with their last results."""
        source_get(actor=self.actor, pk=pk)
        return self.paginated(contract_test_list(actor=self.actor, source=pk), ContractTestOutput)

    @extend_schema(
        operation_id="contract_tests_set",
        tags=["tool sources"],
        request=ContractTestInput,
        responses=ContractTestOutput,
    )
    def put(self, request: Request, pk: int) -> Response:
        """Attach a test to a tool, or replace the one with the same name."""
        values = valid(ContractTestInput, request.data)
        row = contract_tests.contract_test_set(tenant=self.tenant, actor=self.actor, source=pk, **values)
        return Response(ContractTestOutput(row).data)


class ContractTestView(TenantAPIView):
    """One contract test."""

    actions = {"DELETE": _RIGHT}

    @extend_schema(operation_id="contract_tests_delete", tags=["tool sources"], responses={204: None})
    def delete(self, request: Request, pk: int, test_pk: int) -> Response:
        """Remove a test."""
        contract_tests.contract_test_delete(tenant=self.tenant, actor=self.actor, pk=test_pk, source=pk)
        return Response(status=status.HTTP_204_NO_CONTENT)


class ContractTestRunView(TenantAPIView):
    """A run of a contract test."""

    actions = {"POST": _RIGHT}
    waits = True

    @extend_schema(
        operation_id="contract_tests_run",
        tags=["tool sources"],
        request=RunInput,
        responses=ContractTestOutput,
    )
    def post(self, request: Request, pk: int, test_pk: int) -> Response:
        """Run a test's call with a version of its tool and return the result."""
        values = valid(RunInput, request.data)
        row = contract_tests.contract_test_run(
            tenant=self.tenant, actor=self.actor, pk=test_pk, version=values.get("version"), source=pk
        )
        return Response(ContractTestOutput(row).data)
