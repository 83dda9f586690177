"""REST of the documents that rows quote. The views hold no rules."""

from __future__ import annotations

from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from apps.collections.display.request_values import text
from apps.datasets.licences import services
from apps.datasets.licences.selectors import source_list
from apps.datasets.licences.shapes import SourceLicenseInput, SourceLicenseOutput, SourceOutput, SourcesOutput
from apps.datasets.rows import selectors
from web.drf.inputs import valid
from web.drf.pages import page_linked
from web.drf.views import TenantAPIView

_WRITE = "dataset.write"
_PAGE = 50


class SourcesView(TenantAPIView):
    """The documents that rows quote."""

    actions = {"GET": "dataset.read", "PATCH": _WRITE}
    may_lag = frozenset({"GET"})

    @extend_schema(
        operation_id="dataset_sources_list",
        tags=["datasets"],
        parameters=[
            OpenApiParameter("after", str, description="Only documents whose name comes after this one.")
        ],
        responses=SourcesOutput,
    )
    def get(self, request: Request, pk: int) -> Response:
        """List the documents that a dataset's rows quote, by name, with their licences and rows."""
        found = source_list(
            actor=self.actor,
            dataset=selectors.dataset_get(actor=self.actor, pk=pk),
            after=text(request, "after"),
            most=_PAGE + 1,
        )
        is_more = len(found) > _PAGE
        shown = list(SourceOutput(found[:_PAGE], many=True).data)
        return page_linked(request, shown, {"after": found[_PAGE - 1].document} if is_more else None)

    @extend_schema(
        operation_id="dataset_sources_license",
        tags=["datasets"],
        request=SourceLicenseInput,
        responses=SourceLicenseOutput,
    )
    def patch(self, request: Request, pk: int) -> Response:
        """Set a document's licence in every row that quotes it; exports include it."""
        values = valid(SourceLicenseInput, request.data)
        changed = services.source_license_set(
            tenant=self.tenant,
            actor=self.actor,
            dataset=selectors.dataset_get(actor=self.actor, pk=pk),
            document=values["document"],
            licence=values["license"],
        )
        return Response(SourceLicenseOutput({"changed": changed}).data)
