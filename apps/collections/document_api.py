"""REST of versions, access, places and types of documents, and of what is done to whole collections."""

from __future__ import annotations

from drf_spectacular.utils import extend_schema
from rest_framework import status
from rest_framework.request import Request
from rest_framework.response import Response

from apps.collections import kept_rows, selectors, services
from apps.collections.api_shapes import DocumentOutput
from apps.collections.code_kinds import code_patterns_get
from apps.collections.document_api_shapes import (
    AccessInput,
    AccessOutput,
    CheckOutput,
    CodePatternsInput,
    CodePatternsOutput,
    CountOutput,
    MoveInput,
    SwapInput,
    SwapOutput,
    SwapStepInput,
    TypeRulesShape,
)
from apps.collections.ingestion.document_types import trade_compliance_data
from apps.collections.models import Document
from apps.collections.reconcile import ingestion_check
from web.drf.inputs import valid
from web.drf.pages import Pagination, WholeList
from web.drf.views import TenantAPIView


class VersionsView(TenantAPIView):
    """Versions of a document."""

    actions = {"GET": "collection.read"}
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

    actions = {"POST": "document.write"}

    @extend_schema(
        operation_id="documents_restore", tags=["documents"], request=None, responses={202: DocumentOutput}
    )
    def post(self, request: Request, pk: int) -> Response:
        """Make an earlier version the current one: its bytes are read anew as the newest version."""
        document = selectors.document_get(actor=self.actor, pk=pk)
        row = services.document_restore(tenant=self.tenant, actor=self.actor, document=document)
        return Response(DocumentOutput(row).data, status=status.HTTP_202_ACCEPTED)


class ReindexView(TenantAPIView):
    """Another reading of a document."""

    actions = {"POST": "document.write"}

    @extend_schema(
        operation_id="documents_reindex", tags=["documents"], request=None, responses={202: DocumentOutput}
    )
    def post(self, request: Request, pk: int) -> Response:
        """Read a document's original again; the version that is live answers until the new one is ready."""
        document = selectors.document_get(actor=self.actor, pk=pk)
        row = services.document_reindex(tenant=self.tenant, actor=self.actor, document=document)
        return Response(DocumentOutput(row).data, status=status.HTTP_202_ACCEPTED)


