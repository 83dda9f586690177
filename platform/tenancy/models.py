"""Tenants and who may act in them. Every table with a tenant stands behind the walls of ``tenancy.walls``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, Self, TypeVar

from django.conf import settings
from django.contrib.auth.models import AbstractUser, BaseUserManager
from django.db import models
from django.db.models.functions import Now

from tenancy.fields import SET_NULL, TenantForeignKey

if TYPE_CHECKING:
    from tenancy.actors import Actor

__all__ = [
    "SET_NULL",
    "ApiKey",
    "AuditEvent",
    "Invite",
    "Membership",
    "ProviderCredential",
    "Role",
    "Tenant",
    "TenantForeignKey",
    "TenantModel",
    "TenantQuerySet",
    "User",
]

M = TypeVar("M", bound=models.Model)


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
        """Return the rows of the actor's tenant; models with narrower rules override this."""
        return self.filter(tenant_id=actor.tenant_id)


class TenantModel(models.Model):
    """Base of every table that belongs to a tenant.

    ``append_only`` tables get no UPDATE and DELETE rights for the application's role.
    """

    tenant = models.ForeignKey(Tenant, on_delete=models.CASCADE, related_name="+")

    append_only = False

    objects: Any = TenantQuerySet.as_manager()

    class Meta:
        abstract = True


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
    """A key for programs. ``prefix`` finds it; the 256-bit secret is kept as SHA-256 and shown once."""

    name = models.CharField(max_length=80)
    prefix = models.CharField(max_length=16, unique=True)
    secret_sha256 = models.CharField(max_length=64)
    scopes = models.JSONField(default=list)
    user = models.ForeignKey(
        settings.AUTH_USER_MODEL,
        null=True,
        blank=True,
        on_delete=models.CASCADE,
        related_name="+",
        help_text="On whose behalf the key acts; its rights never exceed this person's role.",
    )
    created_at = models.DateTimeField(auto_now_add=True)
    expires_at = models.DateTimeField(null=True, blank=True)
    last_used_at = models.DateTimeField(null=True, blank=True)
    revoked_at = models.DateTimeField(null=True, blank=True)

    def __str__(self) -> str:
        return f"{self.name} ({self.prefix}…)"


class ProviderCredential(TenantModel):
    """A tenant's own key for a model provider, encrypted; never shown again."""

    provider = models.CharField(max_length=20)
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
                fields=["tenant", "provider"], name="credential_one_per_provider"
            )
        ]

    def __str__(self) -> str:
        return f"{self.provider} key of {self.tenant}"


class AuditEvent(TenantModel):
    """What was done, by whom. Append-only: the application's role can neither change nor delete a row."""

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

    class Meta:
        indexes = [
            models.Index(fields=["tenant", "-at"], name="audit_tenant_at"),
            models.Index(fields=["tenant", "object_type", "object_id"], name="audit_object"),
        ]

    def __str__(self) -> str:
        return f"{self.action} by {self.actor_name or self.actor_kind}"
