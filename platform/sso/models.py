"""A workspace's identity provider, the people it has told of, and their sign-ins."""

from __future__ import annotations

import uuid

from django.conf import settings
from django.db import models
from django.db.models.functions import Now

from tenancy.fields import TenantForeignKey
from tenancy.models import Role, TenantModel


class Protocol(models.TextChoices):
    OIDC = "oidc", "OpenID Connect"
    SAML = "saml", "SAML 2.0"


class SsoConnection(TenantModel):
    """A provider whose word a workspace takes. An OpenID client's secret is encrypted and never shown again.

    A SAML provider may be there before its metadata is, because many ask for our addresses first: its issuer is "" then, and
    nobody can sign in through it.
    """

    name = models.CharField(max_length=80, help_text="What the button says, for example Okta.")
    protocol = models.CharField(
        max_length=4, choices=Protocol.choices, default=Protocol.OIDC, db_default=Protocol.OIDC
    )
    issuer = models.CharField(
        max_length=300, help_text="As the discovery document states it; of SAML, the provider's entity ID."
    )
    client_id = models.CharField(max_length=200)
    secret_encrypted = models.BinaryField()
    sso_url = models.CharField(
        max_length=1000, default="", db_default="", help_text="Where SAML requests are sent."
    )
    certificates = models.TextField(default="", db_default="", help_text="What SAML is signed with, as PEM.")
    email_claim = models.CharField(
        max_length=200, default="", db_default="", help_text="Attribute of SAML; empty: the usual ones."
    )
    groups_claim = models.CharField(max_length=200, default="groups")
    creates_members = models.BooleanField(
        default=True, help_text="People of a verified domain become members when they first sign in."
    )
    takes_unstated_email = models.BooleanField(
        default=False,
        help_text="The provider doesn't say whether addresses are verified, and only its administrators set them.",
    )
    is_enabled = models.BooleanField(default=True)
    tested_at = models.DateTimeField(null=True, help_text="When somebody last signed in through it.")
    created_at = models.DateTimeField(db_default=Now())
    updated_at = models.DateTimeField(auto_now=True)

    class Meta:
        verbose_name = "identity provider"
        constraints = [
            models.UniqueConstraint(fields=["tenant", "issuer", "client_id"], name="sso_connection_once"),
        ]

    def __str__(self) -> str:
        return self.name

    @property
    def purpose(self) -> str:
        """What the stored secret is bound to: with another issuer or client it can't be read."""
        return f"sso:{self.issuer}:{self.client_id}"


class SsoDomain(TenantModel):
    """A mail domain. Once its DNS names ``token``, the workspace's provider may speak for its addresses.

    At most one workspace of an installation has a domain verified (``sso.domains`` sees to it: no index can, across tenants).
    """

    domain = models.CharField(max_length=253)
    token = models.CharField(max_length=43)
    verified_at = models.DateTimeField(null=True)
    created_at = models.DateTimeField(db_default=Now())

    class Meta:
        verbose_name = "mail domain"
        constraints = [models.UniqueConstraint(fields=["tenant", "domain"], name="sso_domain_once")]
        indexes = [models.Index(fields=["domain"], name="sso_domain_name")]

    def __str__(self) -> str:
        return self.domain


class GroupRole(TenantModel):
    """The role that a group of the provider has here; of several groups the highest role counts."""

    group = models.CharField(max_length=200, help_text="As the provider sends it: a name, or an id.")
    role = models.CharField(max_length=10, choices=Role.choices)

    class Meta:
        verbose_name = "role of a group"
        verbose_name_plural = "roles of groups"
        constraints = [
            models.UniqueConstraint(fields=["tenant", "group"], name="group_role_once"),
            models.CheckConstraint(condition=models.Q(role__in=Role.values), name="group_role_known"),
        ]

    def __str__(self) -> str:
        return f"{self.group}: {self.role}"


class SsoIdentity(TenantModel):
    """Who a provider's subject is here. A subject never changes at a provider; an address may go to another person."""

    connection = TenantForeignKey(SsoConnection, related_name="identities")
    subject = models.CharField(max_length=255)
    user = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="+")
    created_at = models.DateTimeField(db_default=Now())
    last_at = models.DateTimeField(null=True)

    class Meta:
        verbose_name = "identity"
        verbose_name_plural = "identities"
        constraints = [
            models.UniqueConstraint(fields=["tenant", "connection", "subject"], name="sso_identity_once"),
            models.UniqueConstraint(fields=["tenant", "connection", "user"], name="sso_identity_one_subject"),
        ]

    def __str__(self) -> str:
        return self.subject


