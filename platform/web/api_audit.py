"""REST of the audit trail: events in OCSF, followed by a cursor."""

from __future__ import annotations

from typing import Any

from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from audit.selectors import MOST_EVENTS, events_after
from web.drf.inputs import valid
from web.drf.views import TenantAPIView


class AuditEventsInput(serializers.Serializer[Any]):
    after = serializers.CharField(required=False, allow_blank=True, default="", max_length=60)
    limit = serializers.IntegerField(required=False, default=100, min_value=1, max_value=MOST_EVENTS)


class AuditEventsOutput(serializers.Serializer[Any]):
    events = serializers.ListField(
        child=serializers.DictField(), help_text="Audit events and reads, in OCSF 1.3.0 (schema.ocsf.io)."
    )
    cursor = serializers.CharField(help_text="Send it as `after` to get what comes next, also later.")
    has_more = serializers.BooleanField(help_text="More events are already available.")

    class Meta:
        ref_name = "AuditEvents"


class AuditEventsView(TenantAPIView):
    """The audit trail."""

    actions = {"GET": "audit.read"}

    @extend_schema(
        operation_id="audit_events",
        tags=["audit"],
        parameters=[
            OpenApiParameter(
                "after", str, description="Cursor from the last answer; default: from the first event."
            ),
            OpenApiParameter("limit", int, description=f"1 to {MOST_EVENTS}; default 100."),
        ],
        responses=AuditEventsOutput,
    )
    def get(self, request: Request) -> Response:
        """Follow audit events and reads in order; nothing is left out between two cursors."""
        values = valid(AuditEventsInput, request.query_params)
        batch = events_after(
            tenant=self.tenant, actor=self.actor, cursor=values["after"], most=values["limit"]
        )
        found = {"events": batch.events, "cursor": batch.place.cursor, "has_more": batch.has_more}
        return Response(AuditEventsOutput(found).data)
