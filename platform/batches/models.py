"""Model calls that go through a provider's batch API: a line for each call, and the batches that lines were sent in."""

from __future__ import annotations

from django.db import models
from django.db.models.functions import Now
from django.utils.translation import gettext_lazy

from tenancy.fields import TenantForeignKey, ToldCharField
from tenancy.models import TenantModel


class BatchState(models.TextChoices):
    SENDING = "sending", gettext_lazy("Being sent")
    OUT = "out", gettext_lazy("With the provider")
    ENDED = "ended", gettext_lazy("Ended")
    REFUSED = "refused", gettext_lazy("Refused")


OPEN = (BatchState.SENDING, BatchState.OUT)


class Batch(TenantModel):
    """Lines that go to a provider together.

    Written with its ``mark`` before anything is sent, so that a batch whose sender died is found again and not sent twice.
    """

    owner = models.CharField(max_length=60, help_text="Owner of the calls, such as generation:5.")
    user_id = models.BigIntegerField(null=True, help_text="Id of the user on whose behalf it is sent.")
    round = models.PositiveIntegerField(help_text="1 for the owner's first batch.")
    model = models.CharField(max_length=120, help_text="Model with its provider prefix.")
    mark = models.CharField(max_length=24, help_text="Mark that finds the batch at the provider.")
    handle = models.JSONField(null=True, help_text="The provider's reference to the batch, once it has one.")
    state = models.CharField(max_length=7, choices=BatchState.choices, default=BatchState.SENDING)
    message = ToldCharField(max_length=300, blank=True, help_text="Why it was refused.")
    total = models.PositiveIntegerField(help_text="Number of lines.")
    done = models.PositiveIntegerField(default=0, help_text="Lines with an answer, as far as known.")
    failed = models.PositiveIntegerField(default=0)
    hours = models.PositiveIntegerField(help_text="Hours until the provider gives up on unanswered lines.")
    created_at = models.DateTimeField(db_default=Now())
    trying_until = models.DateTimeField(
        null=True, help_text="It may be being sent until this time; empty: not started."
    )
    sent_at = models.DateTimeField(null=True)
    looked_at = models.DateTimeField(null=True)
    cancelled_at = models.DateTimeField(null=True, help_text="When the provider was asked to stop.")
    ended_at = models.DateTimeField(null=True)

    class Meta:
        verbose_name_plural = "batches"
        constraints = [
            models.CheckConstraint(condition=models.Q(state__in=BatchState.values), name="batch_state_known")
        ]
        indexes = [models.Index(fields=["tenant", "owner", "-id"], name="batch_of_owner")]

    def __str__(self) -> str:
        return f"batch {self.round} of {self.owner} ({self.state})"


class LineState(models.TextChoices):
    WANTED = "wanted", gettext_lazy("Not sent yet")
    SENT = "sent", gettext_lazy("Sent")
    ANSWERED = "answered", gettext_lazy("Answered")
    FAILED = "failed", gettext_lazy("Failed")


class BatchLine(TenantModel):
    """One call to a model: what is asked, and what was answered."""

    owner = models.CharField(max_length=60)
    key = models.CharField(max_length=39, help_text="The owner's name for the call.")
    model = models.CharField(max_length=120, help_text="Model with its provider prefix.")
    body = models.TextField(help_text="The request as sent; emptied once it is answered.")
    context = models.JSONField(default=list, help_text="What the owner needs to continue.")
    attribution = models.JSONField(default=dict, help_text="Attribution for the usage record.")
    kind = models.CharField(max_length=30, help_text="Kind for the usage record.")
    state = models.CharField(max_length=8, choices=LineState.choices, default=LineState.WANTED)
    batch = TenantForeignKey(Batch, related_name="lines", null=True)
    tries = models.PositiveSmallIntegerField(default=0, help_text="Failed attempts.")
    most_usd = models.DecimalField(
        max_digits=14,
        decimal_places=8,
        default=0,
        help_text="Maximum cost in USD, reserved before sending; 0: nothing to reserve.",
    )
    is_priced = models.BooleanField(default=True)
    hold_id = models.BigIntegerField(
        null=True, help_text="The BudgetHold for it while it is being sent and answered."
    )
    turn = models.JSONField(null=True, help_text="The answer, as the tool loop stores it.")
    cost_usd = models.DecimalField(max_digits=14, decimal_places=8, null=True)
    error_code = models.CharField(max_length=60, blank=True)
    error_message = ToldCharField(max_length=300, blank=True)
    wanted_at = models.DateTimeField(db_default=Now())

    class Meta:
        constraints = [
            models.CheckConstraint(
                condition=models.Q(state__in=LineState.values), name="batch_line_state_known"
            ),
            models.UniqueConstraint(fields=["tenant", "owner", "key"], name="batch_line_once"),
        ]
        indexes = [models.Index(fields=["tenant", "owner", "state", "id"], name="batch_line_of_owner")]

    def __str__(self) -> str:
        return f"line {self.key} of {self.owner} ({self.state})"
