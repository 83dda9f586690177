"""Who is in a workspace, what it knows of models, and what was done there."""

from __future__ import annotations

from django.conf import settings
from django.db import models
from django.db.models.functions import Now
from django.utils.translation import gettext_lazy

from tenancy.models.base import TenantModel


class Role(models.TextChoices):
    OWNER = "owner", gettext_lazy("Owner")
    ADMIN = "admin", gettext_lazy("Admin")
    MEMBER = "member", gettext_lazy("Member")
    VIEWER = "viewer", gettext_lazy("Viewer")


class Membership(TenantModel):
    user = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="memberships")
    role = models.CharField(max_length=10, choices=Role.choices, default=Role.MEMBER)
    created_at = models.DateTimeField(auto_now_add=True)
    finished = models.JSONField(
        default=list,
        db_default=[],
        editable=False,
        help_text="Work the person started that has ended and not been looked at: kind, id and state, newest last.",
    )  # nothing reads it since notices.Notice: to be removed one release later
    has_notices = models.BooleanField(
        default=False,
        db_default=False,
        editable=False,
        help_text="The person may have notices to read: pages of others ask for none.",
    )

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["tenant", "user"], name="membership_one_per_user"),
            models.CheckConstraint(condition=models.Q(role__in=Role.values), name="membership_role_known"),
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

    name = models.CharField(max_length=120, help_text="With its provider, for example openai/gpt-6-sol.")
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
                condition=models.Q(max_output_tokens__isnull=True) | models.Q(max_output_tokens__gt=0),
                name="model_entry_output_positive",
            ),
        ]

    def __str__(self) -> str:
        return self.label or self.name


class OutgoingHost(TenantModel):
    """A host that a workspace lets its requests go to; without any, every public host may be called.

    It binds what members, models and documents can lead somewhere: tool sources, MCP servers, web pages, webhooks.
    Providers of models are named by admins and chosen with their keys, and are not bound.
    """

    pattern = models.CharField(
        max_length=253, help_text="A host, such as api.example.com, or *.example.com for all its subdomains."
    )
    created_at = models.DateTimeField(db_default=Now())

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["tenant", "pattern"], name="outgoing_host_once"),
            models.CheckConstraint(condition=~models.Q(pattern=""), name="outgoing_host_not_empty"),
        ]

    def __str__(self) -> str:
        return self.pattern


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
        constraints = [models.UniqueConstraint(fields=["tenant", "seq"], name="audit_one_per_seq")]
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
