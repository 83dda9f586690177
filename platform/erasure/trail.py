"""Take a person out of the audit trail, whose chain of hashes still verifies.

A sealed row keeps its position and hash. What it says is replaced, and an event ``audit.redact``, sealed in the same chain
as any other, notes for each position the digest of what stands there now. ``tenancy.audit_chain`` takes a row that isn't
what was sealed only with such a note that came later.
"""

from __future__ import annotations

import json
from typing import Any

from django.db import connection, transaction
from psycopg import sql

from erasure.kinds import Erased
from erasure.names import Identity, escaped, matches, names_columns, set_clause
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
        _note(tenant, changed)
    return len(changed)


def _note(tenant: Tenant, changed: list[int]) -> None:
    """Seal what events say now that were changed, by their positions."""
    with tenant_scope(tenant.pk):
        digests = digests_now(tenant, changed)
        for start in range(0, len(changed), _AT_ONCE):
            part = {str(seq): digests[seq] for seq in changed[start : start + _AT_ONCE]}
            audit_record(tenant=tenant, actor=system_actor(tenant.pk), action=REDACTED, data={"events": part})


_FORGET = """
UPDATE tenancy_auditevent AS e SET
  object_name = CASE WHEN o.is_own THEN %(pseudonym)s ELSE regexp_replace(e.object_name, %(pattern)s, %(pseudonym)s, 'g') END,
  data = CASE WHEN o.is_own THEN '{}'::jsonb
         ELSE regexp_replace(e.data::text, %(pattern)s, %(pseudonym)s, 'g')::jsonb END
FROM unnest(%(types)s::text[], %(ids)s::text[], %(own)s::boolean[]) AS o (object_type, object_id, is_own)
WHERE e.tenant_id = %(tenant)s AND e.seq IS NOT NULL
  AND e.object_type = o.object_type AND e.object_id = o.object_id
  AND CASE WHEN o.is_own THEN e.object_name <> %(pseudonym)s OR e.data <> '{}'::jsonb
      ELSE e.object_name ~ %(pattern)s OR e.data::text ~ %(pattern)s END
RETURNING e.seq
"""


def trail_forget(erased: Erased, pseudonym: str) -> int:
    """Take what the trail says of a document or conversation out of it: its own events keep who, when and what was done.

    In events about several things, such as a batch of files, its names alone are replaced.

    Returns:
        How many events that changed. Inside a transaction.
    """
    objects = [
        (label, str(pk), is_own)
        for told, is_own in ((erased.events, True), (erased.naming, False))
        for label, pks in told.items()
        for pk in sorted(pks)
    ]
    if not objects:
        return 0
    forms = {form for name in erased.names if name for form in (name, json.dumps(name)[1:-1])}
    longest = sorted(forms, key=len, reverse=True)
    # A name that is a part of another word or path is another's.
    pattern = rf"(?<![\w./-])({'|'.join(map(escaped, longest))})(?![\w/-])" if forms else r"(?!)"
    types, ids, own = zip(*objects, strict=True)
    values: dict[str, Any] = {
        "tenant": erased.tenant.pk,
        "pseudonym": pseudonym,
        "pattern": pattern,
        "types": list(types),
        "ids": list(ids),
        "own": list(own),
    }
    with as_login_role(), connection.cursor() as cursor:
        cursor.execute(_FORGET, values)
        changed = sorted({row[0] for row in cursor.fetchall()})
    _note(erased.tenant, changed)
    return len(changed)
