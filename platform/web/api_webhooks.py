"""REST of webhooks and their deliveries."""

from __future__ import annotations

from typing import Any

from drf_spectacular.utils import extend_schema
from rest_framework import serializers, status
from rest_framework.request import Request
from rest_framework.response import Response

from web.drf.pages import Pagination
from web.drf.views import TenantAPIView
from webhooks import services
from webhooks.models import SUBSCRIBABLE, DeliveryStatus, Event
from webhooks.selectors import delivery_list, webhook_get, webhook_list


class WebhookInput(serializers.Serializer[Any]):
    url = serializers.CharField(max_length=2000, help_text="http(s), on a public host.")
    events = serializers.ListField(
        child=serializers.ChoiceField(choices=[(e.value, e.label) for e in SUBSCRIBABLE]),
        min_length=1,
        max_length=20,
    )
    description = serializers.CharField(required=False, allow_blank=True, max_length=200)


class WebhookUpdate(WebhookInput):
    is_enabled = serializers.BooleanField(required=False)


class WebhookOutput(serializers.Serializer[Any]):
    id = serializers.IntegerField()
    url = serializers.CharField()
    events = serializers.ListField(child=serializers.CharField())
    description = serializers.CharField()
    is_enabled = serializers.BooleanField()
    failures = serializers.IntegerField(help_text="Failed events in a row.")
    disabled_at = serializers.DateTimeField(
        allow_null=True, help_text="When it was switched off after repeated failures."
    )
    created_at = serializers.DateTimeField()
    updated_at = serializers.DateTimeField()

    class Meta:
        ref_name = "Webhook"


class WebhookCreated(WebhookOutput):
    secret = serializers.CharField(help_text="Signs the calls; shown only once.")

    class Meta:
        ref_name = "WebhookCreated"


class DeliveryOutput(serializers.Serializer[Any]):
    id = serializers.IntegerField()
    event_id = serializers.UUIDField(help_text="The same for all deliveries of one event.")
    event = serializers.ChoiceField(choices=Event.choices)
    object_key = serializers.CharField(help_text="What it is about, for example `run:12`.")
    status = serializers.ChoiceField(choices=DeliveryStatus.choices)
    attempts = serializers.IntegerField()
    response_status = serializers.IntegerField(allow_null=True)
    error = serializers.CharField(help_text="Error of the last attempt; empty if it was delivered.")
    duration_ms = serializers.IntegerField(allow_null=True)
    created_at = serializers.DateTimeField()
    attempted_at = serializers.DateTimeField(allow_null=True)
    payload = serializers.DictField()

    class Meta:
        ref_name = "WebhookDelivery"


def _valid(shape: type[serializers.Serializer[Any]], data: Any, **options: Any) -> dict[str, Any]:
    serializer = shape(data=data, **options)
    serializer.is_valid(raise_exception=True)
    values: dict[str, Any] = serializer.validated_data
    return values


class WebhooksView(TenantAPIView):
    """The webhooks of the workspace."""

    actions = {"GET": "webhook.manage", "POST": "webhook.manage"}
    pagination_class = Pagination

    @extend_schema(operation_id="webhooks_list", tags=["webhooks"], responses=WebhookOutput(many=True))
    def get(self, request: Request) -> Response:
        """List the webhooks, newest first."""
        return self.paginated(webhook_list(actor=self.actor), WebhookOutput)

    @extend_schema(
        operation_id="webhooks_create",
        tags=["webhooks"],
        request=WebhookInput,
        responses={201: WebhookCreated},
    )
    def post(self, request: Request) -> Response:
        """Add a webhook; the response contains its signing secret, shown only once."""
        values = _valid(WebhookInput, request.data)
        row, secret = services.webhook_create(tenant=self.tenant, actor=self.actor, **values)
        row.secret = secret  # type: ignore[attr-defined]
        return Response(WebhookCreated(row).data, status=status.HTTP_201_CREATED)


class WebhookView(TenantAPIView):
    """One webhook."""

    actions = {"GET": "webhook.manage", "PATCH": "webhook.manage", "DELETE": "webhook.manage"}

    @extend_schema(operation_id="webhooks_get", tags=["webhooks"], responses=WebhookOutput)
    def get(self, request: Request, pk: int) -> Response:
        """Return a webhook, without its secret."""
        return Response(WebhookOutput(webhook_get(actor=self.actor, pk=pk)).data)

    @extend_schema(
        operation_id="webhooks_update",
        tags=["webhooks"],
        request=WebhookUpdate(partial=True),
        responses=WebhookOutput,
    )
    def patch(self, request: Request, pk: int) -> Response:
        """Change address, events or description, or switch it off and on."""
        values = _valid(WebhookUpdate, request.data, partial=True)
        services.webhook_update(tenant=self.tenant, actor=self.actor, pk=pk, values=values)
        return self.get(request, pk)

    @extend_schema(operation_id="webhooks_delete", tags=["webhooks"], responses={204: None})
    def delete(self, request: Request, pk: int) -> Response:
        """Remove a webhook with its log; waiting events are not sent."""
        services.webhook_delete(tenant=self.tenant, actor=self.actor, pk=pk)
        return Response(status=status.HTTP_204_NO_CONTENT)


class RotateView(TenantAPIView):
    """A new secret of a webhook."""

    actions = {"POST": "webhook.manage"}

    @extend_schema(
        operation_id="webhooks_rotate", tags=["webhooks"], request=None, responses={200: WebhookCreated}
    )
    def post(self, request: Request, pk: int) -> Response:
        """Create a new secret, shown only once in the response. The previous one stays valid for 24 hours."""
        row, secret = services.webhook_secret_rotate(tenant=self.tenant, actor=self.actor, pk=pk)
        row.secret = secret  # type: ignore[attr-defined]
        return Response(WebhookCreated(row).data)


class PingView(TenantAPIView):
    """A test of a webhook."""

    actions = {"POST": "webhook.manage"}

    @extend_schema(
        operation_id="webhooks_ping", tags=["webhooks"], request=None, responses={202: DeliveryOutput}
    )
    def post(self, request: Request, pk: int) -> Response:
        """Send a `ping`; see the deliveries for the result."""
        row = services.webhook_ping(tenant=self.tenant, actor=self.actor, pk=pk)
        return Response(DeliveryOutput(row).data, status=status.HTTP_202_ACCEPTED)


class DeliveriesView(TenantAPIView):
    """The log of a webhook."""

    actions = {"GET": "webhook.manage"}
    pagination_class = Pagination

    @extend_schema(operation_id="webhooks_deliveries", tags=["webhooks"], responses=DeliveryOutput(many=True))
    def get(self, request: Request, pk: int) -> Response:
        """List what was sent to a webhook in the last 30 days with the results, newest first."""
        webhook = webhook_get(actor=self.actor, pk=pk)
        return self.paginated(delivery_list(actor=self.actor, webhook=webhook), DeliveryOutput)


class RedeliverView(TenantAPIView):
    """One event once more."""

    actions = {"POST": "webhook.manage"}

    @extend_schema(
        operation_id="webhooks_redeliver", tags=["webhooks"], request=None, responses={202: DeliveryOutput}
    )
    def post(self, request: Request, pk: int, delivery_pk: int) -> Response:
        """Send an event again, as a new delivery with the same event id."""
        row = services.delivery_repeat(tenant=self.tenant, actor=self.actor, pk=pk, delivery_pk=delivery_pk)
        return Response(DeliveryOutput(row).data, status=status.HTTP_202_ACCEPTED)
