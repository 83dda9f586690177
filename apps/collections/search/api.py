"""REST of search: questions, saved questions, and named moments to search as of."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from drf_spectacular.utils import extend_schema
from rest_framework import serializers, status
from rest_framework.request import Request
from rest_framework.response import Response

from apps.collections.display import selectors
from apps.collections.search import LEGS, cases, search_run
from apps.collections.search import selectors as search_selectors
from apps.collections.search.shapes import (
    SearchCaseInput,
    SearchCaseOutput,
    SearchInput,
    SearchOutput,
    SnapshotInput,
    SnapshotOutput,
)
from web.drf.inputs import valid
from web.drf.pages import Pagination
from web.drf.views import TenantAPIView


class SearchView(TenantAPIView):
    """Search."""

    actions = {"POST": "search.run"}
    may_lag = frozenset({"POST"})
    waits = True  # for an embedder, and for the model that reranks

    @extend_schema(operation_id="search", tags=["search"], request=SearchInput, responses=SearchOutput)
    def post(self, request: Request) -> Response:
        """Find passages by meaning, by words and by exact codes, with the rank of each."""
        values = valid(SearchInput, request.data)
        pks = values.get("collections")
        result = search_run(
            tenant=self.tenant,
            actor=self.actor,
            collections=None if pks is None else selectors.collections_named(actor=self.actor, pks=pks),
            query=values["query"],
            k=values["k"],
            filters=values.get("filters"),
            legs=tuple(dict.fromkeys(values.get("legs", LEGS))),
            as_of=self._moment(values),
            expand=values["expand"],
            trace=values["trace"],
        )
        return Response(SearchOutput(result).data)

    def _moment(self, values: dict[str, Any]) -> datetime | None:
        as_of: datetime | None = values.get("as_of")
        if "snapshot" not in values:
            return as_of
        if as_of is not None:
            raise serializers.ValidationError({"snapshot": ["Give either this or as_of, not both."]})
        return search_selectors.snapshot_get(actor=self.actor, pk=values["snapshot"]).at


class SearchCasesView(TenantAPIView):
    """Saved questions of a collection."""

    actions = {"GET": "collection.read", "POST": "collection.write"}
    may_lag = frozenset({"GET"})
    pagination_class = Pagination

    @extend_schema(operation_id="search_cases_list", tags=["search"], responses=SearchCaseOutput(many=True))
    def get(self, request: Request, pk: int) -> Response:
        """List the questions saved for evaluation, newest first."""
        collection = selectors.collection_get(actor=self.actor, pk=pk)
        pages = Pagination()
        rows = search_selectors.search_case_list(actor=self.actor, collection=collection)
        found = pages.paginate_queryset(rows, request, view=self) or []
        shown = search_selectors.cases_shown(actor=self.actor, cases=found)
        return pages.get_paginated_response(SearchCaseOutput(shown, many=True).data)

    @extend_schema(
        operation_id="search_cases_save",
        tags=["search"],
        request=SearchCaseInput,
        responses={201: SearchCaseOutput},
    )
    def post(self, request: Request, pk: int) -> Response:
        """Save a question with the passages that should answer it."""
        collection = selectors.collection_get(actor=self.actor, pk=pk)
        case = cases.search_case_save(
            tenant=self.tenant,
            actor=self.actor,
            collection=collection,
            **valid(SearchCaseInput, request.data),
        )
        return Response(SearchCaseOutput(case).data, status=status.HTTP_201_CREATED)


class SearchCaseView(TenantAPIView):
    """One saved question."""

    actions = {"GET": "collection.read", "DELETE": "collection.write"}

    @extend_schema(operation_id="search_cases_get", tags=["search"], responses=SearchCaseOutput)
    def get(self, request: Request, pk: int) -> Response:
        """Return a saved question."""
        case = search_selectors.search_case_get(actor=self.actor, pk=pk)
        return Response(
            SearchCaseOutput(search_selectors.cases_shown(actor=self.actor, cases=[case])[0]).data
        )

    @extend_schema(operation_id="search_cases_delete", tags=["search"], responses={204: None})
    def delete(self, request: Request, pk: int) -> Response:
        """Delete a saved question."""
        case = search_selectors.search_case_get(actor=self.actor, pk=pk)
        cases.search_case_delete(tenant=self.tenant, actor=self.actor, case=case)
        return Response(status=status.HTTP_204_NO_CONTENT)


class SnapshotsView(TenantAPIView):
    """Named moments of a collection."""

    actions = {"GET": "collection.read", "POST": "collection.write"}
    may_lag = frozenset({"GET"})
    pagination_class = Pagination

    @extend_schema(operation_id="snapshots_list", tags=["collections"], responses=SnapshotOutput(many=True))
    def get(self, request: Request, pk: int) -> Response:
        """List the named moments that searches can go back to."""
        collection = selectors.collection_get(actor=self.actor, pk=pk)
        rows = search_selectors.snapshot_list(actor=self.actor, collection=collection)
        return self.paginated(rows, SnapshotOutput)

    @extend_schema(
        operation_id="snapshots_create",
        tags=["collections"],
        request=SnapshotInput,
        responses={201: SnapshotOutput},
    )
    def post(self, request: Request, pk: int) -> Response:
        """Name a moment of the collection, so that it can be searched as it was then while versions are kept."""
        collection = selectors.collection_get(actor=self.actor, pk=pk)
        row = cases.snapshot_create(
            tenant=self.tenant, actor=self.actor, collection=collection, **valid(SnapshotInput, request.data)
        )
        return Response(SnapshotOutput(row).data, status=status.HTTP_201_CREATED)


class SnapshotView(TenantAPIView):
    """One named moment."""

    actions = {"DELETE": "collection.write"}

    @extend_schema(operation_id="snapshots_delete", tags=["collections"], responses={204: None})
    def delete(self, request: Request, pk: int) -> Response:
        """Delete a named moment; documents and versions stay."""
        row = search_selectors.snapshot_get(actor=self.actor, pk=pk)
        cases.snapshot_delete(tenant=self.tenant, actor=self.actor, snapshot=row)
        return Response(status=status.HTTP_204_NO_CONTENT)
