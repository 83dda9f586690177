"""REST of datasets and their rows. The views hold no rules."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework import status
from rest_framework.request import Request
from rest_framework.response import Response

from apps.datasets.models import Dataset, Difficulty, QuestionType, RowStatus, Split
from apps.datasets.rows import dataset_services, selectors, services
from apps.datasets.rows.selectors import RowFilter
from apps.datasets.rows.shapes import DatasetInput, DatasetOutput, DatasetUpdate, RowOutput, RowUpdate
from web.drf.inputs import valid
from web.drf.pages import Pagination
from web.drf.views import TenantAPIView

_READ, _WRITE = "dataset.read", "dataset.write"
_CHOICES = {"status": RowStatus, "type": QuestionType, "difficulty": Difficulty, "split": Split}
_FILTERS = [
    OpenApiParameter("job", int, description="Id of the generation that made them.")
    if name == "job"
    else OpenApiParameter(name, str, enum=_CHOICES[name].values if name in _CHOICES else None)
    for name in RowFilter.__slots__
]


class _Base(TenantAPIView):
    """What the views of datasets share."""

    def _dataset(self, pk: int) -> Dataset:
        return selectors.dataset_get(actor=self.actor, pk=pk)

    def _shown(self, pk: int) -> dict[str, Any]:
        return dict(DatasetOutput(self._dataset(pk)).data)


class DatasetsView(_Base):
    """The workspace's datasets."""

    actions = {"GET": _READ, "POST": _WRITE}
    may_lag = frozenset({"GET"})
    pagination_class = Pagination

    @extend_schema(operation_id="datasets_list", tags=["datasets"], responses=DatasetOutput(many=True))
    def get(self, request: Request) -> Response:
        """List datasets, newest first."""
        return self.paginated(selectors.dataset_list(actor=self.actor), DatasetOutput)

    @extend_schema(
        operation_id="datasets_create",
        tags=["datasets"],
        request=DatasetInput,
        responses={201: DatasetOutput},
    )
    def post(self, request: Request) -> Response:
        """Create an empty dataset."""
        row = dataset_services.dataset_create(
            tenant=self.tenant, actor=self.actor, **valid(DatasetInput, request.data)
        )
        return Response(self._shown(row.pk), status=status.HTTP_201_CREATED)


class DatasetView(_Base):
    """One dataset."""

    actions = {"GET": _READ, "PATCH": _WRITE, "DELETE": "dataset.delete"}

    @extend_schema(operation_id="datasets_get", tags=["datasets"], responses=DatasetOutput)
    def get(self, request: Request, pk: int) -> Response:
        """Return a dataset with its counts."""
        return Response(self._shown(pk))

    @extend_schema(
        operation_id="datasets_update", tags=["datasets"], request=DatasetUpdate, responses=DatasetOutput
    )
    def patch(self, request: Request, pk: int) -> Response:
        """Change name, description or the two-person rule."""
        dataset_services.dataset_update(
            tenant=self.tenant,
            actor=self.actor,
            dataset=self._dataset(pk),
            changes=valid(DatasetUpdate, request.data),
        )
        return Response(self._shown(pk))

    @extend_schema(operation_id="datasets_delete", tags=["datasets"], responses={204: None})
    def delete(self, request: Request, pk: int) -> Response:
        """Delete a dataset with its rows, versions and jobs."""
        dataset_services.dataset_delete(tenant=self.tenant, actor=self.actor, dataset=self._dataset(pk))
        return Response(status=status.HTTP_204_NO_CONTENT)


class _FoundRows(Pagination):
    """Pages of rows that a search has found: only the ids of the page are asked for, never those of all."""

    def __init__(self, found: Callable[..., list[int]]) -> None:
        self._found = found

    def paginate_queryset(self, queryset: Any, request: Request, view: Any = None) -> Any:
        """Return the page that the request's cursor names."""
        cursor = self.decode_cursor(request)
        offset, is_reverse, position = cursor or (0, False, None)
        most = offset + (self.get_page_size(request) or self.page_size) + 1
        ids = self._found(past=int(position or 0), is_back=not is_reverse, most=most)
        return super().paginate_queryset(queryset.filter(pk__in=ids), request, view)


class RowsView(_Base):
    """The rows of a dataset."""

    actions = {"GET": _READ}
    may_lag = frozenset({"GET"})
    pagination_class = Pagination

    @extend_schema(
        operation_id="dataset_rows_list",
        tags=["datasets"],
        parameters=_FILTERS,
        responses=RowOutput(many=True),
    )
    def get(self, request: Request, pk: int) -> Response:
        """List a dataset's rows, newest first."""
        which: dict[str, Any] = {"actor": self.actor, "dataset": self._dataset(pk)}
        only = RowFilter.read(request.query_params)
        if not only.is_search:
            return self.paginated(selectors.row_list(**which, only=only), RowOutput)
        pages = _FoundRows(partial(selectors.row_ids, **which, only=only))
        found = pages.paginate_queryset(selectors.row_list(**which), request, view=self)
        return pages.get_paginated_response(RowOutput(found, many=True).data)


class RowView(_Base):
    """One row."""

    actions = {"GET": _READ, "PATCH": _WRITE}

    @extend_schema(operation_id="dataset_rows_get", tags=["datasets"], responses=RowOutput)
    def get(self, request: Request, pk: int, row_pk: int) -> Response:
        """Return a row with its steps, sources and scores."""
        row = selectors.row_get(actor=self.actor, dataset=self._dataset(pk), pk=row_pk)
        return Response(RowOutput(row).data)

    @extend_schema(
        operation_id="dataset_rows_update", tags=["datasets"], request=RowUpdate, responses=RowOutput
    )
    def patch(self, request: Request, pk: int, row_pk: int) -> Response:
        """Change a row; an approved one goes back to review if more than its split changes."""
        row = selectors.row_get(actor=self.actor, dataset=self._dataset(pk), pk=row_pk)
        changes = valid(RowUpdate, request.data)
        row = services.row_update(tenant=self.tenant, actor=self.actor, row=row, changes=changes)
        return Response(RowOutput(row).data)
