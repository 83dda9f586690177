"""Admin of company sign-in: to look at. It is set under Settings, Sign-in, where its rules are checked."""

from __future__ import annotations

from django.contrib import admin

from sso.models import (
    GroupRole,
    SamlAnswer,
    ScimGroup,
    ScimGroupMember,
    ScimToken,
    ScimUser,
    SsoConnection,
    SsoDomain,
    SsoIdentity,
    SsoSignIn,
)
from tenancy.admin_scope import JournalAdmin


@admin.register(SsoConnection)
class SsoConnectionAdmin(JournalAdmin):
    """Identity providers; the client's secret is never shown."""

    hidden_fields = frozenset({"secret_encrypted"})
    list_display = ("name", "protocol", "issuer", "is_enabled", "tested_at")
    ordering = ("-pk",)


@admin.register(SsoDomain)
class SsoDomainAdmin(JournalAdmin):
    """Mail domains."""

    list_display = ("domain", "verified_at")
    search_fields = ("domain",)
    ordering = ("domain",)


@admin.register(ScimToken)
class ScimTokenAdmin(JournalAdmin):
    """Tokens of SCIM; what they are is stored as a hash alone."""

    hidden_fields = frozenset({"token_sha256"})
    list_display = ("name", "created_at", "last_used_at", "revoked_at")
    ordering = ("-pk",)


@admin.register(SamlAnswer)
class SamlAnswerAdmin(JournalAdmin):
    """SAML assertions of the last minutes, each of which counts once."""

    hidden_fields = frozenset({"token_sha256"})
    list_display = ("connection", "request_id", "taken_at", "expires_at")
    ordering = ("-pk",)


@admin.register(SsoSignIn)
class SsoSignInAdmin(JournalAdmin):
    """Sign-ins through a provider that are in force."""

    hidden_fields = frozenset({"token_sha256"})
    list_display = ("user", "connection", "at", "expires_at")
    ordering = ("-pk",)


@admin.register(ScimUser)
class ScimUserAdmin(JournalAdmin):
    """People as their provider describes them."""

    list_display = ("user_name", "is_active", "deleted_at", "updated_at")
    search_fields = ("user_name", "email")
    ordering = ("user_key",)


@admin.register(GroupRole, ScimGroup, ScimGroupMember, SsoIdentity)
class SsoRowsAdmin(JournalAdmin):
    """Groups, their roles and members, and who a provider's subjects are."""
