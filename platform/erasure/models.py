"""Erasures that were asked for, legal holds, and retention rules."""

from __future__ import annotations

from django.db import models
from django.db.models.functions import Now
from django.utils.translation import gettext_lazy

from tenancy.fields import ToldCharField, ToldJSONField
from tenancy.models import TenantModel


class Erasure(models.Model):
    """An erasure of a workspace, person, document or conversation; of no workspace, because it outlives what it erases.

    It holds numbers and counts alone: no name, no address, no text of anybody.

    Attributes:
        subject: number of the workspace, person, document or conversation.
        workspace: number of the workspace that a document or conversation is in; None for the others.
        requested_by: number of the person who asked for it; None for the operator's command and the ledger.
        due_at: it isn't begun before, and can be undone until then.
        report: lines of what was found, each ``{"where", "what", "count", "why"}``.
        detail: why it waits or failed, in a sentence.
    """

    class Kind(models.TextChoices):
        WORKSPACE = "workspace", gettext_lazy("Workspace")
        PERSON = "person", gettext_lazy("Person")
        DOCUMENT = "document", gettext_lazy("Document")
        CONVERSATION = "conversation", gettext_lazy("Conversation")

    class State(models.TextChoices):
        WAITING = "waiting", gettext_lazy("Waiting")
        RUNNING = "running", gettext_lazy("Running")
        DONE = "done", gettext_lazy("Done")
        UNDONE = "undone", gettext_lazy("Undone")

    kind = models.CharField(max_length=12, choices=Kind.choices)
    subject = models.BigIntegerField()
    workspace = models.BigIntegerField(null=True)
    requested_by = models.BigIntegerField(null=True)
    requested_at = models.DateTimeField(db_default=Now())
    due_at = models.DateTimeField()
    state = models.CharField(max_length=10, choices=State.choices, default=State.WAITING)
    ended_at = models.DateTimeField(null=True)
    report = ToldJSONField(default=list, told=("what", "why"))
    detail = ToldCharField(max_length=500, blank=True, default="")

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["kind", "subject"],
                name="erasure_one_open",
                condition=models.Q(state__in=["waiting", "running"]),
            ),
        ]
        indexes = [models.Index(fields=["state", "due_at"], name="erasure_due")]

    def __str__(self) -> str:
        return f"{self.kind} {self.subject}"


class LegalHold(TenantModel):
    """While one is open, nothing of the workspace is erased, and no retention rule removes anything.

    Attributes:
        placed_by, released_by: numbers of people.
    """

    reason = models.CharField(max_length=300)
    placed_by = models.BigIntegerField(null=True)
    placed_at = models.DateTimeField(db_default=Now())
    released_by = models.BigIntegerField(null=True)
    released_at = models.DateTimeField(null=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["tenant"], name="legal_hold_one_open", condition=models.Q(released_at__isnull=True)
            ),
        ]

    def __str__(self) -> str:
        return self.reason


class RetentionRule(TenantModel):
    """How long a workspace keeps things of one kind, and what the rule has removed so far.

    Attributes:
        kind: name of a kind in ``erasure.retention``.
        days: 0 keeps it forever; None where the server's default holds, or where the rule is stored with its room (runs,
            conversations).
        starts_at: a shortened rule removes nothing before, so that it can be undone.
        removed: how many it removed so far; counted in the transaction that removes them.
        reported: how many of these an audit event has told of.
    """

    kind = models.CharField(max_length=20)
    days = models.PositiveIntegerField(
        null=True, help_text="0 keeps it forever; empty: the server's default."
    )
    starts_at = models.DateTimeField(null=True, help_text="It removes nothing before.")
    removed = models.BigIntegerField(default=0, db_default=0)
    reported = models.BigIntegerField(default=0, db_default=0)
    removed_at = models.DateTimeField(null=True, help_text="When it last removed something.")
    updated_at = models.DateTimeField(auto_now=True)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["tenant", "kind"], name="retention_rule_one_per_kind")]

    def __str__(self) -> str:
        return self.kind
