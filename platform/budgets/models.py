"""Budgets in money, how much of each is spent, and what is held back for calls under way."""

from __future__ import annotations

from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.db.models.functions import Now
from django.utils.translation import gettext_lazy

from budgets.money import dollars
from tenancy.fields import TenantForeignKey
from tenancy.models import TenantModel


class BudgetKind(models.TextChoices):
    """Whose money; the values are part of the API."""

    TENANT = "tenant", gettext_lazy("the whole workspace")
    MEMBER = "member", gettext_lazy("a member")
    KEY = "key", gettext_lazy("an API key")
    ASSISTANT = "assistant", gettext_lazy("an assistant")
    JOB = "job", gettext_lazy("a job")


class BudgetPeriod(models.TextChoices):
    """Calendar periods in UTC; ``total`` counts from the day the budget was set."""

    DAY = "day", gettext_lazy("a day")
    MONTH = "month", gettext_lazy("a month")
    TOTAL = "total", gettext_lazy("in total")


class Budget(TenantModel):
    """What may be spent on models in a period.

    One of members, keys or assistants without a ``subject_id`` is that of each of them; one that names somebody takes its
    place for them. ``subject_id`` is no reference: it outlives whom it names, as usage does.
    """

    kind = models.CharField(max_length=10, choices=BudgetKind.choices)
    subject_id = models.BigIntegerField(
        null=True, blank=True, help_text="Id of the person, key, assistant or job; empty: each of them."
    )
    period = models.CharField(max_length=5, choices=BudgetPeriod.choices, default=BudgetPeriod.MONTH)
    amount_usd = models.DecimalField(max_digits=12, decimal_places=4)
    created_at = models.DateTimeField(db_default=Now())
    updated_at = models.DateTimeField(auto_now=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["tenant", "kind", "subject_id", "period"],
                nulls_distinct=False,
                name="budget_one_each",
            ),
            models.CheckConstraint(condition=models.Q(amount_usd__gte=0), name="budget_not_negative"),
            models.CheckConstraint(
                condition=models.Q(kind="tenant", subject_id=None)
                | models.Q(kind__in=["member", "key", "assistant"])
                | models.Q(kind="job", subject_id__isnull=False),
                name="budget_subject_of_kind",
            ),
        ]

    def __str__(self) -> str:
        return f"{dollars(self.amount_usd)} {self.get_period_display()} for {self.get_kind_display()}"


class BudgetSpend(TenantModel):
    """What was spent of a budget in one period by one of those it is for. The database counts (``budgets.ledger_sql``)."""

    budget = TenantForeignKey(Budget, related_name="spends", db_index=False)
    subject_id = models.BigIntegerField(
        default=0, help_text="Id of the person, key, assistant or job that spent it; 0 for the workspace."
    )
    starts_at = models.DateTimeField()
    spent_usd = models.DecimalField(max_digits=16, decimal_places=8, default=0)
    warned_at = models.DateTimeField(null=True, help_text="When people were told that 80 % was spent.")
    refused_at = models.DateTimeField(null=True, help_text="When a call first found the budget used up.")
    exceeded_at = models.DateTimeField(null=True, help_text="When people were told that it was used up.")

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["budget", "subject_id", "starts_at"], name="budget_spend_one_a_period"
            )
        ]

    def __str__(self) -> str:
        return f"{dollars(self.spent_usd)} since {self.starts_at:%Y-%m-%d}"


class BudgetHold(TenantModel):
    """What one model call may cost at most, held back while it is under way.

    It goes with the usage record of the call, in one transaction. Of a process that died it counts until it expires.
    """

    spends = ArrayField(models.BigIntegerField(), help_text="Ids of the BudgetSpend rows it counts towards.")
    run_id = models.BigIntegerField(null=True)
    amount_usd = models.DecimalField(max_digits=16, decimal_places=8)
    expires_at = models.DateTimeField()

    class Meta:
        indexes = [
            models.Index(fields=["tenant", "expires_at"], name="budget_hold_open"),
            models.Index(
                fields=["run_id"], name="budget_hold_of_run", condition=models.Q(run_id__isnull=False)
            ),
        ]

    def __str__(self) -> str:
        return f"{dollars(self.amount_usd)} held"


class BudgetRules(TenantModel):
    """How a workspace treats models without a known price while a budget applies; without a row they are estimated."""

    refuses_unpriced = models.BooleanField(default=False)
    updated_at = models.DateTimeField(auto_now=True)

    class Meta:
        verbose_name_plural = "budget rules"
        constraints = [models.UniqueConstraint(fields=["tenant"], name="budget_rules_one_a_tenant")]

    def __str__(self) -> str:
        return "refuses models without a price" if self.refuses_unpriced else "estimates"
