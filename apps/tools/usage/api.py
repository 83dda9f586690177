"""REST of tool and model usage."""

from __future__ import annotations

from typing import Any

from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from runs.usage_figures import usage_range, usage_read
from web.drf.views import TenantAPIView


class UsageRowOutput(serializers.Serializer[Any]):
    """Figures of one tool, member, model or day, or of all."""

    key = serializers.CharField(help_text="Name, id or day; empty for the total.")
    label = serializers.CharField()  # type: ignore[assignment]  # a figure's, not the field's own
    calls = serializers.IntegerField(help_text="Tool calls.")
    errors = serializers.IntegerField(  # type: ignore[assignment]
        help_text="Calls that failed, or whose outcome is unknown."
    )
    denied = serializers.IntegerField()
    p50_ms = serializers.FloatField(
        allow_null=True, help_text="Median duration of calls; for a model, of requests."
    )
    p95_ms = serializers.FloatField(allow_null=True)
    requests = serializers.IntegerField(help_text="Model requests.")
    lost = serializers.IntegerField(help_text="Failed requests that were billed.")
    input_tokens = serializers.IntegerField()
    output_tokens = serializers.IntegerField()
    cost_usd = serializers.FloatField(
        allow_null=True,
        help_text="For a tool: its calls' shares of the cost of the model turns that made them.",
    )

    class Meta:
        ref_name = "UsageRow"


class UsageOutput(serializers.Serializer[Any]):
    """Figures of some days; the most used first, days in their order."""

    since = serializers.DateField()
    until = serializers.DateField()
    total = UsageRowOutput()
    days = UsageRowOutput(many=True)
    tools = UsageRowOutput(many=True)
    members = UsageRowOutput(many=True, help_text="Empty for people who see only their own figures.")
    models = UsageRowOutput(many=True)

    class Meta:
        ref_name = "UsageFigures"


class UsageView(TenantAPIView):
    """What tools and models were used for."""

    actions = {"GET": "run.read"}

    @extend_schema(
        operation_id="usage_read",
        tags=["tools"],
        parameters=[
            OpenApiParameter(
                "since", OpenApiTypes.DATE, description="The first day; default: 29 days before the last."
            ),
            OpenApiParameter("until", OpenApiTypes.DATE, description="The last day; default: today."),
        ],
        responses=UsageOutput,
    )
    def get(self, request: Request) -> Response:
        """Show calls, failures, times, tokens and cost by tool, member, model and day: your own, or everyone's."""
        since, until = usage_range(request.query_params)
        return Response(UsageOutput(usage_read(actor=self.actor, since=since, until=until)).data)
