"""One cell of the permission matrix: the effect stated for one target and one subject."""

from __future__ import annotations

from django.db import transaction

from apps.tools.models import ToolGrant
from apps.tools.permissions.matrix import cell_grants
from apps.tools.permissions.services import GrantsChange, grants_change
from basics.errors import Invalid
from basics.texts import gettext as _
from tenancy.actors import Actor
from tenancy.models import Tenant
from tenancy.scope import tenant_scope


@transaction.atomic
def cell_set(
    *,
    tenant: Tenant,
    actor: Actor,
    target_kind: str,
    target: str,
    subject_kind: str,
    subject: str = "",
    collection: int | None = None,
    effect: str = "",
) -> GrantsChange:
    """State the effect of a cell in place of what was stated for just this cell; other grants stay and may still win.

    Args:
        target_kind, target, subject_kind, subject, collection: as ``grant_create`` takes them.
        effect: allow, ask or deny; "" leaves it to the other grants.

    Raises:
        Denied, Invalid, Missing: as ``grant_create``.
    """
    actor.require("tool.manage")
    cell = {"target_kind": target_kind, "target": target, "subject_kind": subject_kind, "subject": subject}
    for field, value in cell.items():
        if "\x00" in value:
            text = _("Use plain text.")
            raise Invalid("grant_invalid", text, data={"fields": {field: [text]}})
    with tenant_scope(tenant.pk):
        rows = ToolGrant.objects.select_for_update(of=("self",)).filter(tenant=tenant, **cell)
        own = cell_grants(rows, collection=collection, **cell)
    if [row.effect for row in own] == [effect]:
        return GrantsChange([], [])
    first = own[0].pk if own else None
    stated = {**cell, "collection": collection, "effect": effect, "replaces": first}
    return grants_change(
        tenant=tenant, actor=actor, remove=[row.pk for row in own], add=[stated] if effect else []
    )
