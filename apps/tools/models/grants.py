"""What a workspace states about single tools, sets of them, and who may call what."""

from __future__ import annotations

from django.db import models
from django.db.models.functions import Now

from apps.collections.models import Collection
from runs.models import ApproverKind
from tenancy.fields import TenantForeignKey
from tenancy.models import TenantModel


class ToolEntry(TenantModel):
    """What a workspace says about one tool, by its name. Empty fields leave what the tool says of itself."""

    name = models.CharField(max_length=64)
    title = models.CharField(max_length=120, blank=True)
    description = models.TextField(
        blank=True, help_text="What models read instead of the tool's own description."
    )
    category = models.CharField(max_length=60, blank=True)
    tags = models.JSONField(default=list, blank=True)
    is_enabled = models.BooleanField(default=True)
    cost_hint = models.CharField(
        max_length=60, blank=True, help_text="What a call costs, in words for people."
    )
    timeout_s = models.FloatField(null=True, blank=True, help_text="Maximum seconds per call.")
    created_at = models.DateTimeField(db_default=Now())
    updated_at = models.DateTimeField(auto_now=True)

    class Meta:
        verbose_name_plural = "tool entries"
        constraints = [
            models.UniqueConstraint(fields=["tenant", "name"], name="tool_entry_one_per_name"),
            models.CheckConstraint(
                condition=models.Q(timeout_s__isnull=True) | models.Q(timeout_s__gt=0, timeout_s__lte=600),
                name="tool_entry_timeout_sane",
            ),
        ]

    def __str__(self) -> str:
        return self.title or self.name


class Toolkit(TenantModel):
    """A named set of tools, to be granted as one."""

    name = models.CharField(max_length=80)
    description = models.TextField(blank=True)
    created_at = models.DateTimeField(db_default=Now())

    class Meta:
        constraints = [models.UniqueConstraint(fields=["tenant", "name"], name="toolkit_one_per_name")]

    def __str__(self) -> str:
        return self.name


class ToolkitMember(TenantModel):
    """A tool of a toolkit, by name: a tool that is not there at the moment keeps its place."""

    toolkit = TenantForeignKey(Toolkit, related_name="members", db_index=False)
    tool_name = models.CharField(max_length=64)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["toolkit", "tool_name"], name="toolkit_member_once")]

    def __str__(self) -> str:
        return self.tool_name


class CollectionToolkit(TenantModel):
    """The toolkit of a collection: conversations over it are offered its tools too, as far as grants allow them."""

    collection = TenantForeignKey(Collection, related_name="+", db_index=False)
    toolkit = TenantForeignKey(Toolkit, related_name="collections")
    created_at = models.DateTimeField(db_default=Now())

    class Meta:
        constraints = [models.UniqueConstraint(fields=["collection"], name="collection_toolkit_one_each")]

    def __str__(self) -> str:
        return f"{self.toolkit} of {self.collection}"


class ToolGrant(TenantModel):
    """Who may call what: allow, ask or deny. Deny wins, then ask, then allow; no rule means denied."""

    class Effect(models.TextChoices):
        ALLOW = "allow"
        ASK = "ask", "ask (each call needs approval)"
        DENY = "deny"

    class Target(models.TextChoices):
        TOOL = "tool"
        GROUP = "group"
        PATTERN = "pattern", "pattern of names"
        TOOLKIT = "toolkit"

    class Calls(models.TextChoices):
        ANY = "any", "all of them"
        READ_ONLY = "read_only", "those that only read data"
        SIDE_EFFECTS = "side_effects", "those with side effects"

    class SubjectKind(models.TextChoices):
        EVERYONE = "everyone"
        ROLE = "role"
        MEMBER = "member"
        API_KEY = "api_key", "API key"

    effect = models.CharField(max_length=5, choices=Effect.choices)
    target_kind = models.CharField(max_length=10, choices=Target.choices)
    target = models.CharField(
        max_length=120, blank=True, help_text="Name, group or pattern; empty for a toolkit."
    )
    toolkit = TenantForeignKey(Toolkit, null=True, blank=True, related_name="grants")
    calls = models.CharField(max_length=12, choices=Calls.choices, default=Calls.ANY)
    subject_kind = models.CharField(max_length=10, choices=SubjectKind.choices, default=SubjectKind.EVERYONE)
    subject = models.CharField(
        max_length=20, blank=True, help_text="The role, or the id of the person or key."
    )
    collection = TenantForeignKey(Collection, null=True, blank=True, related_name="+")
    arguments = models.JSONField(
        default=list, blank=True, help_text="Conditions on the call's arguments; all must hold."
    )
    expires_at = models.DateTimeField(null=True, blank=True)
    note = models.CharField(max_length=200, blank=True)
    approver_kind = models.CharField(
        max_length=6,
        choices=ApproverKind.choices,
        default=ApproverKind.SELF,
        help_text="Who decides if the effect is ask.",
    )
    approver = models.CharField(max_length=20, blank=True, help_text="The role, or the id of the person.")
    approval_hours = models.PositiveSmallIntegerField(
        null=True, blank=True, help_text="Hours a call can wait; empty: the server's setting."
    )
    needs_reason = models.BooleanField(default=False, help_text="Rejecting requires a reason.")
    created_at = models.DateTimeField(db_default=Now())

    class Meta:
        constraints = [
            models.CheckConstraint(
                condition=models.Q(effect__in=["allow", "ask", "deny"]), name="tool_grant_effect"
            ),
            models.CheckConstraint(
                condition=models.Q(target_kind="toolkit", toolkit__isnull=False, target="")
                | models.Q(target_kind__in=["tool", "group", "pattern"], toolkit__isnull=True)
                & ~models.Q(target=""),
                name="tool_grant_target",
            ),
            models.CheckConstraint(
                condition=models.Q(calls__in=["any", "read_only", "side_effects"]), name="tool_grant_calls"
            ),
            models.CheckConstraint(
                condition=models.Q(subject_kind="everyone", subject="")
                | models.Q(subject_kind__in=["role", "member", "api_key"]) & ~models.Q(subject=""),
                name="tool_grant_subject",
            ),
            models.CheckConstraint(
                condition=models.Q(approver_kind="self", approver="")
                | models.Q(approver_kind__in=["role", "member"], effect="ask") & ~models.Q(approver=""),
                name="tool_grant_approver",
            ),
            models.CheckConstraint(
                condition=models.Q(approval_hours__isnull=True) | models.Q(approval_hours__gt=0),
                name="tool_grant_approval_hours",
            ),
        ]
        indexes = [models.Index(fields=["tenant", "subject_kind", "subject"], name="tool_grant_of_subject")]

    def __str__(self) -> str:
        who = f"{self.subject_kind} {self.subject}".strip()
        what = f"{self.target_kind} {self.target or self.toolkit_id}"
        return f"{self.effect} {what} for {who}"
