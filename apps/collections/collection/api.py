"""REST of collections. The views hold no rules: selectors read, services write."""

from __future__ import annotations

from typing import Any

from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework import status
from rest_framework.parsers import MultiPartParser
from rest_framework.request import Request
from rest_framework.response import Response

from apps.collections.collection import services
from apps.collections.collection.shapes import CollectionInput, CollectionOutput
from apps.collections.display import selectors
from apps.collections.display.request_values import choice, text
from apps.collections.documents import services as documents_services
from apps.collections.documents.shapes import (
    DocumentOutput,
    UploadInput,
    UploadOutput,
)
from apps.collections.documents.uploads import posted_file
from apps.collections.imports import services as imports_services
from apps.collections.imports.api import ImportDetailOutput
from apps.collections.ingestion.sources.archives import is_archive
from apps.collections.models import DocumentSource, DocumentStatus
from web.drf.inputs import valid
from web.drf.pages import Pagination
from web.drf.views import TenantAPIView


class CollectionsView(TenantAPIView):
    """The collections of the workspace."""

    actions = {"GET": "collection.read", "POST": "collection.write"}
    may_lag = frozenset({"GET"})
    pagination_class = Pagination

    @extend_schema(
        operation_id="collections_list", tags=["collections"], responses=CollectionOutput(many=True)
    )
    def get(self, request: Request) -> Response:
        """List collections with their counts, newest first."""
        return self.paginated(selectors.collection_list(actor=self.actor), CollectionOutput)

    @extend_schema(
        operation_id="collections_create",
        tags=["collections"],
        request=CollectionInput,
        responses={201: CollectionOutput},
    )
    def post(self, request: Request) -> Response:
        """Create a collection."""
        values = valid(CollectionInput, request.data)
        row = services.collection_create(tenant=self.tenant, actor=self.actor, **values)
        shown = selectors.collection_counted(actor=self.actor, pk=row.pk)
        return Response(CollectionOutput(shown).data, status=status.HTTP_201_CREATED)


class CollectionView(TenantAPIView):
    """One collection."""

    actions = {"GET": "collection.read", "PATCH": "collection.write", "DELETE": "collection.delete"}

    @extend_schema(operation_id="collections_get", tags=["collections"], responses=CollectionOutput)
    def get(self, request: Request, pk: int) -> Response:
        """Return a collection."""
        return Response(CollectionOutput(selectors.collection_counted(actor=self.actor, pk=pk)).data)

    @extend_schema(
        operation_id="collections_update",
        tags=["collections"],
        request=CollectionInput(partial=True),
        responses=CollectionOutput,
    )
    def patch(self, request: Request, pk: int) -> Response:
        """Change name, description or passage sizes; sizes apply to documents added from now on."""
        collection = selectors.collection_get(actor=self.actor, pk=pk)
        values = valid(CollectionInput, request.data, partial=True)
        services.collection_update(tenant=self.tenant, actor=self.actor, collection=collection, **values)
        return self.get(request, pk)

    @extend_schema(operation_id="collections_delete", tags=["collections"], responses={204: None})
    def delete(self, request: Request, pk: int) -> Response:
        """Delete a collection with everything in it."""
        collection = selectors.collection_get(actor=self.actor, pk=pk)
        services.collection_delete(tenant=self.tenant, actor=self.actor, collection=collection)
        return Response(status=status.HTTP_204_NO_CONTENT)


class DocumentsView(TenantAPIView):
    """The documents of a collection."""

    stores = True

    actions = {"GET": "collection.read", "POST": "document.write"}
    may_lag = frozenset({"GET"})
    pagination_class = Pagination
    parser_classes = (MultiPartParser,)

    @extend_schema(
        operation_id="documents_list",
        tags=["documents"],
        parameters=[
            OpenApiParameter("status", str, enum=DocumentStatus.values, description="Only these."),
            OpenApiParameter("q", str, description="Part of a path, ignoring case."),
            OpenApiParameter("document_type", str, description="`-` for documents without a type."),
            OpenApiParameter("tag", str),
            OpenApiParameter("source", str, enum=DocumentSource.values),
        ],
        responses=DocumentOutput(many=True),
    )
    def get(self, request: Request, pk: int) -> Response:
        """List the current versions of a collection's documents with status and counts, newest first."""
        collection = selectors.collection_get(actor=self.actor, pk=pk)
        rows = selectors.document_list(
            actor=self.actor,
            collection=collection,
            status=choice(request, "status", DocumentStatus.values),
            source=choice(request, "source", DocumentSource.values),
            q=text(request, "q"),
            document_type=text(request, "document_type"),
            tag=text(request, "tag"),
        )
        return self.paginated(rows, DocumentOutput)

    @extend_schema(
        operation_id="documents_upload",
        tags=["documents"],
        request={"multipart/form-data": UploadInput},
        responses={201: UploadOutput, 200: UploadOutput, 202: ImportDetailOutput},
    )
    def post(self, request: Request, pk: int) -> Response:
        """Upload a file and start its ingestion; the same bytes again return the existing document (200).

        An archive (ZIP, TAR) is imported file by file; the answer (202) is that import.
        """
        collection = selectors.collection_get(actor=self.actor, pk=pk)
        who: dict[str, Any] = {"tenant": self.tenant, "actor": self.actor, "collection": collection}
        posted = posted_file(request)
        if is_archive(posted["name"]):
            row = imports_services.import_start(
                **who, source=DocumentSource.ARCHIVE, options=imports_services.ImportOptions(), **posted
            )
            return Response(ImportDetailOutput(row).data, status=status.HTTP_202_ACCEPTED)
        uploaded = documents_services.document_upload(**who, **posted)
        uploaded.document.created = uploaded.created  # type: ignore[attr-defined]
        code = status.HTTP_201_CREATED if uploaded.created else status.HTTP_200_OK
        return Response(UploadOutput(uploaded.document).data, status=code)
