"""REST of a workspace's rules: where its requests may go, and how long what was said in runs is kept."""

from __future__ import annotations

from typing import Any

from django.conf import settings
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from basics.net_hosts import MAX_PATTERN
from erasure.retention import MOST_DAYS
from runs.retention import retention_own, retention_set
from tenancy.outgoing import outgoing_hosts
from tenancy.services import outgoing_hosts_set
from tenancy.services.outgoing_hosts import MAX_HOSTS
from web.drf.views import TenantAPIView


class OutgoingHostsShape(serializers.Serializer[Any]):
    hosts = serializers.ListField(
        child=serializers.CharField(max_length=MAX_PATTERN),
        max_length=MAX_HOSTS,
        help_text="Hosts such as api.example.com, or *.example.com for all subdomains. Empty: every public "
        "host.",
    )

    class Meta:
        ref_name = "OutgoingHosts"


class RetentionInput(serializers.Serializer[Any]):
    days = serializers.IntegerField(
        allow_null=True,
        min_value=0,
        max_value=MOST_DAYS,
        help_text="0 keeps it forever; null restores the server's default.",
    )

    class Meta:
        ref_name = "RetentionChange"


class RetentionOutput(serializers.Serializer[Any]):
    days = serializers.IntegerField(
        allow_null=True, help_text="The workspace's own rule; null if the default applies."
    )
    default_days = serializers.IntegerField(help_text="The server's default; 0 keeps it forever.")

    class Meta:
        ref_name = "Retention"


class OutgoingHostsView(TenantAPIView):
    """The hosts that the workspace's tools, MCP servers, web pages and webhooks may be at."""

    actions = {"GET": "tool.manage", "PUT": "tenant.manage"}

    @extend_schema(operation_id="outgoing_hosts_read", tags=["workspace"], responses=OutgoingHostsShape)
    def get(self, request: Request) -> Response:
        """List the hosts that requests can go to; an empty list allows every public host."""
        return Response({"hosts": outgoing_hosts(actor=self.actor)})

    @extend_schema(
        operation_id="outgoing_hosts_set",
        tags=["workspace"],
        request=OutgoingHostsShape,
        responses=OutgoingHostsShape,
    )
    def put(self, request: Request) -> Response:
        """Replace the list. Needs a signed-in owner, so that no API key can extend where it can send data."""
        shape = OutgoingHostsShape(data=request.data)
        shape.is_valid(raise_exception=True)
        hosts = outgoing_hosts_set(tenant=self.tenant, actor=self.actor, **shape.validated_data)
        return Response({"hosts": hosts})


class RetentionView(TenantAPIView):
    """How long the steps of answers and the arguments and results of tool calls are kept."""

    actions = {"GET": "audit.read", "PUT": "retention.manage"}

    @extend_schema(
        operation_id="retention_read", tags=["workspace"], responses=RetentionOutput, deprecated=True
    )
    def get(self, request: Request) -> Response:
        """Show the retention rule of runs. Use `retention_rules_read`, which shows it as `runs` with all others."""
        return self._answer()

    @extend_schema(
        operation_id="retention_set",
        tags=["workspace"],
        request=RetentionInput,
        responses=RetentionOutput,
        deprecated=True,
    )
    def put(self, request: Request) -> Response:
        """Set the retention rule of runs; removal is permanent. Use `retention_rules_set`; it is the same rule."""
        shape = RetentionInput(data=request.data)
        shape.is_valid(raise_exception=True)
        retention_set(tenant=self.tenant, actor=self.actor, **shape.validated_data)
        return self._answer()

    def _answer(self) -> Response:
        own = retention_own(self.tenant)
        return Response({"days": own, "default_days": settings.RETENTION_DAYS})
