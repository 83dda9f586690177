"""REST of the call log. The views hold no rules: ``runs.call_log`` says who sees what."""

from __future__ import annotations

from typing import Any

from django.http import StreamingHttpResponse
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, OpenApiResponse, extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from apps.collections.display.request_values import choice as word
from runs.call_export import FORMS, calls_export
from runs.call_log import call_choice, call_facts, call_get, call_log, calls_withhold, people_named
from runs.models import CallDecision, CallPath, ToolCallStatus
from runs.selectors import CONTENT_SHOWN
from toolloop.json_cut import text_cut
from web.drf.pages import Pagination
from web.drf.views import TenantAPIView

FILTERS = [
    OpenApiParameter("who", int, description="Id of the person the run belongs to."),
    OpenApiParameter("tool", str, description="The tool's full name."),
    OpenApiParameter("run", int, description="Id of the run."),
    OpenApiParameter("status", str, enum=ToolCallStatus.values),
    OpenApiParameter("decision", str, enum=CallDecision.values),
    OpenApiParameter("path", str, enum=CallPath.values, description="How the call was made."),
    OpenApiParameter("since", OpenApiTypes.DATE, description="The first day."),
    OpenApiParameter("until", OpenApiTypes.DATE, description="The last day."),
    OpenApiParameter("text", str, description="Occurs in name, arguments, reason, error or result."),
]


class CallOutput(serializers.Serializer[Any]):
    """A call as ``runs.call_log.call_facts`` tells it."""

    id = serializers.IntegerField()
    run = serializers.IntegerField()
    user = serializers.IntegerField(allow_null=True)
    user_name = serializers.CharField(help_text="Empty for a former member.")
    path = serializers.ChoiceField(
        choices=CallPath.choices, allow_blank=True, help_text="How the call was made."
    )
    step = serializers.IntegerField(help_text="The model turn that made it.")
    call_id = serializers.CharField()
    parent_call_id = serializers.CharField(
        help_text="Name of the tool or program that made the call; empty for the model."
    )
    tool = serializers.CharField()
    tool_version = serializers.CharField()
    arguments = serializers.JSONField(help_text="Secrets are masked.")
    decision = serializers.ChoiceField(
        choices=CallDecision.choices,
        allow_blank=True,
        help_text="The policy's decision; empty if it didn't apply.",
    )
    rule = serializers.IntegerField(allow_null=True, help_text="Id of the rule that decided.")
    decision_why = serializers.CharField()
    status = serializers.ChoiceField(choices=ToolCallStatus.choices)
    error_code = serializers.CharField()
    attempts = serializers.IntegerField()
    result_size = serializers.IntegerField(allow_null=True, help_text="Characters in the full output.")
    cost_usd = serializers.DecimalField(
        14, 8, allow_null=True, help_text="Its share of the cost of the model turn that made it."
    )
    started_at = serializers.DateTimeField()
    finished_at = serializers.DateTimeField(allow_null=True)
    duration_ms = serializers.IntegerField(allow_null=True)

    class Meta:
        ref_name = "LoggedCall"


class CallDetailOutput(CallOutput):
    result = serializers.CharField(help_text=f"Its first {CONTENT_SHOWN} characters.")

    class Meta:
        ref_name = "LoggedCallDetail"


class ToolCallsView(TenantAPIView):
    """The call log."""

    actions = {"GET": "run.read"}
    may_lag = frozenset({"GET"})
    pagination_class = Pagination

    @extend_schema(
        operation_id="tool_calls_list", tags=["tools"], parameters=FILTERS, responses=CallOutput(many=True)
    )
    def get(self, request: Request) -> Response:
        """List tool calls, newest first: your own, or everyone's with the right `audit.read`."""
        rows = call_log(actor=self.actor, choice=call_choice(request.query_params))
        pages = Pagination()
        found = pages.paginate_queryset(rows, request, view=self) or []
        calls_withhold(self.actor, found)
        names = people_named(call.user_id for call in found)
        facts = [call_facts(call, names.get(call.user_id or 0, "")) for call in found]
        return pages.get_paginated_response(CallOutput(facts, many=True).data)


class ToolCallView(TenantAPIView):
    """One call."""

    actions = {"GET": "run.read"}

    @extend_schema(operation_id="tool_calls_read", tags=["tools"], responses=CallDetailOutput)
    def get(self, request: Request, pk: int) -> Response:
        """Show one call with the beginning of its result."""
        call = call_get(actor=self.actor, pk=pk)
        names = people_named([call.user_id])
        facts = call_facts(call, names.get(call.user_id or 0, ""))
        return Response(CallDetailOutput({**facts, "result": text_cut(call.content, CONTENT_SHOWN)}).data)


class ToolCallsExportView(TenantAPIView):
    """The call log as a file."""

    actions = {"GET": "run.read"}

    @extend_schema(
        operation_id="tool_calls_export",
        tags=["tools"],
        parameters=[
            OpenApiParameter("form", str, enum=list(FORMS), description="Default: `csv`."),
            *FILTERS,
        ],
        responses={
            (200, kind): OpenApiResponse(OpenApiTypes.BINARY, "One line per call, newest first.")
            for kind in ("text/csv", "application/x-ndjson")
        },
    )
    def get(self, request: Request) -> StreamingHttpResponse:
        """Download the calls that match the filters as CSV or JSON lines."""
        form = word(request, "form", FORMS, "csv")
        choice = call_choice(request.query_params)
        return calls_export(tenant=self.tenant, actor=self.actor, choice=choice, form=form)