class MoveView(TenantAPIView):
    """Another path for a document."""

    actions = {"POST": "document.write"}

    @extend_schema(
        operation_id="documents_move", tags=["documents"], request=MoveInput, responses=DocumentOutput
    )
    def post(self, request: Request, pk: int) -> Response:
        """Give a document with all its versions another path."""
        document = selectors.document_get(actor=self.actor, pk=pk)
        row = services.document_move(
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
        row = services.document_access_set(tenant=self.tenant, actor=self.actor, document=document, **values)
        return self._told(row)

    def _told(self, document: Document) -> Response:
        entries = selectors.document_access_list(actor=self.actor, document=document)
        told = {
            "is_restricted": document.is_restricted,
            "roles": [entry.role for entry in entries if entry.role],
            "users": [entry.user_id for entry in entries if entry.user_id],
        }
        return Response(AccessOutput(told).data)


class CollectionReindexView(TenantAPIView):
    """Another reading of all documents."""

    actions = {"POST": "document.write"}

    @extend_schema(
        operation_id="collections_reindex", tags=["collections"], request=None, responses={202: CountOutput}
    )
    def post(self, request: Request, pk: int) -> Response:
        """Read every live document of a collection again, for example after its chunk sizes were changed."""
        collection = selectors.collection_get(actor=self.actor, pk=pk)
        count = services.collection_reindex(tenant=self.tenant, actor=self.actor, collection=collection)
        return Response({"count": count}, status=status.HTTP_202_ACCEPTED)


class CheckView(TenantAPIView):
    """The ingestion check of a collection."""

    actions = {"GET": "collection.delete", "POST": "collection.delete"}

    @extend_schema(operation_id="ingestion_check", tags=["collections"], responses=CheckOutput)
    def get(self, request: Request, pk: int) -> Response:
        """Compare documents, chunks, vectors and statistics with each other and list what is wrong."""
        return self._check(pk, repair=False)

    @extend_schema(operation_id="ingestion_repair", tags=["collections"], request=None, responses=CheckOutput)
    def post(self, request: Request, pk: int) -> Response:
        """The same, and put right what can be; the rest is returned with advice."""
        return self._check(pk, repair=True)

    def _check(self, pk: int, *, repair: bool) -> Response:
        collection = selectors.collection_get(actor=self.actor, pk=pk)
        found = ingestion_check(tenant=self.tenant, actor=self.actor, collection=collection, repair=repair)
        shown = kept_rows.check_shown(actor=self.actor, collection=collection, check=found)
        return Response(CheckOutput(shown).data)


class SwapsView(TenantAPIView):
    """Moves of a collection to another embedding model."""

    actions = {"GET": "collection.read", "POST": "collection.write"}
    pagination_class = Pagination

    @extend_schema(operation_id="swaps_list", tags=["collections"], responses=SwapOutput(many=True))
    def get(self, request: Request, pk: int) -> Response:
        """List the moves of a collection to other embedding models, newest first."""
        collection = selectors.collection_get(actor=self.actor, pk=pk)
        return self.paginated(kept_rows.swap_list(actor=self.actor, collection=collection), SwapOutput)

    @extend_schema(
        operation_id="swaps_start", tags=["collections"], request=SwapInput, responses={202: SwapOutput}
    )
    def post(self, request: Request, pk: int) -> Response:
        """Begin to make vectors of another model beside the live ones; search goes on with these."""
        collection = selectors.collection_get(actor=self.actor, pk=pk)
        swap = services.swap_start(
            tenant=self.tenant, actor=self.actor, collection=collection, **valid(SwapInput, request.data)
        )
        return Response(SwapOutput(swap).data, status=status.HTTP_202_ACCEPTED)


class SwapView(TenantAPIView):
    """One move to another embedding model."""

    actions = {"GET": "collection.read", "POST": "collection.write"}

    @extend_schema(operation_id="swaps_get", tags=["collections"], responses=SwapOutput)
    def get(self, request: Request, pk: int) -> Response:
        """Return how far it is and how both models compare."""
        return Response(SwapOutput(kept_rows.swap_get(actor=self.actor, pk=pk)).data)

    @extend_schema(
        operation_id="swaps_step", tags=["collections"], request=SwapStepInput, responses=SwapOutput
    )
    def post(self, request: Request, pk: int) -> Response:
        """Switch to the new vectors, undo that, drop the old ones, cancel, or retry after a failure."""
        swap = kept_rows.swap_get(actor=self.actor, pk=pk)
        steps = {
            "switch": services.swap_switch,
            "undo": services.swap_undo,
            "drop": services.swap_drop,
            "cancel": services.swap_cancel,
            "retry": services.swap_retry,
        }
        step = steps[valid(SwapStepInput, request.data)["step"]]
        step(tenant=self.tenant, actor=self.actor, swap=swap)
        return self.get(request, pk)


class TypeRulesView(TenantAPIView):
    """The workspace's rules for document types."""

    actions = {"GET": "collection.read", "PUT": "collection.write"}

    @extend_schema(operation_id="document_types_get", tags=["documents"], responses=TypeRulesShape)
    def get(self, request: Request) -> Response:
        """Return the rules that give documents their types, null when there are none."""
        return Response({"rules": kept_rows.type_rules_get(actor=self.actor)})

    @extend_schema(
        operation_id="document_types_set",
        tags=["documents"],
        request=TypeRulesShape,
        responses=TypeRulesShape,
    )
    def put(self, request: Request) -> Response:
        """Replace the rules; documents that are here get their types in the background. Null removes the rules."""
        rules = valid(TypeRulesShape, request.data)["rules"]
        services.type_rules_set(tenant=self.tenant, actor=self.actor, rules=rules)
        return self.get(request)


class TypeRulesExampleView(TenantAPIView):
    """Rules to begin with."""

    actions = {"GET": "collection.read"}

    @extend_schema(operation_id="document_types_example", tags=["documents"], responses=TypeRulesShape)
    def get(self, request: Request) -> Response:
        """Return the rules for trade compliance, as an example of what rules can say."""
        return Response({"rules": trade_compliance_data()})


class CodePatternsView(TenantAPIView):
    """The workspace's own patterns of codes: part numbers, dockets and the like."""

    actions = {"GET": "collection.read", "PUT": "collection.write"}

    @extend_schema(operation_id="code_patterns_get", tags=["documents"], responses=CodePatternsOutput)
    def get(self, request: Request) -> Response:
        """Return the patterns, null when there are none, and which of them took too long on some passages."""
        row = code_patterns_get(actor=self.actor)
        found = (
            {"patterns": None, "late": []} if row is None else {"patterns": row.patterns, "late": row.late}
        )
        return Response(CodePatternsOutput(found).data)

    @extend_schema(
        operation_id="code_patterns_set",
        tags=["documents"],
        request=CodePatternsInput,
        responses=CodePatternsOutput,
    )
    def put(self, request: Request) -> Response:
        """Replace the patterns; passages that are here are indexed by them in the background. Null removes them."""
        patterns = valid(CodePatternsInput, request.data)["patterns"]
        services.code_patterns_set(tenant=self.tenant, actor=self.actor, patterns=patterns)
        return self.get(request)
