"""REST of what is done to whole collections: read again, check, move to another embedding model, codes."""

from __future__ import annotations

from drf_spectacular.utils import extend_schema
from rest_framework import status
from rest_framework.request import Request
from rest_framework.response import Response

from apps.collections.collection import selectors as kept_rows
from apps.collections.collection import swaps
from apps.collections.collection.reconcile import ingestion_check
from apps.collections.collection.shapes import (
    CheckOutput,
    CodePatternsInput,
    CodePatternsOutput,
    SwapInput,
    SwapOutput,
    SwapStepInput,
)
from apps.collections.display import selectors
from apps.collections.documents import versions
from apps.collections.documents.shapes import CountOutput
from apps.collections.index import code_patterns
from apps.collections.index.codes import code_patterns_get
from web.drf.inputs import valid
from web.drf.pages import Pagination
from web.drf.views import TenantAPIView


class CollectionReindexView(TenantAPIView):
    """Another reading of all documents."""

    actions = {"POST": "document.write"}

    @extend_schema(
        operation_id="collections_reindex", tags=["collections"], request=None, responses={202: CountOutput}
    )
    def post(self, request: Request, pk: int) -> Response:
        """Read every live document of a collection again, for example after its chunk sizes were changed."""
        collection = selectors.collection_get(actor=self.actor, pk=pk)
        count = versions.collection_reindex(tenant=self.tenant, actor=self.actor, collection=collection)
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
        """Check and repair what can be repaired; the rest is returned with advice."""
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
        """List a collection's switches to other embedding models, newest first."""
        collection = selectors.collection_get(actor=self.actor, pk=pk)
        return self.paginated(kept_rows.swap_list(actor=self.actor, collection=collection), SwapOutput)

    @extend_schema(
        operation_id="swaps_start", tags=["collections"], request=SwapInput, responses={202: SwapOutput}
    )
    def post(self, request: Request, pk: int) -> Response:
        """Start building vectors with another model; search continues with the current ones."""
        collection = selectors.collection_get(actor=self.actor, pk=pk)
        swap = swaps.swap_start(
            tenant=self.tenant, actor=self.actor, collection=collection, **valid(SwapInput, request.data)
        )
        return Response(SwapOutput(swap).data, status=status.HTTP_202_ACCEPTED)


class SwapView(TenantAPIView):
    """One move to another embedding model."""

    actions = {"GET": "collection.read", "POST": "collection.write"}

    @extend_schema(operation_id="swaps_get", tags=["collections"], responses=SwapOutput)
    def get(self, request: Request, pk: int) -> Response:
        """Return its progress and how both models compare."""
        return Response(SwapOutput(kept_rows.swap_get(actor=self.actor, pk=pk)).data)

    @extend_schema(
        operation_id="swaps_step", tags=["collections"], request=SwapStepInput, responses=SwapOutput
    )
    def post(self, request: Request, pk: int) -> Response:
        """Switch to the new vectors, switch back, delete the old ones, cancel, or retry after a failure."""
        swap = kept_rows.swap_get(actor=self.actor, pk=pk)
        steps = {
            "switch": swaps.swap_switch,
            "undo": swaps.swap_undo,
            "drop": swaps.swap_drop,
            "cancel": swaps.swap_cancel,
            "retry": swaps.swap_retry,
        }
        step = steps[valid(SwapStepInput, request.data)["step"]]
        step(tenant=self.tenant, actor=self.actor, swap=swap)
        return self.get(request, pk)


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
        """Replace the patterns; existing passages are re-indexed in the background. Null removes them."""
        patterns = valid(CodePatternsInput, request.data)["patterns"]
        code_patterns.code_patterns_set(tenant=self.tenant, actor=self.actor, patterns=patterns)
        return self.get(request)
