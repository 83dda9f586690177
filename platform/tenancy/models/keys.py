"""What programs come in with, and how often: keys, tokens of connected applications, limits, repeated writes."""

from __future__ import annotations

from django.conf import settings
from django.contrib.postgres.fields import ArrayField
from django.db import models

from tenancy.actors import key_actor_name
from tenancy.fields import TenantForeignKey
from tenancy.models.base import TenantModel


class ApiKey(TenantModel):
    """A key for programs. ``prefix`` finds it; the 256-bit secret is kept as SHA-256 and shown once.

    An application that a member connected by OAuth is a key too, whose secret nobody was given: its ``OAuthToken`` rows
    open it. So grants, budgets, limits and records treat both alike.
    """

    name = models.CharField(max_length=80)
    prefix = models.CharField(max_length=16, unique=True)
    secret_sha256 = models.CharField(max_length=64)
    scopes = models.JSONField(default=list)
    collections = ArrayField(
        models.BigIntegerField(),
        null=True,
        blank=True,
        help_text="The only collections it can see, even if they were deleted since; empty: all.",
    )
    user = models.ForeignKey(
        settings.AUTH_USER_MODEL,
        null=True,
        blank=True,
        on_delete=models.CASCADE,
        related_name="+",
        help_text="On whose behalf the key acts; its rights never exceed this person's role.",
    )
    client_id = models.TextField(
        blank=True,
        default="",
        help_text="The OAuth client of a connected application; empty for a key created by a person.",
    )
    created_at = models.DateTimeField(auto_now_add=True)
    expires_at = models.DateTimeField(null=True, blank=True)
    last_used_at = models.DateTimeField(null=True, blank=True)
    revoked_at = models.DateTimeField(null=True, blank=True)

    def __str__(self) -> str:
        return f"{self.name} ({self.prefix}…)"

    @property
    def actor_name(self) -> str:
        """What records call it when it acts."""
        return key_actor_name(self.name, self.client_id)


class OAuthToken(TenantModel):
    """A code or token of a connected application, kept as its SHA-256.

    A used one stays until it would have expired: who shows it again has stolen it, or was stolen from.
    """

    class Kind(models.TextChoices):
        CODE = "code"
        ACCESS = "access"
        REFRESH = "refresh"

    api_key = TenantForeignKey(ApiKey, related_name="tokens")
    kind = models.CharField(max_length=10, choices=Kind.choices)
    sha256 = models.CharField(max_length=64, unique=True)
    redirect_uri = models.TextField(
        blank=True, default="", help_text="For a code: the address it was sent to."
    )
    challenge = models.CharField(
        max_length=43, blank=True, default="", help_text="For a code: the PKCE challenge (S256)."
    )
    created_at = models.DateTimeField(auto_now_add=True)
    expires_at = models.DateTimeField()
    used_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        constraints = [
            models.CheckConstraint(
                condition=models.Q(kind__in=["code", "access", "refresh"]), name="oauth_token_kind_known"
            )
        ]
        indexes = [models.Index(fields=["expires_at"], name="oauth_token_expiry")]

    def __str__(self) -> str:
        return f"{self.kind} of {self.api_key_id}"


class RateLimit(TenantModel):
    """How many REST requests a workspace allows; without a row the operator's defaults hold (``tenancy.rate_limits``).

    A limit for members or keys without a person or key is that of each of them.
    """

    class Kind(models.TextChoices):
        MEMBER = "member", "a member"
        KEY = "key", "an API key"
        TENANT = "tenant", "the whole workspace"

    kind = models.CharField(max_length=10, choices=Kind.choices)
    user = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, blank=True, on_delete=models.CASCADE, related_name="+"
    )
    api_key = TenantForeignKey(ApiKey, null=True, blank=True, related_name="+")
    per_minute = models.PositiveIntegerField(help_text="Requests allowed per minute in the long run.")
    burst = models.PositiveIntegerField(help_text="Requests allowed at once.")

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["tenant", "kind", "user", "api_key"], nulls_distinct=False, name="rate_limit_one_each"
            ),
            models.CheckConstraint(
                condition=models.Q(per_minute__gt=0, burst__gt=0), name="rate_limit_positive"
            ),
            models.CheckConstraint(
                condition=models.Q(kind="tenant", user=None, api_key=None)
                | models.Q(kind="member", api_key=None)
                | models.Q(kind="key", user=None),
                name="rate_limit_subject_of_kind",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.per_minute} a minute for {self.api_key or self.user or self.get_kind_display()}"


class RateBucket(TenantModel):
    """What is left of a limit. Unlogged: spending a token waits for no disk; after a crash all buckets are full."""

    subject = models.CharField(max_length=30)
    tokens = models.FloatField()
    updated_at = models.DateTimeField()

    class Meta:
        constraints = [models.UniqueConstraint(fields=["tenant", "subject"], name="rate_bucket_one_each")]

    def __str__(self) -> str:
        return self.subject


class WriteMark(TenantModel):
    """Where the log of the database was after somebody's newest write: a replica that has not come so far is not read.

    ``writer`` is as ``tenancy.lagging`` names it; "" stands for a change of rights, which all in the workspace wait for.
    ``position`` is in bytes. Rows exist only where a replica is set.
    """

    writer = models.CharField(max_length=30)
    position = models.BigIntegerField()
    written_at = models.DateTimeField()

    class Meta:
        constraints = [models.UniqueConstraint(fields=["tenant", "writer"], name="write_mark_one_each")]

    def __str__(self) -> str:
        return self.writer or "rights"


class IdempotentAnswer(TenantModel):
    """The answer to a REST write that came with an ``Idempotency-Key``, for its repetitions; encrypted, it may hold secrets.

    ``fingerprint`` is the SHA-256 of what was sent. A write that is under way has no row: it holds an advisory lock,
    which dies with its connection.
    """

    caller = models.CharField(max_length=30)
    route = models.CharField(max_length=150)
    key = models.CharField(max_length=255)
    fingerprint = models.CharField(max_length=64)
    status = models.PositiveSmallIntegerField()
    body_encrypted = models.BinaryField()
    expires_at = models.DateTimeField()

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["tenant", "caller", "route", "key"], name="idempotent_answer_one_per_key"
            )
        ]
        indexes = [models.Index(fields=["expires_at"], name="idempotent_answer_expiry")]

    def __str__(self) -> str:
        return f"{self.route} of {self.caller}"
