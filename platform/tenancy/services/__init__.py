"""Writes of the tenancy room. Each is one transaction with its permission check and its audit row."""

from tenancy.services.audit import audit_event_new, audit_record
from tenancy.services.connections import (
    code_redeem,
    connection_allow,
    connection_forget,
    connection_revoke,
    tokens_refresh,
)
from tenancy.services.credentials import credential_delete, credential_set
from tenancy.services.invites import invite_accept, invite_create, invite_revoke
from tenancy.services.keys import api_key_create, api_key_revoke, api_key_rotate, key_collection_add
from tenancy.services.members import member_add, member_remove, member_role_change
from tenancy.services.model_entries import model_entry_delete, model_entry_set, model_entry_switch
from tenancy.services.outgoing_hosts import outgoing_hosts_set
from tenancy.services.rate_limits import rate_limit_remove, rate_limit_set
from tenancy.services.tenants import tenant_create

__all__ = [
    "api_key_create",
    "api_key_revoke",
    "api_key_rotate",
    "audit_event_new",
    "audit_record",
    "code_redeem",
    "connection_allow",
    "connection_forget",
    "connection_revoke",
    "credential_delete",
    "credential_set",
    "invite_accept",
    "invite_create",
    "invite_revoke",
    "key_collection_add",
    "member_add",
    "member_remove",
    "member_role_change",
    "model_entry_delete",
    "model_entry_set",
    "model_entry_switch",
    "outgoing_hosts_set",
    "rate_limit_remove",
    "rate_limit_set",
    "tenant_create",
    "tokens_refresh",
]
