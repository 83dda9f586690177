"""What a workspace says about a tool. The audit trail keeps what was stated before and after: the history is read from it."""

from __future__ import annotations

from typing import Any

from django.db import transaction

from apps.tools.models import ToolEntry
from apps.tools.toolset.vectors import vectors_refresh
from basics.errors import Invalid, Missing
from basics.texts import gettext as _
from basics.texts import number_told
from tenancy.actors import Actor
from tenancy.models import Tenant
from tenancy.scope import tenant_scope
from tenancy.services import audit_record

MAX_TIMEOUT_S = 600.0
_TEXTS = {"title": 120, "description": 8_000, "category": 60, "cost_hint": 60}
FIELDS = (*_TEXTS, "tags", "is_enabled", "timeout_s")


def entry_state(row: ToolEntry) -> dict[str, Any]:
    """Return what an entry says, as ``entry_set`` takes it."""
    return {"name": row.name} | {field: getattr(row, field) for field in FIELDS}


@transaction.atomic
def entry_set(*, tenant: Tenant, actor: Actor, name: str, **changes: Any) -> ToolEntry:
    """State something about a tool: how it is shown, its limit of time, whether it is switched on.

    Args:
        name: the tool's.
        changes: fields of ``ToolEntry``; those not given stay as they are.

    Raises:
        Denied: without the right ``tool.manage``.
        Invalid: a field cannot be used.
    """
    actor.require("tool.manage")
    unknown = sorted(set(changes) - set(FIELDS))
    if unknown:
        raise TypeError(f"entry_set() takes no {unknown[0]!r}")
    if not 1 <= len(name) <= 64:
        raise _invalid("name", _("A tool's name has 1 to 64 characters."))
    for field, limit in _TEXTS.items():
        if len(changes.get(field, "")) > limit:
            raise _invalid(field, _("Use at most %(most)s characters.") % {"most": number_told(limit)})
    timeout = changes.get("timeout_s")
    if timeout is not None and not 0 < timeout <= MAX_TIMEOUT_S:
        raise _invalid(
            "timeout_s",
            _("Enter more than 0 and at most %(most)s seconds.") % {"most": number_told(MAX_TIMEOUT_S, None)},
        )
    tags = changes.get("tags", [])
    if (
        not isinstance(tags, list)
        or len(tags) > 20
        or any(not isinstance(t, str) or len(t) > 40 for t in tags)
    ):
        raise _invalid("tags", _("Tags must be a list of at most 20 texts of at most 40 characters."))
    with tenant_scope(tenant.pk):
        rows = ToolEntry.objects.select_for_update(of=("self",))
        found = rows.filter(tenant=tenant, name=name).first()
        before = entry_state(found) if found else None
        row: ToolEntry
        row, is_new = rows.update_or_create(tenant=tenant, name=name, defaults=changes)
        audit_record(
            tenant=tenant,
            actor=actor,
            action="tool_entry.set",
            object=row,
            object_name=name,
            data={"is_new": is_new, "fields": sorted(changes), "before": before, "after": entry_state(row)},
        )
        if "description" in changes and (before is None or before["description"] != row.description):
            vectors_refresh(tenant)
    return row


@transaction.atomic
def entry_delete(*, tenant: Tenant, actor: Actor, pk: int) -> None:
    """Take back what is stated about a tool: it is shown and limited as it says of itself, and switched on.

    Raises:
        Denied, Missing: without the right; there is none.
    """
    actor.require("tool.manage")
    with tenant_scope(tenant.pk):
        row = ToolEntry.objects.select_for_update(of=("self",)).filter(tenant=tenant, pk=pk).first()
        if row is None:
            raise Missing("entry")
        audit_record(
            tenant=tenant,
            actor=actor,
            action="tool_entry.delete",
            object=row,
            object_name=row.name,
            data={"before": entry_state(row), "after": None},
        )
        row.delete()


def _invalid(field: str, message: str) -> Invalid:
    return Invalid("invalid", message, data={"field": field})
