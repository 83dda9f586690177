"""Tenants and who may act in them. Every table with a tenant stands behind the walls of ``tenancy.walls``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, Self, TypeVar

from django.conf import settings
from django.contrib.auth.models import AbstractUser, BaseUserManager
from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.db.models.functions import Now

from tenancy.fields import SET_NULL, TenantForeignKey

if TYPE_CHECKING:
    from tenancy.actors import Actor

__all__ = [
    "SET_NULL",
    "ApiKey",
    "AuditChain",
    "AuditEvent",
    "IdempotentAnswer",
    "Invite",
    "Membership",
    "ModelEntry",
    "OAuthToken",
    "ProviderCredential",
    "RateBucket",
    "RateLimit",
    "Role",
    "Tenant",
    "TenantForeignKey",
    "TenantModel",
    "TenantQuerySet",
    "User",
]

M = TypeVar("M", bound=models.Model)
_COLLECTION_PATHS = {"collection": "collection_id", "document": "document__collection_id"}


class UserManager(BaseUserManager["User"]):
    """Make people who sign in by e-mail address."""

    use_in_migrations = True

    def create_user(self, email: str, password: str | None = None, **extra: Any) -> User:
        """Create a person; without a password they can sign in only after setting one by mail."""
        if not email:
            raise ValueError("a user needs an e-mail address")
        user = self.model(email=self.normalize_email(email).lower(), **extra)
        user.set_password(password)
        user.save(using=self._db)
        return user

    def create_superuser(self, email: str, password: str | None = None, **extra: Any) -> User:
        """Create a person who may see every workspace in the admin."""
        return self.create_user(
            email, password, **{"is_staff": True, "is_superuser": True, **extra}
        )


class User(AbstractUser):
    """A person; the e-mail address is the name to sign in with."""

    username = None  # type: ignore[assignment]
    email = models.EmailField(unique=True)

    USERNAME_FIELD = "email"
    REQUIRED_FIELDS: ClassVar[list[str]] = []
    objects: ClassVar[UserManager] = UserManager()  # type: ignore[assignment]

    def __str__(self) -> str:
        return self.get_full_name() or self.email


class Tenant(models.Model):
    """A workspace: the wall around everything a team owns."""

    slug = models.SlugField(max_length=40, unique=True)
    name = models.CharField(max_length=120)
    created_at = models.DateTimeField(auto_now_add=True)
    is_active = models.BooleanField(default=True)

    def __str__(self) -> str:
        return self.name


class TenantQuerySet(models.QuerySet[M]):
    """Every read of a tenant table starts here, with row-level security as the second net."""

    def visible_to(self, actor: Actor) -> Self:
        """Return the rows of the actor's tenant, and of a limited key's collections; narrower rules override this."""
        rows = self.filter(tenant_id=actor.tenant_id)
        path = self.model.collection_path()  # type: ignore[attr-defined]
        if actor.collections is None or not path:
            return rows
        return rows.filter(**{f"{path}__in": actor.collections})


class TenantModel(models.Model):
    """Base of every table that belongs to a tenant.

    ``append_only`` tables get no UPDATE and DELETE rights for the application's role, ``read_only`` ones no INSERT
    either: what stands in those, the database writes by itself.
    """

    tenant = models.ForeignKey(Tenant, on_delete=models.CASCADE, related_name="+")

    append_only = False
    read_only = False

    objects: Any = TenantQuerySet.as_manager()

    class Meta:
        abstract = True

    @classmethod
    def collection_path(cls) -> str:
        """Return the look-up of the collection that a row belongs to, "" for rows of none.

        A key that is limited to collections sees no rows of others. Models without a required ``collection`` that belong to
        one all the same say how.
        """
        for name, path in _COLLECTION_PATHS.items():
            field = next((f for f in cls._meta.concrete_fields if f.name == name), None)
            if field is not None and field.is_relation and not field.null:
                return path
        return ""


class Role(models.TextChoices):
    OWNER = "owner"
    ADMIN = "admin"
    MEMBER = "member"
    VIEWER = "viewer"


class Membership(TenantModel):
    user = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="memberships"
    )
    role = models.CharField(max_length=10, choices=Role.choices, default=Role.MEMBER)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["tenant", "user"], name="membership_one_per_user"),
            models.CheckConstraint(
                condition=models.Q(role__in=Role.values), name="membership_role_known"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.user} in {self.tenant}"


class Invite(TenantModel):
    """An invitation by link. The link carries a signed token; only its SHA-256 is stored."""

    email = models.EmailField()
    role = models.CharField(max_length=10, choices=Role.choices, default=Role.MEMBER)
    token_sha256 = models.CharField(max_length=64, unique=True)
    invited_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, on_delete=models.SET_NULL, related_name="+"
    )
    created_at = models.DateTimeField(auto_now_add=True)
    expires_at = models.DateTimeField()
    accepted_at = models.DateTimeField(null=True, blank=True)
    revoked_at = models.DateTimeField(null=True, blank=True)

    def __str__(self) -> str:
        return f"{self.email} to {self.tenant}"


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
        help_text="It sees these collections alone, what was deleted included; empty: all.",
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
        help_text="The OAuth client of a connected application; empty for a key that somebody made.",
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
        return f"{'app' if self.client_id else 'key'} {self.name}"


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
        blank=True, default="", help_text="Of a code: where it was sent."
    )
    challenge = models.CharField(
        max_length=43, blank=True, default="", help_text="Of a code: PKCE, S256."
    )
    created_at = models.DateTimeField(auto_now_add=True)
    expires_at = models.DateTimeField()
    used_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        constraints = [
            models.CheckConstraint(
                condition=models.Q(kind__in=["code", "access", "refresh"]),
                name="oauth_token_kind_known",
            ),
        ]
        indexes = [models.Index(fields=["expires_at"], name="oauth_token_expiry")]

    def __str__(self) -> str:
        return f"{self.kind} of {self.api_key_id}"


class ProviderCredential(TenantModel):
    """A tenant's own key for a model provider, encrypted; never shown again.

    ``endpoint`` tells several compatible servers apart and stands in the routing names of their models; "" is the
    provider itself, or the default server.
    """

    provider = models.CharField(max_length=20)
    endpoint = models.CharField(max_length=30, blank=True, default="")
    label = models.CharField(max_length=80, blank=True)
    secret_encrypted = models.BinaryField()
    last_four = models.CharField(max_length=4, blank=True)
    base_url = models.URLField(blank=True)
    model_names = models.JSONField(default=list, blank=True)
    is_enabled = models.BooleanField(default=True)
    created_at = models.DateTimeField(auto_now_add=True)
    updated_at = models.DateTimeField(auto_now=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["tenant", "provider", "endpoint"], name="credential_one_per_endpoint"
            ),
            models.CheckConstraint(
                condition=models.Q(endpoint="") | models.Q(provider="compatible"),
                name="credential_endpoint_compatible",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.name} key of {self.tenant}"

    @property
    def name(self) -> str:
        """The provider, with the endpoint where it has a name."""
        return f"{self.provider}/{self.endpoint}" if self.endpoint else self.provider

    @property
    def purpose(self) -> str:
        """What the stored key is bound to: one that is copied to another row cannot be read there."""
        return f"credential:{self.name}"


class ModelEntry(TenantModel):
    """What a tenant states about a model: one more, or other facts about a known one. NULL and "" state nothing.

    ``prices`` are tiers, each an object of USD per million tokens: ``input``, ``output``, ``cached_read``, ``cache_write``
    (both may be null) and ``above_tokens``; an empty list says that the price is unknown. ``capabilities`` maps names to
    true or false.
    """

    name = models.CharField(max_length=120, help_text="Routing name, for example openai/gpt-6-sol.")
    label = models.CharField(max_length=80, blank=True)
    is_enabled = models.BooleanField(default=True)
    context_window = models.PositiveIntegerField(null=True, blank=True)
    max_output_tokens = models.PositiveIntegerField(null=True, blank=True)
    prices = models.JSONField(null=True, blank=True)
    capabilities = models.JSONField(default=dict, blank=True)
    created_at = models.DateTimeField(auto_now_add=True)
    updated_at = models.DateTimeField(auto_now=True)

    class Meta:
        verbose_name_plural = "model entries"
        constraints = [
            models.UniqueConstraint(fields=["tenant", "name"], name="model_entry_one_per_name"),
            models.CheckConstraint(
                condition=models.Q(context_window__isnull=True) | models.Q(context_window__gt=0),
                name="model_entry_window_positive",
            ),
            models.CheckConstraint(
                condition=models.Q(max_output_tokens__isnull=True)
                | models.Q(max_output_tokens__gt=0),
                name="model_entry_output_positive",
            ),
        ]

    def __str__(self) -> str:
        return self.label or self.name


class AuditEvent(TenantModel):
    """What was done, by whom. Append-only: the application's role can neither change nor delete a row.

    ``seq``, ``previous_hash`` and ``hash`` chain the rows of a tenant. The database fills them in as the act commits
    (migration 0003), so they are empty in the object that was created; ``tenancy.audit_chain`` verifies them.
    """

    append_only = True

    at = models.DateTimeField(db_default=Now())
    actor_kind = models.CharField(max_length=10)
    actor_name = models.CharField(max_length=150, blank=True)
    user_id = models.BigIntegerField(null=True)
    api_key_id = models.BigIntegerField(null=True)
    action = models.CharField(max_length=60)
    object_type = models.CharField(max_length=60, blank=True)
    object_id = models.CharField(max_length=40, blank=True)
    object_name = models.CharField(max_length=200, blank=True)
    data = models.JSONField(default=dict)
    ip = models.GenericIPAddressField(null=True)
    request_id = models.CharField(max_length=36, blank=True)
    seq = models.BigIntegerField(null=True, editable=False)
    previous_hash = models.CharField(max_length=64, blank=True, default="", editable=False)
    hash = models.CharField(max_length=64, blank=True, default="", editable=False)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["tenant", "seq"], name="audit_one_per_seq"),
        ]
        indexes = [
            models.Index(fields=["tenant", "-at"], name="audit_tenant_at"),
            models.Index(fields=["tenant", "object_type", "object_id"], name="audit_object"),
        ]

    def __str__(self) -> str:
        return f"{self.action} by {self.actor_name or self.actor_kind}"


class AuditChain(TenantModel):
    """The head of a tenant's audit chain: position and hash of its newest event. Written by the database alone."""

    read_only = True

    seq = models.BigIntegerField(default=0)
    hash = models.CharField(max_length=64)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["tenant"], name="audit_chain_one_head")]

    def __str__(self) -> str:
        return f"{self.seq}:{self.hash[:12]}"


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
            ),
        ]
        indexes = [models.Index(fields=["expires_at"], name="idempotent_answer_expiry")]

    def __str__(self) -> str:
        return f"{self.route} of {self.caller}"


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
    per_minute = models.PositiveIntegerField(help_text="Requests a minute that are refilled.")
    burst = models.PositiveIntegerField(help_text="Requests that may come at once.")

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["tenant", "kind", "user", "api_key"],
                nulls_distinct=False,
                name="rate_limit_one_each",
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
        return (
            f"{self.per_minute} a minute for {self.api_key or self.user or self.get_kind_display()}"
        )


class RateBucket(TenantModel):
    """What is left of a limit. Unlogged: spending a token waits for no disk; after a crash all buckets are full."""

    subject = models.CharField(max_length=30)
    tokens = models.FloatField()
    updated_at = models.DateTimeField()

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["tenant", "subject"], name="rate_bucket_one_each")
        ]

    def __str__(self) -> str:
        return self.subject
