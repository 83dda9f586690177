"""REST of the toolkit that a collection has. The view holds no rules."""

from __future__ import annotations

from typing import Any

from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from apps.tools.models import Toolkit
from apps.tools.toolkits.services import collection_toolkit_set
from apps.tools.toolset.selectors import collection_toolkit
from web.drf.views import TenantAPIView


class CollectionToolkitInput(serializers.Serializer[Any]):
    toolkit = serializers.IntegerField(
        allow_null=True, min_value=1, max_value=2**63 - 1, help_text="Id of the toolkit; null for none."
    )

    class Meta:
        ref_name = "CollectionToolkitChange"


class CollectionToolkitOutput(serializers.Serializer[Any]):
    toolkit = serializers.IntegerField(allow_null=True, help_text="Id of the toolkit; null for none.")
    name = serializers.CharField(allow_blank=True, help_text="Name of the toolkit; empty for none.")

    class Meta:
        ref_name = "CollectionToolkit"


class CollectionToolkitView(TenantAPIView):
    """The tools that conversations over a collection are offered besides."""

    actions = {"GET": "collection.read", "PUT": "tool.manage"}

    @extend_schema(operation_id="collections_toolkit_read", tags=["tools"], responses=CollectionToolkitOutput)
    def get(self, request: Request, pk: int) -> Response:
        """Show the toolkit of a collection."""
        return _told(collection_toolkit(actor=self.actor, collection=pk))

    @extend_schema(
        operation_id="collections_toolkit_set",
        tags=["tools"],
        request=CollectionToolkitInput,
        responses=CollectionToolkitOutput,
    )
    def put(self, request: Request, pk: int) -> Response:
        """Choose the toolkit of a collection, or none. It gives no permission: rules still decide about each call."""
        shape = CollectionToolkitInput(data=request.data)
        shape.is_valid(raise_exception=True)
        kit = collection_toolkit_set(
            tenant=self.tenant, actor=self.actor, collection=pk, **shape.validated_data
        )
        return _told(kit)


def _told(kit: Toolkit | None) -> Response:
    if kit is None:
        return Response({"toolkit": None, "name": ""})
    return Response({"toolkit": kit.pk, "name": kit.name})
