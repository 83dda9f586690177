"""REST of the log of reads. The view holds no rules: ``runs.reads`` says who sees what."""

from __future__ import annotations

from typing import Any

from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from apps.tools.call_log.reads import reads_choice, reads_shown
from runs.reads import reads_list
from web.drf.pages import Pagination
from web.drf.views import TenantAPIView


class ReadOutput(serializers.Serializer[Any]):
    """A passage that reached an answer."""

    id = serializers.IntegerField()
    at = serializers.DateTimeField()
    run = serializers.IntegerField()
    user = serializers.IntegerField(allow_null=True)
    user_name = serializers.CharField(help_text="Empty for a former member.")
    chunk = serializers.IntegerField(allow_null=True, help_text="Null if lines of the file itself were read.")
    document = serializers.IntegerField()
    document_name = serializers.CharField(help_text="As it was when the passage was read.")
    version = serializers.IntegerField(allow_null=True, help_text="Version of the document.")
    collection_name = serializers.CharField()
    tool = serializers.CharField(help_text="The tool that fetched it.")
    is_gone = serializers.BooleanField(help_text="The document has been deleted since.")

    class Meta:
        ref_name = "ChunkRead"


class ReadsView(TenantAPIView):
    """Who has read what."""

    actions = {"GET": "run.read"}
    may_lag = frozenset({"GET"})
    pagination_class = Pagination

    @extend_schema(
        operation_id="reads_list",
        tags=["tools"],
        parameters=[
            OpenApiParameter("document", int, description="Id of the document: who has read it?"),
            OpenApiParameter("chunk", int, description="Id of the chunk."),
            OpenApiParameter("who", int, description="Id of the person: what did their answers read?"),
            OpenApiParameter("run", int, description="Id of the run: what did this answer read?"),
        ],
        responses=ReadOutput(many=True),
    )
    def get(self, request: Request) -> Response:
        """List which passages were used in which answers, newest first: your own, or everyone's with `audit.read`."""
        rows = reads_list(actor=self.actor, **reads_choice(request.query_params))
        pages = Pagination()
        found = pages.paginate_queryset(rows, request, view=self) or []
        shown = reads_shown(self.actor, found)
        return pages.get_paginated_response(ReadOutput(shown, many=True).data)
