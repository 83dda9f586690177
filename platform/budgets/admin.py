"""Admin of budgets and their ledger, to look at; they are set in the portal, under Settings, Budgets."""

from __future__ import annotations

from typing import Any

from django.contrib import admin, messages
from django.db.models import QuerySet
from django.http import HttpRequest

from basics.errors import DomainError
from budgets.models import Budget, BudgetHold, BudgetSpend
from budgets.services import budget_remove
from tenancy.admin_confirm import confirmed_action
from tenancy.admin_scope import JournalAdmin, admin_actor


@admin.register(Budget)
class BudgetAdmin(JournalAdmin):
    """What may be spent on models."""

    list_display = ("kind", "subject_id", "period", "amount_usd", "updated_at")
    list_filter = ("kind", "period")
    ordering = ("kind", "subject_id", "pk")
    actions = ("remove",)

    @confirmed_action(
        description="Remove the selected budgets",
        lost="They no longer limit spending; past spending stays recorded.",
    )
    def remove(self, request: HttpRequest, queryset: QuerySet[Any]) -> None:
        for row in queryset.select_related("tenant"):
            actor = admin_actor(request, row.tenant_id)
            try:
                budget_remove(tenant=row.tenant, actor=actor, pk=row.pk)
            except DomainError as error:
                self.message_user(request, f"{row}: {error.message}", messages.ERROR)


@admin.register(BudgetSpend)
class BudgetSpendAdmin(JournalAdmin):
    """What was spent of each budget in each period."""

    list_display = ("budget", "subject_id", "starts_at", "spent_usd", "warned_at", "exceeded_at")
    list_select_related = ("budget",)
    ordering = ("-starts_at", "-pk")


@admin.register(BudgetHold)
class BudgetHoldAdmin(JournalAdmin):
    """What is held back for model calls under way."""

    list_display = ("pk", "run_id", "amount_usd", "expires_at")
    ordering = ("-pk",)
