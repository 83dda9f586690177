"""REST of online sampling. The views hold no rules: selectors read, services write."""

from __future__ import annotations

from typing import Any

from drf_spectacular.utils import extend_schema
from rest_framework import serializers, status
from rest_framework.request import Request
from rest_framework.response import Response

from apps.evaluations.experiments.shapes import ScorerInput
from apps.evaluations.models import SamplingRule
from apps.evaluations.sampling import selectors as reads
from apps.evaluations.sampling import services
from web.drf.inputs import valid
from web.drf.pages import Pagination, WholeList
from web.drf.views import TenantAPIView

_READ, _MANAGE = "evaluation.read", "tool.manage"
_TAGS = ["evaluations"]
_BIGINT = 2**63 - 1
_ACTS = {"pause": services.sampling_rule_pause, "resume": services.sampling_rule_resume}


class SamplingRuleInput(serializers.Serializer[Any]):
    """Which live answers are scored."""

    name = serializers.CharField(max_length=120)
    rate = serializers.FloatField(min_value=0, max_value=1, help_text="Share of the answers.")
    takes_doubtful = serializers.BooleanField(
        required=False,
        default=False,
        help_text="Every answer without a source, or with an unsupported sentence, too.",
    )
    assistant = serializers.IntegerField(
        required=False,
        allow_null=True,
        default=None,
        min_value=1,
        max_value=_BIGINT,
        help_text="Only its answers; null for all.",
    )
    scorers = serializers.ListField(child=ScorerInput(), min_length=1, max_length=10)
    budget_usd = serializers.DecimalField(
        max_digits=12, decimal_places=6, min_value=0, help_text="For judges, a calendar month (UTC)."
    )


class SamplingStateInput(serializers.Serializer[Any]):
    """What becomes of a rule."""

    do = serializers.ChoiceField(choices=["pause", "resume"])


class SamplingRuleOutput(serializers.ModelSerializer[SamplingRule]):
    """A rule."""

    class Meta:
        model = SamplingRule
        fields = (
            "id",
            "name",
            "is_active",
            "rate",
            "takes_doubtful",
            "assistant",
            "scorers",
            "budget_usd",
            "created_at",
        )


class TrendDayOutput(serializers.Serializer[Any]):
    """One day of a score."""

    day = serializers.DateField()
    mean = serializers.FloatField()
    count = serializers.IntegerField()


class TrendOutput(serializers.Serializer[Any]):
    """One score of a rule over the last 30 days."""

    name = serializers.CharField()
    is_judged = serializers.BooleanField()
    mean = serializers.FloatField()
    count = serializers.IntegerField()
    days = serializers.SerializerMethodField()

    def get_days(self, trend: Any) -> list[dict[str, Any]]:
        """Return the daily means; days without a score are left out."""
        rows = [{"day": day, "mean": mean, "count": count} for day, mean, count in trend.days]
        return [dict(TrendDayOutput(row).data) for row in rows]


class RulesView(TenantAPIView):
    """The workspace's sampling rules."""

    actions = {"GET": _READ, "POST": _MANAGE}
    pagination_class = Pagination

    @extend_schema(operation_id="sampling_rules_list", tags=_TAGS, responses=SamplingRuleOutput(many=True))
    def get(self, request: Request) -> Response:
        """List the rules by which live answers are scored."""
        return self.paginated(reads.rule_list(actor=self.actor), SamplingRuleOutput)

    @extend_schema(
        operation_id="sampling_rules_create",
        tags=_TAGS,
        request=SamplingRuleInput,
        responses={201: SamplingRuleOutput},
    )
    def post(self, request: Request) -> Response:
        """Score live answers from now on."""
        row = services.sampling_rule_create(
            tenant=self.tenant, actor=self.actor, **valid(SamplingRuleInput, request.data)
        )
        row.refresh_from_db()
        return Response(SamplingRuleOutput(row).data, status=status.HTTP_201_CREATED)


class RuleView(TenantAPIView):
    """One rule."""

    actions = {"GET": _READ, "POST": _MANAGE, "DELETE": _MANAGE}

    @extend_schema(operation_id="sampling_rules_get", tags=_TAGS, responses=SamplingRuleOutput)
    def get(self, request: Request, pk: int) -> Response:
        """Return a rule."""
        return Response(SamplingRuleOutput(reads.rule_get(actor=self.actor, pk=pk)).data)

    @extend_schema(
        operation_id="sampling_rules_act",
        tags=_TAGS,
        request=SamplingStateInput,
        responses=SamplingRuleOutput,
    )
    def post(self, request: Request, pk: int) -> Response:
        """Pause or resume a rule."""
        row = reads.rule_get(actor=self.actor, pk=pk)
        act = _ACTS[valid(SamplingStateInput, request.data)["do"]]
        row = act(tenant=self.tenant, actor=self.actor, rule=row)
        return Response(SamplingRuleOutput(row).data)

    @extend_schema(operation_id="sampling_rules_delete", tags=_TAGS, responses={204: None})
    def delete(self, request: Request, pk: int) -> Response:
        """Delete a rule with its samples."""
        row = reads.rule_get(actor=self.actor, pk=pk)
        services.sampling_rule_delete(tenant=self.tenant, actor=self.actor, rule=row)
        return Response(status=status.HTTP_204_NO_CONTENT)


class TrendView(TenantAPIView):
    """A rule's scores over time."""

    actions = {"GET": _READ}
    pagination_class = WholeList

    @extend_schema(operation_id="sampling_rules_trend", tags=_TAGS, responses=TrendOutput(many=True))
    def get(self, request: Request, pk: int) -> Response:
        """Return the daily means of a rule's scores over the last 30 days."""
        row = reads.rule_get(actor=self.actor, pk=pk)
        return self.paginated(reads.rule_trend(actor=self.actor, rule=row), TrendOutput)
