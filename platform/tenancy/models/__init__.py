"""Tenants and who may act in them. Every table with a tenant stands behind the walls of ``tenancy.row_security``."""

from tenancy.fields import SET_NULL, TenantForeignKey
from tenancy.models.base import Tenant, TenantModel, TenantQuerySet, User, UserManager
from tenancy.models.keys import ApiKey, IdempotentAnswer, OAuthToken, RateBucket, RateLimit, WriteMark
from tenancy.models.workspace import (
    AuditChain,
    AuditEvent,
    Invite,
    Membership,
    ModelEntry,
    OutgoingHost,
    ProviderCredential,
    Role,
)

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
    "OutgoingHost",
    "ProviderCredential",
    "RateBucket",
    "RateLimit",
    "Role",
    "Tenant",
    "TenantForeignKey",
    "TenantModel",
    "TenantQuerySet",
    "User",
    "UserManager",
    "WriteMark",
]
