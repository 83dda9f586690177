"""REST of an arm's failures. The views hold no rules: ``failures`` reads, services write."""

from __future__ import annotations

from typing import Any

from drf_spectacular.utils import extend_schema
from rest_framework import serializers, status
from rest_framework.request import Request
from rest_framework.response import Response

from apps.evaluations import selectors
from apps.evaluations.api import valid
from apps.evaluations.failures import arm_failures
from apps.evaluations.services.failures import failures_collect
from web.drf.views import TenantAPIView

_TAGS = ["evaluations"]


class FailingRowOutput(serializers.Serializer[Any]):
    """A row that fails."""

    row = serializers.IntegerField()
    question = serializers.CharField()
    reason = serializers.CharField(help_text="What its lowest score says; empty where nothing does.")  # fmt: skip
    value = serializers.FloatField()
    tags = serializers.ListField(child=serializers.CharField())


class TagFailuresOutput(serializers.Serializer[Any]):
    """A tag among the failing rows."""

    tag = serializers.CharField()
    failing = serializers.IntegerField()
    rows = serializers.IntegerField()
    lift = serializers.FloatField(help_text="Its rate of failure, divided by that of all rows.")


class FailureGroupOutput(serializers.Serializer[Any]):
    """Failing rows that are alike, the most typical first."""

    number = serializers.IntegerField()
    terms = serializers.ListField(child=serializers.CharField())
    rows = FailingRowOutput(many=True)


class FailuresOutput(serializers.Serializer[Any]):
    """The failures of an arm."""

    scored = serializers.IntegerField()
    failing = serializers.IntegerField()
    tags = TagFailuresOutput(many=True)
    groups = FailureGroupOutput(many=True, help_text="The largest first.")
    alone = FailingRowOutput(many=True, help_text="Rows that are like no other.")
    left_out = serializers.IntegerField(help_text="Failing rows beyond the worst 200, in no group.")


class CollectInput(serializers.Serializer[Any]):
    """Which failing rows become a dataset; all without a tag or a group."""

    name = serializers.CharField(max_length=120)
    tag = serializers.CharField(required=False, allow_blank=True, default="", max_length=60)
    group = serializers.IntegerField(required=False, allow_null=True, default=None, min_value=1, max_value=10_000)  # fmt: skip


class CollectedOutput(serializers.Serializer[Any]):
    """The dataset that was made."""

    dataset = serializers.IntegerField(source="dataset_id")
    version = serializers.IntegerField(source="pk", help_text="Id of its first version.")
    row_count = serializers.IntegerField()


class FailuresView(TenantAPIView):
    """What an arm fails."""

    actions = {"GET": "evaluation.read", "POST": "dataset.write"}

    @extend_schema(operation_id="arms_failures", tags=_TAGS, responses=FailuresOutput)
    def get(self, request: Request, pk: int) -> Response:
        """Return an arm's failing rows by tag, and in groups of rows that are alike."""
        arm = selectors.arm_get(actor=self.actor, pk=pk)
        found = arm_failures(tenant=self.tenant, actor=self.actor, arm=arm)
        return Response(FailuresOutput(found).data)

    @extend_schema(operation_id="arms_failures_collect", tags=_TAGS, request=CollectInput, responses={201: CollectedOutput})  # fmt: skip
    def post(self, request: Request, pk: int) -> Response:
        """Make a dataset of the failing rows with a tag or of a group, with a version of them."""
        arm = selectors.arm_get(actor=self.actor, pk=pk)
        values = valid(CollectInput, request.data)
        made = failures_collect(tenant=self.tenant, actor=self.actor, arm=arm, **values)
        return Response(CollectedOutput(made).data, status=status.HTTP_201_CREATED)
