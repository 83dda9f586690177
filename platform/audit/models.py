"""Reads of documents' contents, and where a workspace's audit events are sent."""

from __future__ import annotations

from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.db.models import Q
from django.db.models.functions import Now

from tenancy.fields import ToldCharField
from tenancy.models import TenantModel


class ContentRead(TenantModel):
    """One answer that held what documents say: through which door, to whom, and from which documents.

    Written before the answer is sent. It outlives what it names: ids, no references. ``seq`` is given in the order in
    which reads were first passed on, from 1 without gaps.
    """

    at = models.DateTimeField(db_default=Now())
    door = models.CharField(max_length=60, help_text="Name of the address, for example api:search.")
    kind = models.CharField(max_length=20, help_text="What the answer held: passages, a file, an export.")
    actor_kind = models.CharField(max_length=10)
    actor_name = models.CharField(max_length=150, blank=True)
    user_id = models.BigIntegerField(null=True)
    api_key_id = models.BigIntegerField(null=True)
    objects_named = models.JSONField(
        default=dict, help_text="Ids that the address named, for example the document."
    )
    documents = ArrayField(
        models.BigIntegerField(), default=list, help_text="Ids of documents that were found."
    )
    ip = models.GenericIPAddressField(null=True)
    request_id = models.CharField(max_length=36, blank=True)
    seq = models.BigIntegerField(null=True, editable=False)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["tenant", "seq"], name="content_read_one_per_seq")]
        indexes = [
            models.Index(fields=["at"], name="content_read_at"),
            models.Index(
                fields=["tenant", "id"], condition=Q(seq__isnull=True), name="content_read_unnumbered"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.kind} by {self.actor_name or self.actor_kind}"


class AuditStream(TenantModel):
    """Where a workspace's audit events go, and how far they have come.

    The operator's own streams (``is_operators``), one for each workspace, go where the installation's settings say.
    """

    class Kind(models.TextChoices):
        WEBHOOK = "webhook"
        SYSLOG = "syslog"
        FILE = "file"

    kind = models.CharField(max_length=10, choices=Kind.choices)
    url = models.CharField(max_length=2000, blank=True)
    secret_encrypted = models.BinaryField(null=True)
    is_operators = models.BooleanField(default=False)
    is_enabled = models.BooleanField(default=True)
    has_reads = models.BooleanField(default=True, help_text="Send reads as well as changes.")
    event_seq = models.BigIntegerField(default=0, help_text="Position of the last audit event that arrived.")
    read_seq = models.BigIntegerField(default=0, help_text="Position of the last read that arrived.")
    sent_count = models.BigIntegerField(default=0)
    last_sent_at = models.DateTimeField(null=True)
    failures = models.PositiveIntegerField(default=0, help_text="Attempts in a row that didn't arrive.")
    error = ToldCharField(max_length=300, blank=True)
    next_at = models.DateTimeField(db_default=Now(), help_text="Not tried before.")
    lease = models.CharField(max_length=40, blank=True)
    lease_until = models.DateTimeField(null=True)
    created_at = models.DateTimeField(db_default=Now())

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["tenant"], condition=Q(is_operators=True), name="audit_stream_one_of_operator"
            )
        ]

    def __str__(self) -> str:
        return f"{self.kind} {self.url}".strip()
