"""REST of budgets in money."""

from __future__ import annotations

from typing import Any

from drf_spectacular.utils import extend_schema
from rest_framework import serializers, status
from rest_framework.request import Request
from rest_framework.response import Response

from basics.errors import Missing
from budgets.models import BudgetKind, BudgetPeriod
from budgets.selectors import BudgetShown, budget_get, budget_list, refuses_unpriced
from budgets.services import budget_remove, budget_rules_set, budget_set
from web.drf.pages import WholeList
from web.drf.views import TenantAPIView

_KINDS = [(kind.value, kind.label) for kind in BudgetKind if kind != BudgetKind.JOB]


class BudgetInput(serializers.Serializer[Any]):
    kind = serializers.ChoiceField(choices=_KINDS)
    subject_id = serializers.IntegerField(
        required=False,
        allow_null=True,
        default=None,
        min_value=1,
        max_value=2**63 - 1,
        help_text="The id of one person, key or assistant; null for each.",
    )
    period = serializers.ChoiceField(choices=BudgetPeriod.choices, default=BudgetPeriod.MONTH)
    amount_usd = serializers.DecimalField(max_digits=12, decimal_places=4, min_value=0)


class BudgetOutput(serializers.Serializer[Any]):
    id = serializers.IntegerField(source="row.pk")
    kind = serializers.ChoiceField(source="row.kind", choices=BudgetKind.choices)
    subject_id = serializers.IntegerField(source="row.subject_id", allow_null=True)
    whose = serializers.CharField(help_text="Who it applies to, in words.")
    period = serializers.ChoiceField(source="row.period", choices=BudgetPeriod.choices)
    amount_usd = serializers.DecimalField(source="row.amount_usd", max_digits=12, decimal_places=4)
    spent_usd = serializers.DecimalField(
        max_digits=16,
        decimal_places=8,
        help_text="In the current period; for a budget that applies to each, by the one who spent most.",
    )
    held_usd = serializers.DecimalField(
        max_digits=16, decimal_places=8, help_text="Reserved for model calls in progress."
    )
    left_usd = serializers.DecimalField(max_digits=16, decimal_places=8)
    state = serializers.ChoiceField(choices=["ok", "warned", "exceeded"], help_text="`warned` from 80 %.")
    starts_at = serializers.DateTimeField(
        allow_null=True, help_text="Start of the current period; null before anything was spent in it."
    )

    class Meta:
        ref_name = "Budget"


class BudgetRulesShape(serializers.Serializer[Any]):
    refuses_unpriced = serializers.BooleanField(
        help_text="Refuse models without a known price while a budget applies; otherwise they are estimated."
    )

    class Meta:
        ref_name = "BudgetRules"


class BudgetsView(TenantAPIView):
    """The budgets of the workspace."""

    actions = {"GET": "audit.read", "POST": "budget.manage"}
    pagination_class = WholeList

    @extend_schema(operation_id="budgets_list", tags=["budgets"], responses=BudgetOutput(many=True))
    def get(self, request: Request) -> Response:
        """List the budgets with what is spent and held."""
        return self.paginated(budget_list(actor=self.actor), BudgetOutput)

    @extend_schema(
        operation_id="budgets_set", tags=["budgets"], request=BudgetInput, responses={201: BudgetOutput}
    )
    def post(self, request: Request) -> Response:
        """Set a budget, or change the amount of the one with the same subject and period."""
        shape = BudgetInput(data=request.data)
        shape.is_valid(raise_exception=True)
        row = budget_set(tenant=self.tenant, actor=self.actor, **shape.validated_data)
        shown = BudgetOutput(budget_shown(self, row.pk))
        return Response(shown.data, status=status.HTTP_201_CREATED)


class BudgetView(TenantAPIView):
    """One budget."""

    actions = {"GET": "audit.read", "DELETE": "budget.manage"}

    @extend_schema(operation_id="budgets_get", tags=["budgets"], responses=BudgetOutput)
    def get(self, request: Request, pk: int) -> Response:
        """Return a budget with what is spent and held."""
        return Response(BudgetOutput(budget_shown(self, pk)).data)

    @extend_schema(operation_id="budgets_delete", tags=["budgets"], responses={204: None})
    def delete(self, request: Request, pk: int) -> Response:
        """Remove a budget; past spending stays recorded."""
        budget_remove(tenant=self.tenant, actor=self.actor, pk=pk)
        return Response(status=status.HTTP_204_NO_CONTENT)


class BudgetRulesView(TenantAPIView):
    """What happens to models without a known price."""

    actions = {"GET": "audit.read", "PUT": "budget.manage"}

    @extend_schema(operation_id="budgets_rules", tags=["budgets"], responses=BudgetRulesShape)
    def get(self, request: Request) -> Response:
        """Return whether models without a known price are refused while a budget applies."""
        return Response({"refuses_unpriced": refuses_unpriced(actor=self.actor)})

    @extend_schema(
        operation_id="budgets_rules_set",
        tags=["budgets"],
        request=BudgetRulesShape,
        responses=BudgetRulesShape,
    )
    def put(self, request: Request) -> Response:
        """Set whether models without a known price are refused."""
        shape = BudgetRulesShape(data=request.data)
        shape.is_valid(raise_exception=True)
        row = budget_rules_set(tenant=self.tenant, actor=self.actor, **shape.validated_data)
        return Response({"refuses_unpriced": row.refuses_unpriced})


def budget_shown(view: TenantAPIView, pk: int) -> BudgetShown:
    """Return a budget of the caller's workspace. Raises Missing."""
    shown = budget_get(actor=view.actor, pk=pk)
    if shown is None:
        raise Missing("budget")
    return shown
