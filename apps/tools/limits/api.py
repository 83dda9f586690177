"""REST of limits on tool calls. The views hold no rules."""

from __future__ import annotations

from typing import Any

from drf_spectacular.utils import extend_schema
from rest_framework import serializers, status
from rest_framework.request import Request
from rest_framework.response import Response

from apps.tools.limits.selectors import tool_limit_get, tool_limit_uses
from apps.tools.limits.services import MAX_CALLS, tool_limit_remove, tool_limit_set
from apps.tools.models import ToolLimit
from web.drf.pages import WholeList
from web.drf.views import TenantAPIView

_ID: dict[str, Any] = {
    "required": False,
    "allow_null": True,
    "default": None,
    "min_value": 1,
    "max_value": 2**63 - 1,
}


class ToolLimitInput(serializers.Serializer[Any]):
    kind = serializers.ChoiceField(choices=ToolLimit.Kind.choices, help_text="Whose calls count.")
    user = serializers.IntegerField(**_ID, help_text="One member, by the person's id; null for each member.")
    api_key = serializers.IntegerField(**_ID, help_text="One key, by its id; null for each key.")
    target_kind = serializers.ChoiceField(choices=ToolLimit.Target.choices, default=ToolLimit.Target.ALL)
    target = serializers.CharField(
        required=False,
        allow_blank=True,
        default="",
        max_length=120,
        help_text="Name of the tool or group; empty for all.",
    )
    period = serializers.ChoiceField(choices=ToolLimit.Period.choices, help_text="In UTC.")
    calls = serializers.IntegerField(min_value=1, max_value=MAX_CALLS, help_text="Maximum calls per period.")

    class Meta:
        ref_name = "ToolLimitInput"


class ToolLimitOutput(serializers.Serializer[Any]):
    id = serializers.IntegerField(source="row.pk")
    kind = serializers.ChoiceField(source="row.kind", choices=ToolLimit.Kind.choices)
    user = serializers.IntegerField(source="row.user_id", allow_null=True)
    api_key = serializers.IntegerField(source="row.api_key_id", allow_null=True)
    target_kind = serializers.ChoiceField(source="row.target_kind", choices=ToolLimit.Target.choices)
    target = serializers.CharField(source="row.target")
    period = serializers.ChoiceField(source="row.period", choices=ToolLimit.Period.choices)
    calls = serializers.IntegerField(source="row.calls")
    used = serializers.IntegerField(
        help_text="In the current period; for a limit that applies to each, by the one who used most."
    )
    remaining = serializers.IntegerField()
    resets_at = serializers.DateTimeField(help_text="When the next period begins.")

    class Meta:
        ref_name = "ToolLimit"


class ToolLimitsView(TenantAPIView):
    """The limits on tool calls of the workspace."""

    actions = {"GET": "tool.manage", "POST": "tool.manage"}
    pagination_class = WholeList

    @extend_schema(operation_id="tool_limits_list", tags=["tools"], responses=ToolLimitOutput(many=True))
    def get(self, request: Request) -> Response:
        """List the limits with their current use."""
        return self.paginated(tool_limit_uses(actor=self.actor), ToolLimitOutput)

    @extend_schema(
        operation_id="tool_limits_set",
        tags=["tools"],
        request=ToolLimitInput,
        responses={201: ToolLimitOutput},
    )
    def post(self, request: Request) -> Response:
        """Set a limit, or change the one with the same caller, tools and period."""
        shape = ToolLimitInput(data=request.data)
        shape.is_valid(raise_exception=True)
        row = tool_limit_set(tenant=self.tenant, actor=self.actor, **shape.validated_data)
        shown = tool_limit_get(actor=self.actor, pk=row.pk)
        return Response(ToolLimitOutput(shown).data, status=status.HTTP_201_CREATED)


class ToolLimitView(TenantAPIView):
    """One limit."""

    actions = {"GET": "tool.manage", "DELETE": "tool.manage"}

    @extend_schema(operation_id="tool_limits_read", tags=["tools"], responses=ToolLimitOutput)
    def get(self, request: Request, pk: int) -> Response:
        """Show a limit with its current use."""
        return Response(ToolLimitOutput(tool_limit_get(actor=self.actor, pk=pk)).data)

    @extend_schema(operation_id="tool_limits_delete", tags=["tools"], responses={204: None})
    def delete(self, request: Request, pk: int) -> Response:
        """Remove a limit and its counts."""
        tool_limit_remove(tenant=self.tenant, actor=self.actor, pk=pk)
        return Response(status=status.HTTP_204_NO_CONTENT)
