"""Take a person out of the audit trail, whose chain of hashes still verifies.

A sealed row keeps its position and hash. What it says is replaced, and an event ``audit.redact``, sealed in the same chain
as any other, notes for each position the digest of what stands there now. ``tenancy.audit_chain`` takes a row that isn't
what was sealed only with such a note that came later.
"""

from __future__ import annotations

from typing import Any

from django.db import connection, transaction
from psycopg import sql

from erasure.names import Identity, matches, names_columns, set_clause
from tenancy.actors import system_actor
from tenancy.audit_chain import REDACTED, digests_now
from tenancy.database.base import as_login_role
from tenancy.models import AuditEvent, Tenant
from tenancy.scope import tenant_scope
from tenancy.services import audit_record

_AT_ONCE = 500  # rows that one event notes


def trail_redact(user_id: int, who: Identity) -> int:
    """Replace a person's names in every workspace's trail, and forget the addresses of their requests.

    Returns:
        How many events that changed. Inside a transaction.
    """
    tenants = _tenants(user_id, who)
    return sum(_redact(tenant, user_id, who) for tenant in Tenant.objects.filter(pk__in=tenants))


def _condition() -> sql.Composed:
    return sql.SQL("(user_id = %(user)s AND (actor_name <> %(pseudonym)s OR ip IS NOT NULL) OR {})").format(
        matches(names_columns(AuditEvent))
    )


def _values(user_id: int, who: Identity) -> dict[str, Any]:
    return {"user": user_id, "pattern": who.pattern, "pseudonym": who.pseudonym}


def _tenants(user_id: int, who: Identity) -> list[int]:
    statement = sql.SQL("SELECT DISTINCT tenant_id FROM tenancy_auditevent WHERE {}").format(_condition())
    with as_login_role(), connection.cursor() as cursor:
        cursor.execute(statement, _values(user_id, who))
        return [row[0] for row in cursor.fetchall()]


def _redact(tenant: Tenant, user_id: int, who: Identity) -> int:
    columns = [f for f in names_columns(AuditEvent) if f.name != "actor_name"]
    statement = sql.SQL(
        """UPDATE tenancy_auditevent SET {}, ip = NULL, request_id = '',
               actor_name = CASE WHEN user_id = %(user)s THEN %(pseudonym)s
                            ELSE regexp_replace(actor_name, %(pattern)s, %(pseudonym)s, 'gi') END
           WHERE tenant_id = %(tenant)s AND seq IS NOT NULL AND {} RETURNING seq"""
    ).format(set_clause([f for f in columns if f.name not in {"ip", "request_id"}]), _condition())
    with transaction.atomic():
        with as_login_role(), connection.cursor() as cursor:
            cursor.execute(statement, {**_values(user_id, who), "tenant": tenant.pk})
            changed = sorted(row[0] for row in cursor.fetchall())
        with tenant_scope(tenant.pk):
            digests = digests_now(tenant, changed)
            for start in range(0, len(changed), _AT_ONCE):
                part = {str(seq): digests[seq] for seq in changed[start : start + _AT_ONCE]}
                audit_record(
                    tenant=tenant, actor=system_actor(tenant.pk), action=REDACTED, data={"events": part}
                )
    return len(changed)