class SamlAnswer(TenantModel):
    """A SAML assertion that was believed. It counts once, on all machines; its claims go when the browser fetches them.

    A provider's form is posted across sites, where browsers send no session. So the assertion is kept here for a moment,
    and the browser comes back for it with its session and a token.
    """

    connection = TenantForeignKey(SsoConnection, related_name="answers")
    assertion_sha256 = models.CharField(max_length=64)
    request_id = models.CharField(max_length=100)
    token_sha256 = models.CharField(max_length=64)
    claims = models.JSONField(default=dict)
    taken_at = models.DateTimeField(null=True)
    expires_at = models.DateTimeField(help_text="From then on the assertion is too old to count anyway.")

    class Meta:
        verbose_name = "SAML assertion"
        constraints = [
            models.UniqueConstraint(
                fields=["tenant", "connection", "assertion_sha256"], name="saml_answer_once"
            ),
            models.UniqueConstraint(fields=["tenant", "token_sha256"], name="saml_answer_token"),
        ]
        indexes = [models.Index(fields=["expires_at"], name="saml_answer_expiry")]

    def __str__(self) -> str:
        return self.assertion_sha256[:12]


class SsoSignIn(TenantModel):
    """A sign-in through a provider. Its token is in one browser's session; without this row that session opens nothing."""

    user = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="+")
    connection = TenantForeignKey(SsoConnection, related_name="sign_ins")
    token_sha256 = models.CharField(max_length=64)
    at = models.DateTimeField(db_default=Now())
    expires_at = models.DateTimeField()

    class Meta:
        verbose_name = "company sign-in"
        constraints = [models.UniqueConstraint(fields=["tenant", "token_sha256"], name="sso_sign_in_once")]
        indexes = [models.Index(fields=["expires_at"], name="sso_sign_in_expiry")]

    def __str__(self) -> str:
        return f"{self.user} at {self.at:%Y-%m-%d %H:%M}"


class ScimToken(TenantModel):
    """What a provider provisions people with. It opens nothing but SCIM; the secret is kept as SHA-256 and shown once."""

    name = models.CharField(max_length=80)
    token_sha256 = models.CharField(max_length=64)
    created_at = models.DateTimeField(db_default=Now())
    last_used_at = models.DateTimeField(null=True)
    revoked_at = models.DateTimeField(null=True)

    class Meta:
        verbose_name = "SCIM token"
        constraints = [models.UniqueConstraint(fields=["tenant", "token_sha256"], name="scim_token_once")]
        indexes = [models.Index(fields=["token_sha256"], name="scim_token_secret")]

    def __str__(self) -> str:
        return self.name


class ScimUser(TenantModel):
    """A person as the provider describes them. One that it deleted stays, unseen by it: no sign-in brings them back.

    What it says of their name stays here: the account belongs to the person, who may be in other workspaces too.
    """

    resource_id = models.UUIDField(default=uuid.uuid4)
    user = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="+")
    user_name = models.CharField(max_length=254)
    user_key = models.CharField(max_length=254, help_text="user_name in lower case: it is compared so.")
    external_id = models.CharField(max_length=255, blank=True, default="")
    email = models.EmailField()
    given_name = models.CharField(max_length=150, blank=True, default="")
    family_name = models.CharField(max_length=150, blank=True, default="")
    display_name = models.CharField(max_length=200, blank=True, default="")
    is_active = models.BooleanField(default=True)
    deleted_at = models.DateTimeField(null=True)
    created_at = models.DateTimeField(db_default=Now())
    updated_at = models.DateTimeField(auto_now=True)

    class Meta:
        verbose_name = "provisioned person"
        verbose_name_plural = "provisioned people"
        constraints = [
            models.UniqueConstraint(fields=["tenant", "user_key"], name="scim_user_name_once"),
            models.UniqueConstraint(fields=["tenant", "user"], name="scim_user_person_once"),
            models.UniqueConstraint(fields=["tenant", "resource_id"], name="scim_user_id_once"),
        ]

    def __str__(self) -> str:
        return self.user_name


class ScimGroup(TenantModel):
    """A group as the provider describes it."""

    resource_id = models.UUIDField(default=uuid.uuid4)
    display_name = models.CharField(max_length=200)
    display_key = models.CharField(max_length=200, help_text="display_name in lower case: it is compared so.")
    external_id = models.CharField(max_length=255, blank=True, default="")
    created_at = models.DateTimeField(db_default=Now())
    updated_at = models.DateTimeField(auto_now=True)

    class Meta:
        verbose_name = "provisioned group"
        constraints = [
            models.UniqueConstraint(fields=["tenant", "display_key"], name="scim_group_name_once"),
            models.UniqueConstraint(fields=["tenant", "resource_id"], name="scim_group_id_once"),
        ]

    def __str__(self) -> str:
        return self.display_name


class ScimGroupMember(TenantModel):
    """Who is in a provisioned group."""

    group = TenantForeignKey(ScimGroup, related_name="members")
    person = TenantForeignKey(ScimUser, related_name="groups")

    class Meta:
        verbose_name = "member of a provisioned group"
        verbose_name_plural = "members of provisioned groups"
        constraints = [
            models.UniqueConstraint(fields=["tenant", "group", "person"], name="scim_group_member_once")
        ]

    def __str__(self) -> str:
        return f"{self.person_id} in {self.group_id}"
