"""REST of documents: their versions, access, places and types."""

from __future__ import annotations

from drf_spectacular.utils import extend_schema
from rest_framework import status
from rest_framework.request import Request
from rest_framework.response import Response

from apps.collections.display import selectors
from apps.collections.documents import access, services, type_rules, versions
from apps.collections.documents import selectors as documents_selectors
from apps.collections.documents.shapes import (
    AccessInput,
    AccessOutput,
    DescribeInput,
    DocumentDetailOutput,
    DocumentOutput,
    MoveInput,
    TypeRulesShape,
)
from apps.collections.ingestion.document_types import trade_compliance_data
from apps.collections.models import Document
from erasure.models import Erasure
from web.api_erasure import ContentErasureInput, ContentErasureOutput, ContentErasureView
from web.drf.inputs import valid
from web.drf.pages import WholeList
from web.drf.views import TenantAPIView


class VersionsView(TenantAPIView):
    """Versions of a document."""

    actions = {"GET": "collection.read"}
    may_lag = frozenset({"GET"})
    pagination_class = WholeList

    @extend_schema(
        operation_id="document_versions_list", tags=["documents"], responses=DocumentOutput(many=True)
    )
    def get(self, request: Request, pk: int) -> Response:
        """List all versions at a document's path, newest first; `live_to` is null for the current one."""
        document = selectors.document_get(actor=self.actor, pk=pk)
        rows = selectors.document_versions(actor=self.actor, document=document)
        return self.paginated(rows, DocumentOutput)


class RestoreView(TenantAPIView):
    """The way back to an earlier version."""

    stores = True

    actions = {"POST": "document.write"}

    @extend_schema(
        operation_id="documents_restore", tags=["documents"], request=None, responses={202: DocumentOutput}
    )
    def post(self, request: Request, pk: int) -> Response:
        """Make an earlier version the current one: its file is read again as the newest version."""
        document = selectors.document_get(actor=self.actor, pk=pk)
        row = versions.document_restore(tenant=self.tenant, actor=self.actor, document=document)
        return Response(DocumentOutput(row).data, status=status.HTTP_202_ACCEPTED)


class ReindexView(TenantAPIView):
    """Another reading of a document."""

    stores = True

    actions = {"POST": "document.write"}

    @extend_schema(
        operation_id="documents_reindex", tags=["documents"], request=None, responses={202: DocumentOutput}
    )
    def post(self, request: Request, pk: int) -> Response:
        """Read a document's original again; the current version stays searchable until the new one is ready."""
        document = selectors.document_get(actor=self.actor, pk=pk)
        row = versions.document_reindex(tenant=self.tenant, actor=self.actor, document=document)
        return Response(DocumentOutput(row).data, status=status.HTTP_202_ACCEPTED)


class MoveView(TenantAPIView):
    """Another path for a document."""

    actions = {"POST": "document.write"}

    @extend_schema(
        operation_id="documents_move", tags=["documents"], request=MoveInput, responses=DocumentOutput
    )
    def post(self, request: Request, pk: int) -> Response:
        """Move a document with all its versions to another path."""
        document = selectors.document_get(actor=self.actor, pk=pk)
        row = versions.document_move(
            tenant=self.tenant, actor=self.actor, document=document, **valid(MoveInput, request.data)
        )
        return Response(DocumentOutput(row).data)


class AccessView(TenantAPIView):
    """Who may see a document."""

    actions = {"GET": "collection.read", "PUT": "collection.delete"}

    @extend_schema(operation_id="document_access_get", tags=["documents"], responses=AccessOutput)
    def get(self, request: Request, pk: int) -> Response:
        """Return whether a document is limited, and to which roles and members."""
        return self._told(selectors.document_get(actor=self.actor, pk=pk))

    @extend_schema(
        operation_id="document_access_set", tags=["documents"], request=AccessInput, responses=AccessOutput
    )
    def put(self, request: Request, pk: int) -> Response:
        """Limit a document with all its versions to roles and members, or open it to the workspace."""
        document = selectors.document_get(actor=self.actor, pk=pk)
        values = valid(AccessInput, request.data)
        row = access.document_access_set(tenant=self.tenant, actor=self.actor, document=document, **values)
        return self._told(row)

    def _told(self, document: Document) -> Response:
        entries = selectors.document_access_list(actor=self.actor, document=document)
        told = {
            "is_restricted": document.is_restricted,
            "roles": [entry.role for entry in entries if entry.role],
            "users": [entry.user_id for entry in entries if entry.user_id],
        }
        return Response(AccessOutput(told).data)


