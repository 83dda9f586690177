"""How often tools may be called: by whom, which ones, in which period, and how much of it is used."""

from __future__ import annotations

from django.conf import settings
from django.db import models
from django.db.models.functions import Now
from django.utils.translation import gettext_lazy

from tenancy.fields import TenantForeignKey
from tenancy.models import ApiKey, TenantModel


class ToolLimit(TenantModel):
    """So many calls a minute, a day or a month (UTC), of one tool, a group, or all tools together.

    One for members or keys without a person or key is that of each of them; one that names somebody takes its place.
    A call by a key counts for the key and for its person.
    """

    class Kind(models.TextChoices):
        TENANT = "tenant", "Whole workspace"
        MEMBER = "member", "a member"
        KEY = "key", "an API key"

    class Target(models.TextChoices):
        ALL = "all", "all tools together"
        GROUP = "group", "a group of tools together"
        TOOL = "tool", "one tool"

    class Period(models.TextChoices):
        MINUTE = "minute", gettext_lazy("a minute")
        DAY = "day", gettext_lazy("a day")
        MONTH = "month", gettext_lazy("a month")

    kind = models.CharField(max_length=10, choices=Kind.choices)
    user = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, blank=True, on_delete=models.CASCADE, related_name="+"
    )
    api_key = TenantForeignKey(ApiKey, null=True, blank=True, related_name="+")
    target_kind = models.CharField(max_length=5, choices=Target.choices, default=Target.ALL)
    target = models.CharField(
        max_length=120, blank=True, help_text="Name of the tool or group; empty for all."
    )
    period = models.CharField(max_length=6, choices=Period.choices)
    calls = models.PositiveIntegerField(help_text="Maximum calls per period.")
    created_at = models.DateTimeField(db_default=Now())

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["tenant", "kind", "user", "api_key", "target_kind", "target", "period"],
                nulls_distinct=False,
                name="tool_limit_one_each",
            ),
            models.CheckConstraint(condition=models.Q(calls__gt=0), name="tool_limit_positive"),
            models.CheckConstraint(
                condition=models.Q(kind="tenant", user=None, api_key=None)
                | models.Q(kind="member", api_key=None)
                | models.Q(kind="key", user=None),
                name="tool_limit_subject_of_kind",
            ),
            models.CheckConstraint(
                condition=models.Q(target_kind="all", target="")
                | models.Q(target_kind__in=["group", "tool"]) & ~models.Q(target=""),
                name="tool_limit_target",
            ),
            models.CheckConstraint(
                condition=models.Q(period__in=["minute", "day", "month"]), name="tool_limit_period"
            ),
        ]

    def __str__(self) -> str:
        what = self.target or "all tools"
        whose = self.api_key or self.user or self.get_kind_display()
        return f"{self.calls} calls {self.get_period_display()} of {what} for {whose}"


class ToolLimitUse(TenantModel):
    """What one caller has used of a limit in its newest period; written by ``apps.tools.limits.counting`` alone."""

    limit = TenantForeignKey(ToolLimit, related_name="uses", db_index=False)
    subject = models.CharField(max_length=30, help_text="tenant, member:<id> or key:<id>.")
    starts_at = models.DateTimeField(help_text="When the period began.")
    used = models.PositiveIntegerField()

    class Meta:
        constraints = [models.UniqueConstraint(fields=["limit", "subject"], name="tool_limit_use_one_each")]

    def __str__(self) -> str:
        return f"{self.used} by {self.subject}"
