"""REST of versions, and of what changed between two. The views hold no rules."""

from __future__ import annotations

from typing import Any, cast, get_args

from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework import status
from rest_framework.request import Request
from rest_framework.response import Response

from apps.collections.display.request_values import choice, number
from apps.datasets.records.record import to_values
from apps.datasets.rows import selectors
from apps.datasets.rows.selectors import RowFilter
from apps.datasets.versions import diffs, services
from apps.datasets.versions.shapes import DiffOutput, VersionInput, VersionOutput
from web.drf.inputs import valid
from web.drf.pages import Pagination
from web.drf.views import TenantAPIView

_READ, _WRITE = "dataset.read", "dataset.write"
_PAGE = 50


class DiffView(TenantAPIView):
    """What changed between two versions."""

    actions = {"GET": "dataset.read"}

    @extend_schema(
        operation_id="dataset_versions_diff",
        tags=["datasets"],
        parameters=[
            OpenApiParameter(
                "kind", str, enum=list(get_args(diffs.Change)), description="Which changes to list."
            ),
            OpenApiParameter("after", int, description="Only rows with a higher number."),
        ],
        responses=DiffOutput,
    )
    def get(self, request: Request, pk: int, older: int, newer: int) -> Response:
        """Return how many rows were added, removed and changed, and a page of one kind of change."""
        dataset = selectors.dataset_get(actor=self.actor, pk=pk)
        one, two = (
            selectors.version_get(actor=self.actor, dataset=dataset, number=n) for n in (older, newer)
        )
        kind = choice(request, "kind", get_args(diffs.Change), default="changed")
        found = diffs.version_changes(
            actor=self.actor,
            older=one,
            newer=two,
            kind=cast("diffs.Change", kind),
            after=number(request, "after", default=0) or 0,
            limit=_PAGE + 1,
        )
        counts = diffs.version_counts(actor=self.actor, older=one, newer=two)
        values: dict[str, Any] = {name: getattr(counts, name) for name in counts.__slots__}
        values["changes"] = [_change(change) for change in found[:_PAGE]]
        values["next"] = found[_PAGE - 1].ref if len(found) > _PAGE else None
        return Response(DiffOutput(values).data)


def _change(change: diffs.RowChange) -> dict[str, Any]:
    return {
        "row": change.ref,
        "kind": change.kind,
        "names": [field.name for field in change.fields],
        "before": to_values(change.before) if change.before else None,
        "after": to_values(change.after) if change.after else None,
    }


class VersionsView(TenantAPIView):
    """The versions of a dataset."""

    actions = {"GET": _READ, "POST": _WRITE}
    may_lag = frozenset({"GET"})
    pagination_class = Pagination

    @extend_schema(
        operation_id="dataset_versions_list", tags=["datasets"], responses=VersionOutput(many=True)
    )
    def get(self, request: Request, pk: int) -> Response:
        """List versions, newest first."""
        rows = selectors.version_list(
            actor=self.actor, dataset=selectors.dataset_get(actor=self.actor, pk=pk)
        )
        return self.paginated(rows, VersionOutput)

    @extend_schema(
        operation_id="dataset_versions_create",
        tags=["datasets"],
        request=VersionInput,
        responses={201: VersionOutput},
    )
    def post(self, request: Request, pk: int) -> Response:
        """Freeze rows into the next version, which never changes."""
        values = valid(VersionInput, request.data)
        made = services.version_create(
            tenant=self.tenant,
            actor=self.actor,
            dataset=selectors.dataset_get(actor=self.actor, pk=pk),
            only=RowFilter(status=values["status"]),
            note=values["note"],
        )
        return Response(VersionOutput(made).data, status=status.HTTP_201_CREATED)


class VersionView(TenantAPIView):
    """One version."""

    actions = {"GET": _READ}

    @extend_schema(operation_id="dataset_versions_get", tags=["datasets"], responses=VersionOutput)
    def get(self, request: Request, pk: int, number: int) -> Response:
        """Return a version's details."""
        found = selectors.version_get(
            actor=self.actor, dataset=selectors.dataset_get(actor=self.actor, pk=pk), number=number
        )
        return Response(VersionOutput(found).data)