class TypeRulesView(TenantAPIView):
    """The workspace's rules for document types."""

    actions = {"GET": "collection.read", "PUT": "collection.write"}

    @extend_schema(operation_id="document_types_get", tags=["documents"], responses=TypeRulesShape)
    def get(self, request: Request) -> Response:
        """Return the rules that give documents their types, null when there are none."""
        return Response({"rules": documents_selectors.type_rules_get(actor=self.actor)})

    @extend_schema(
        operation_id="document_types_set",
        tags=["documents"],
        request=TypeRulesShape,
        responses=TypeRulesShape,
    )
    def put(self, request: Request) -> Response:
        """Replace the rules; existing documents get their types in the background. Null removes the rules."""
        rules = valid(TypeRulesShape, request.data)["rules"]
        type_rules.type_rules_set(tenant=self.tenant, actor=self.actor, rules=rules)
        return self.get(request)


class TypeRulesExampleView(TenantAPIView):
    """Rules to begin with."""

    actions = {"GET": "collection.read"}

    @extend_schema(operation_id="document_types_example", tags=["documents"], responses=TypeRulesShape)
    def get(self, request: Request) -> Response:
        """Return example rules, for trade compliance."""
        return Response({"rules": trade_compliance_data()})


class DocumentView(TenantAPIView):
    """One document."""

    actions = {"GET": "collection.read", "PATCH": "document.write", "DELETE": "document.write"}

    @extend_schema(operation_id="documents_get", tags=["documents"], responses=DocumentDetailOutput)
    def get(self, request: Request, pk: int) -> Response:
        """Return a document's state and its ledger: its recorded counts compared with what is stored."""
        document = selectors.document_get(actor=self.actor, pk=pk)
        document.ledger = selectors.document_ledger(actor=self.actor, document=document)  # type: ignore[attr-defined]
        return Response(DocumentDetailOutput(document).data)

    @extend_schema(
        operation_id="documents_describe", tags=["documents"], request=DescribeInput, responses=DocumentOutput
    )
    def patch(self, request: Request, pk: int) -> Response:
        """Set type, tags, date or the team's own metadata; rules never change a type set here."""
        document = selectors.document_get(actor=self.actor, pk=pk)
        values = valid(DescribeInput, request.data, partial=True)
        row = type_rules.document_describe(tenant=self.tenant, actor=self.actor, document=document, **values)
        return Response(DocumentOutput(row).data)

    @extend_schema(operation_id="documents_delete", tags=["documents"], responses={204: None})
    def delete(self, request: Request, pk: int) -> Response:
        """Delete a document with its text, chunks, vectors and file."""
        document = selectors.document_get(actor=self.actor, pk=pk)
        services.document_delete(tenant=self.tenant, actor=self.actor, document=document)
        return Response(status=status.HTTP_204_NO_CONTENT)


class DocumentErasureView(ContentErasureView):
    """Erasing a document with everything that was made of it."""

    actions = {"GET": "document.write", "POST": "document.write"}
    kind = Erasure.Kind.DOCUMENT

    def subject(self, pk: int) -> Document:
        return selectors.document_get(actor=self.actor, pk=pk)

    @extend_schema(operation_id="documents_erasure", tags=["documents"], responses=ContentErasureOutput)
    def get(self, request: Request, pk: int) -> Response:
        """Return how far the erasure is that you asked for, with its report."""
        return self.tell(pk)

    @extend_schema(
        operation_id="documents_erase",
        tags=["documents"],
        request=ContentErasureInput,
        responses={202: ContentErasureOutput},
    )
    def post(self, request: Request, pk: int) -> Response:
        """Erase all versions of a document, and what was made of it: quotes in answers, dataset rows, results of tools.

        Deleting leaves these as they are. An older backup that is restored is erased again.
        """
        return self.ask(request, pk)


class DocumentRetryView(TenantAPIView):
    """Another attempt at a document."""

    actions = {"POST": "document.write"}

    @extend_schema(
        operation_id="documents_retry", tags=["documents"], request=None, responses={202: DocumentOutput}
    )
    def post(self, request: Request, pk: int) -> Response:
        """Ingest a failed or cancelled document again, from the stage where it stopped."""
        document = selectors.document_get(actor=self.actor, pk=pk)
        row = services.document_retry(tenant=self.tenant, actor=self.actor, document=document)
        return Response(DocumentOutput(row).data, status=status.HTTP_202_ACCEPTED)


class DocumentCancelView(TenantAPIView):
    """The end of a document's ingestion."""

    actions = {"POST": "document.write"}

    @extend_schema(
        operation_id="documents_cancel", tags=["documents"], request=None, responses={202: DocumentOutput}
    )
    def post(self, request: Request, pk: int) -> Response:
        """Stop a document's ingestion: immediately while it waits, within a second while it runs."""
        document = selectors.document_get(actor=self.actor, pk=pk)
        row = services.document_cancel(tenant=self.tenant, actor=self.actor, document=document)
        return Response(DocumentOutput(row).data, status=status.HTTP_202_ACCEPTED)
