"""What a workspace says about a tool."""

from __future__ import annotations

from typing import Any

from django.db import transaction

from apps.tools.models import ToolEntry
from basics.errors import Invalid
from tenancy.actors import Actor
from tenancy.models import Tenant
from tenancy.scope import tenant_scope
from tenancy.services import audit_record

MAX_TIMEOUT_S = 600.0
_TEXTS = {"title": 120, "description": 8_000, "category": 60, "cost_hint": 60}
_FIELDS = frozenset({*_TEXTS, "tags", "is_enabled", "timeout_s"})


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
    unknown = sorted(set(changes) - _FIELDS)
    if unknown:
        raise TypeError(f"entry_set() takes no {unknown[0]!r}")
    if not 1 <= len(name) <= 64:
        raise _invalid("name", "A tool's name has 1 to 64 characters.")
    for field, limit in _TEXTS.items():
        if len(changes.get(field, "")) > limit:
            raise _invalid(field, f"This has at most {limit:,} characters.")
    timeout = changes.get("timeout_s")
    if timeout is not None and not 0 < timeout <= MAX_TIMEOUT_S:
        raise _invalid("timeout_s", f"Give more than 0 and at most {MAX_TIMEOUT_S:g} seconds.")
    tags = changes.get("tags", [])
    if not isinstance(tags, list) or len(tags) > 20 or any(not isinstance(t, str) or len(t) > 40 for t in tags):  # fmt: skip
        raise _invalid("tags", "Tags are a list of at most 20 texts of 40 characters.")
    with tenant_scope(tenant.pk):
        row: ToolEntry
        row, is_new = ToolEntry.objects.select_for_update(of=("self",)).update_or_create(
            tenant=tenant, name=name, defaults=changes
        )
        audit_record(
            tenant=tenant, actor=actor, action="tool_entry.set", object=row, object_name=name,
            data={"is_new": is_new, "fields": sorted(changes)},
        )  # fmt: skip
    return row


def _invalid(field: str, message: str) -> Invalid:
    return Invalid("invalid", message, data={"field": field})
