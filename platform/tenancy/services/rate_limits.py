"""A workspace's own limits of REST requests: set and removed."""

from __future__ import annotations

from typing import Any

from django.db import transaction

from basics.errors import Invalid, Missing
from basics.texts import gettext as _
from basics.texts import number_told
from tenancy.actors import Actor
from tenancy.models import ApiKey, Membership, RateLimit, Tenant
from tenancy.scope import tenant_scope
from tenancy.services.audit import audit_record

MAX_PER_MINUTE = 1_000_000


@transaction.atomic
def rate_limit_set(
    *,
    tenant: Tenant,
    actor: Actor,
    kind: str,
    per_minute: int,
    user: int | None = None,
    api_key: int | None = None,
) -> RateLimit:
    """Say how many REST requests a minute are allowed; a sixth of them may come at once.

    Args:
        kind: tenant, member or key: whose requests are counted.
        user, api_key: one member (by the id of the person) or key; None for each of them.

    Raises:
        Denied: without the right ``tenant.manage``.
        Invalid: a value cannot be used.
        Missing: no such member or key.
    """
    actor.require("tenant.manage")
    if kind not in RateLimit.Kind.values:
        raise _invalid("kind", _("Use one of %(known)s.") % {"known": ", ".join(RateLimit.Kind.values)})
    if not 1 <= per_minute <= MAX_PER_MINUTE:
        raise _invalid(
            "per_minute", _("Give 1 to %(most)s requests.") % {"most": number_told(MAX_PER_MINUTE)}
        )
    if (user is not None and kind != "member") or (api_key is not None and kind != "key"):
        raise _invalid(
            "kind", _("A member limit needs a member, a key limit a key, and a workspace limit neither.")
        )
    with tenant_scope(tenant.pk):
        if user is not None and not Membership.objects.filter(tenant=tenant, user_id=user).exists():
            raise Missing("member")
        if api_key is not None and not ApiKey.objects.filter(tenant=tenant, pk=api_key).exists():
            raise Missing("key")
        whose: dict[str, Any] = {"kind": kind, "user_id": user, "api_key_id": api_key}
        row, _created = RateLimit.objects.update_or_create(
            tenant=tenant, **whose, defaults={"per_minute": per_minute, "burst": max(per_minute // 6, 1)}
        )
        audit_record(tenant=tenant, actor=actor, action="rate_limit.set", object=row, data=_facts(row))
    return row


@transaction.atomic
def rate_limit_remove(*, tenant: Tenant, actor: Actor, pk: int) -> None:
    """Remove a limit; the operator's holds again. Raises Denied, Missing."""
    actor.require("tenant.manage")
    with tenant_scope(tenant.pk):
        row = RateLimit.objects.select_for_update(of=("self",)).filter(tenant=tenant, pk=pk).first()
        if row is None:
            raise Missing("limit")
        audit_record(tenant=tenant, actor=actor, action="rate_limit.remove", object=row, data=_facts(row))
        row.delete()


def _facts(row: RateLimit) -> dict[str, Any]:
    return {"kind": row.kind, "member": row.user_id, "key": row.api_key_id, "per_minute": row.per_minute}


def _invalid(field: str, message: str) -> Invalid:
    return Invalid("limit_invalid", message, data={"fields": {field: [message]}, "field": field})
