"""Bring back what an entry, a toolkit, a rule or a source was at an earlier time, by the services that change them."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from django.db import transaction

from apps.tools.catalog.services import entry_set, entry_state
from apps.tools.exchange.history import ObjectChange, change_get, successor
from apps.tools.models import ToolEntry, ToolGrant, Toolkit, ToolSource
from apps.tools.permissions.services import grant_create, grant_delete, grant_kept
from apps.tools.sources.services import source_create, source_state, source_update
from apps.tools.toolkits.services import toolkit_set, toolkit_state
from basics.errors import Conflict
from basics.texts import gettext as _
from tenancy.actors import Actor
from tenancy.models import Tenant
from tenancy.scope import tenant_scope
from tenancy.services import audit_record


@transaction.atomic
def state_restore(*, tenant: Tenant, actor: Actor, event: int) -> ObjectChange:
    """Bring back the state that a change left, or that a removal ended; the present state is replaced.

    Args:
        event: id of the audit event.

    Raises:
        Denied, Missing: without the right ``tool.manage``; there is no such change, or what the state names is gone.
        Invalid: the state is not acceptable any more; the message says why.
        Conflict: it is the present state, or the event keeps none.
    """
    with tenant_scope(tenant.pk):
        change = change_get(actor=actor, event=event)
        if change.state is None:
            raise Conflict("state_not_kept", _("The audit log has no stored state for this change."))
        if state_now(actor=actor, change=change) == change.state:
            raise Conflict("state_present", _("This is the current state, so there is nothing to restore."))
        _RESTORE[change.kind](tenant, actor, change, dict(change.state))
        audit_record(
            tenant=tenant,
            actor=actor,
            action="tool_history.restore",
            object_name=change.object_name,
            data={"kind": change.kind, "object": change.object_id, "event": event},
        )
    return change


def state_now(*, actor: Actor, change: ObjectChange) -> Mapping[str, Any] | None:
    """Return the present state of what a change was about, None when it is gone."""
    if change.kind == "tools.toolentry":
        entry = ToolEntry.objects.visible_to(actor).filter(name=change.object_name).first()
        return None if entry is None else entry_state(entry)
    if change.kind == "tools.toolkit":
        kit = Toolkit.objects.visible_to(actor).filter(name=change.object_name).first()
        return None if kit is None else toolkit_state(kit)
    if change.kind == "tools.toolsource":
        source = ToolSource.objects.visible_to(actor).filter(name=change.object_name).first()
        return None if source is None else source_state(source)
    pk = successor(actor=actor, grant=change.object_id)
    grant = ToolGrant.objects.visible_to(actor).filter(pk=pk).first()
    return None if grant is None else grant_kept(grant)


def _entry(tenant: Tenant, actor: Actor, change: ObjectChange, state: dict[str, Any]) -> None:
    entry_set(tenant=tenant, actor=actor, **state)


def _toolkit(tenant: Tenant, actor: Actor, change: ObjectChange, state: dict[str, Any]) -> None:
    toolkit_set(tenant=tenant, actor=actor, **state)


def _grant(tenant: Tenant, actor: Actor, change: ObjectChange, state: dict[str, Any]) -> None:
    if state["expires_at"]:
        state["expires_at"] = datetime.fromisoformat(state["expires_at"])
    old = int(successor(actor=actor, grant=change.object_id))
    if ToolGrant.objects.visible_to(actor).filter(pk=old).exists():
        grant_delete(tenant=tenant, actor=actor, pk=old)
    grant_create(tenant=tenant, actor=actor, replaces=old, **state)


def _source(tenant: Tenant, actor: Actor, change: ObjectChange, state: dict[str, Any]) -> None:
    row = ToolSource.objects.visible_to(actor).filter(name=state["name"]).first()
    if row is None:
        source_create(tenant=tenant, actor=actor, **state)
        return
    if row.kind != state["kind"]:
        raise Conflict("source_other_kind", _("Another kind of source now has this name. Remove it first."))
    stated = {field: value for field, value in state.items() if field not in ("kind", "name")}
    source_update(tenant=tenant, actor=actor, pk=row.pk, **stated)


_RESTORE = {
    "tools.toolentry": _entry,
    "tools.toolkit": _toolkit,
    "tools.toolgrant": _grant,
    "tools.toolsource": _source,
}
