"""REST of all retention rules of a workspace, and a preview of what they would remove."""

from __future__ import annotations

from typing import Any

from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from basics.errors import Invalid
from erasure.retention import MOST_DAYS, Overview, Preview, retention_overview, retention_rules_set
from web.drf.views import TenantAPIView

KINDS = "documents, conversations, runs, datasets, experiments, reads, deliveries or jobs"


class RetentionRuleInput(serializers.Serializer[Any]):
    kind = serializers.CharField(max_length=20, help_text=f"One of {KINDS}.")
    days = serializers.IntegerField(
        allow_null=True,
        min_value=0,
        max_value=MOST_DAYS,
        help_text="0 keeps it forever; null restores the server's default.",
    )

    class Meta:
        ref_name = "RetentionRuleChange"


class RetentionRulesInput(serializers.Serializer[Any]):
    rules = RetentionRuleInput(  # type: ignore[call-arg]
        many=True, max_length=20, help_text="Rules to change; the others stay."
    )

    class Meta:
        ref_name = "RetentionRulesChange"


class RetentionRuleOutput(serializers.Serializer[Any]):
    kind = serializers.CharField(help_text=f"One of {KINDS}.")
    own_days = serializers.IntegerField(
        allow_null=True, help_text="The workspace's own rule; null if the default applies."
    )
    days = serializers.IntegerField(help_text="The days in effect; 0 keeps it forever.")
    default_days = serializers.IntegerField(help_text="The server's default; 0 keeps it forever.")
    longest_days = serializers.IntegerField(help_text="The server's limit; 0: none.")
    starts_at = serializers.DateTimeField(allow_null=True, help_text="Nothing is removed before.")
    removed = serializers.IntegerField(help_text="How many were removed so far.")
    removed_at = serializers.DateTimeField(allow_null=True, help_text="When last.")

    class Meta:
        ref_name = "RetentionRule"


class RetentionRulesOutput(serializers.Serializer[Any]):
    is_held = serializers.BooleanField(help_text="A legal hold is in place: nothing is removed.")
    rules = RetentionRuleOutput(many=True)

    class Meta:
        ref_name = "RetentionRules"


class RetentionKeptOutput(serializers.Serializer[Any]):
    why = serializers.CharField()
    count = serializers.IntegerField()

    class Meta:
        ref_name = "RetentionKept"


class RetentionDueOutput(RetentionRuleOutput):
    due = serializers.IntegerField(help_text="How many are old enough and not in use.")
    oldest_at = serializers.DateTimeField(allow_null=True, help_text="When the oldest of them last changed.")
    bytes = serializers.IntegerField(allow_null=True, help_text="Size of their files; null: unknown.")
    kept = RetentionKeptOutput(many=True, help_text="What is old enough and in use.")

    class Meta:
        ref_name = "RetentionDue"


class RetentionPreviewOutput(serializers.Serializer[Any]):
    is_held = serializers.BooleanField(help_text="A legal hold is in place: it keeps all that is due.")
    rules = RetentionDueOutput(many=True)

    class Meta:
        ref_name = "RetentionPreview"


class RetentionRulesView(TenantAPIView):
    """How long things of each kind are kept."""

    actions = {"GET": "audit.read", "PUT": "retention.manage"}

    @extend_schema(operation_id="retention_rules_read", tags=["workspace"], responses=RetentionRulesOutput)
    def get(self, request: Request) -> Response:
        """Show all retention rules."""
        return self._answer()

    @extend_schema(
        operation_id="retention_rules_set",
        tags=["workspace"],
        request=RetentionRulesInput,
        responses=RetentionRulesOutput,
    )
    def put(self, request: Request) -> Response:
        """Set rules. A new or shorter one starts after some days; what it removes can't be brought back."""
        shape = RetentionRulesInput(data=request.data)
        shape.is_valid(raise_exception=True)
        changes = {rule["kind"]: rule["days"] for rule in shape.validated_data["rules"]}
        retention_rules_set(tenant=self.tenant, actor=self.actor, changes=changes)
        return self._answer()

    def _answer(self) -> Response:
        found = retention_overview(tenant=self.tenant, actor=self.actor, is_counted=False)
        return Response({"is_held": found.hold is not None, "rules": [_rule(rule) for rule in found.rules]})


class RetentionPreviewView(TenantAPIView):
    """What the rules would remove now."""

    actions = {"GET": "audit.read"}

    @extend_schema(
        operation_id="retention_preview",
        tags=["workspace"],
        parameters=[
            OpenApiParameter("kind", str, description=f"Try other days for one of {KINDS}."),
            OpenApiParameter("days", int, description="The days to try; 0 keeps it forever."),
        ],
        responses=RetentionPreviewOutput,
    )
    def get(self, request: Request) -> Response:
        """Count what each rule would remove now, and what is kept because it is in use."""
        found = retention_overview(tenant=self.tenant, actor=self.actor, changes=_tried(request))
        return Response({"is_held": found.hold is not None, "rules": _due(found)})


def _tried(request: Request) -> dict[str, int | None]:
    kind, days = request.query_params.get("kind"), request.query_params.get("days")
    if kind is None and days is None:
        return {}
    if not kind or not days:
        raise Invalid("invalid", "Give kind and days together.", data={"field": "days" if kind else "kind"})
    return {kind: serializers.IntegerField(min_value=0, max_value=MOST_DAYS).run_validation(days)}


def _rule(rule: Preview) -> dict[str, Any]:
    return {
        "kind": rule.kind.name,
        "own_days": rule.own,
        "days": rule.days,
        "default_days": rule.kind.days(None),
        "longest_days": rule.kind.longest_days(),
        "starts_at": rule.starts_at,
        "removed": rule.removed,
        "removed_at": rule.removed_at,
    }


def _due(found: Overview) -> list[dict[str, Any]]:
    return [
        {
            **_rule(rule),
            "due": rule.count,
            "oldest_at": rule.oldest,
            "bytes": rule.size,
            "kept": [{"why": kept.why, "count": kept.count} for kept in rule.kept],
        }
        for rule in found.rules
    ]
