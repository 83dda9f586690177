"""Limits of tool calls: set and removed."""

from __future__ import annotations

from typing import Any

from django.db import transaction

from apps.tools.models import ToolLimit
from basics.errors import Invalid, Missing
from basics.texts import gettext as _
from basics.texts import number_told
from tenancy.actors import Actor
from tenancy.models import ApiKey, Membership, Tenant
from tenancy.scope import tenant_scope
from tenancy.services import audit_record

MAX_LIMITS = 500
MAX_CALLS = 1_000_000_000


@transaction.atomic
def tool_limit_set(
    *,
    tenant: Tenant,
    actor: Actor,
    kind: str,
    period: str,
    calls: int,
    target_kind: str = "all",
    target: str = "",
    user: int | None = None,
    api_key: int | None = None,
) -> ToolLimit:
    """Say how many calls of something a caller may make in a period, in place of what was said about it before.

    Args:
        kind: tenant, member or key: whose calls are counted.
        period: minute, day or month.
        target_kind: all, group or tool; ``target`` names it.
        user, api_key: one member (by the id of the person) or key; None for each of them.

    Raises:
        Denied: without the right ``tool.manage``.
        Invalid: a field cannot be used; ``data["fields"]`` says which.
        Missing: no such member or key.
    """
    actor.require("tool.manage")
    for field, value, kinds in (
        ("kind", kind, ToolLimit.Kind.values),
        ("period", period, ToolLimit.Period.values),
        ("target_kind", target_kind, ToolLimit.Target.values),
    ):
        if value not in kinds:
            raise _invalid(field, _("Use one of %(known)s.") % {"known": ", ".join(kinds)})
    if not 1 <= calls <= MAX_CALLS:
        raise _invalid("calls", _("Give 1 to %(most)s calls.") % {"most": number_told(MAX_CALLS)})
    target = target.strip()
    if (target_kind == ToolLimit.Target.ALL) != (not target) or len(target) > 120:
        raise _invalid("target", _("Name the tool or group; all tools need no name."))
    if (user is not None and kind != "member") or (api_key is not None and kind != "key"):
        raise _invalid(
            "kind",
            _("Name a member for a member limit or a key for a key limit; a workspace limit needs neither."),
        )
    with tenant_scope(tenant.pk):
        if user is not None and not Membership.objects.filter(tenant=tenant, user_id=user).exists():
            raise Missing("member")
        if api_key is not None and not ApiKey.objects.filter(tenant=tenant, pk=api_key).exists():
            raise Missing("key")
        about = {
            "tenant": tenant,
            "kind": kind,
            "user_id": user,
            "api_key_id": api_key,
            "target_kind": target_kind,
            "target": target,
            "period": period,
        }
        known = ToolLimit.objects.filter(**{k: v for k, v in about.items() if v is not None})
        known = known.filter(**{f"{k}__isnull": True for k, v in about.items() if v is None})
        if not known.exists() and ToolLimit.objects.filter(tenant=tenant).count() >= MAX_LIMITS:
            raise _invalid(
                "calls",
                _("This workspace already has %(most)s limits. Remove one first.") % {"most": MAX_LIMITS},
            )
        row, _created = known.update_or_create(
            defaults={"calls": calls}, create_defaults=about | {"calls": calls}
        )
        audit_record(tenant=tenant, actor=actor, action="tool_limit.set", object=row, data=_facts(row))
    return row


@transaction.atomic
def tool_limit_remove(*, tenant: Tenant, actor: Actor, pk: int) -> None:
    """Remove a limit with what was counted. Raises Denied, Missing."""
    actor.require("tool.manage")
    with tenant_scope(tenant.pk):
        row = ToolLimit.objects.select_for_update(of=("self",)).filter(tenant=tenant, pk=pk).first()
        if row is None:
            raise Missing("limit")
        audit_record(tenant=tenant, actor=actor, action="tool_limit.remove", object=row, data=_facts(row))
        row.delete()


def _facts(row: ToolLimit) -> dict[str, Any]:
    return {
        "kind": row.kind,
        "member": row.user_id,
        "key": row.api_key_id,
        "target": {row.target_kind: row.target},
        "period": row.period,
        "calls": row.calls,
    }


def _invalid(field: str, message: str) -> Invalid:
    return Invalid("limit_invalid", message, data={"fields": {field: [message]}, "field": field})
