"""The audit trail: one row for each thing done, in the transaction that does it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django.conf import settings
from django.db import connection, models
from django.utils.translation import override

from tenancy import origin
from tenancy.actors import Actor
from tenancy.inserting import rows_insert
from tenancy.lagging import rights_noted
from tenancy.models import AuditEvent, Tenant


def audit_event_new(
    *,
    pk: int | None = None,
    tenant: Tenant,
    actor: Actor,
    action: str,
    object: models.Model | None = None,  # noqa: A002 - the word of the audit trail
    object_name: str = "",
    data: Mapping[str, Any] | None = None,
) -> AuditEvent:
    """Return what ``audit_record`` writes, for a caller who stores it together with other rows of the same transaction.

    Args:
        pk: the id it gets; None where it is stored alone.

    Raises:
        RuntimeError: when called outside a transaction (a programming error).
    """
    if not connection.in_atomic_block:
        raise RuntimeError(f"audit_record({action!r}) outside a transaction: use transaction.atomic")
    with override(settings.LANGUAGE_CODE):  # The trail reads alike, whatever language its actors have.
        name = object_name or ("" if object is None else str(object))
    where = origin.current()
    rights_noted(tenant.pk, action)
    return AuditEvent(
        pk=pk,
        tenant=tenant,
        actor_kind=actor.kind,
        actor_name=actor.name[:150],
        user_id=actor.user_id,
        api_key_id=actor.api_key_id,
        action=action,
        object_type="" if object is None else object._meta.label_lower,
        object_id="" if object is None else str(object.pk)[:40],
        object_name=name[:200],
        data=dict(data or {}),
        ip=where.ip or None,
        request_id=where.request_id[:36],
    )


def audit_record(
    *,
    tenant: Tenant,
    actor: Actor,
    action: str,
    object: models.Model | None = None,  # noqa: A002 - the word of the audit trail
    object_name: str = "",
    data: Mapping[str, Any] | None = None,
) -> AuditEvent:
    """Write who did what, in the caller's transaction, so that the act and its trace stand or fall together.

    Address and request id are taken from the request that runs (``tenancy.origin``).

    Args:
        action: ``<noun>.<verb>``, for example ``collection.create``.
        object: the row it was done to; its name is kept as it is now.
        object_name: what to call the object where its own text will not do.
        data: facts to keep, JSON-serialisable. Never a secret.

    Raises:
        RuntimeError: when called outside a transaction (a programming error).
    """
    event = audit_event_new(
        tenant=tenant, actor=actor, action=action, object=object, object_name=object_name, data=data
    )
    rows_insert([event])
    return event
