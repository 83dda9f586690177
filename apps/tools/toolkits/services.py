"""Toolkits: named sets of tools, granted as one, and brought along by collections."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from django.db import transaction

from apps.collections.models import Collection
from apps.tools.models import CollectionToolkit, Toolkit, ToolkitMember
from basics.errors import Invalid, Missing
from basics.texts import gettext as _
from tenancy.actors import Actor
from tenancy.models import Tenant
from tenancy.scope import tenant_scope
from tenancy.services import audit_record

MAX_MEMBERS = 500


def toolkit_state(kit: Toolkit) -> dict[str, Any]:
    """Return what a toolkit is, as ``toolkit_set`` takes it; its tools by name."""
    tools = sorted(member.tool_name for member in kit.members.all())
    return {"name": kit.name, "description": kit.description, "tools": tools}


@transaction.atomic
def toolkit_set(
    *, tenant: Tenant, actor: Actor, name: str, tools: Sequence[str], description: str = ""
) -> Toolkit:
    """Create toolkit, or replace what the one of that name contains.

    Args:
        tools: names; tools that are not there at the moment may be named too.

    Raises:
        Denied: without the right ``tool.manage``.
        Invalid: the name, or one of the tools', cannot be used.
    """
    actor.require("tool.manage")
    name = " ".join(name.split())
    if not 1 <= len(name) <= 80:
        raise Invalid("invalid", _("A toolkit needs a name of 1 to 80 characters."), data={"field": "name"})
    names = list(dict.fromkeys(tool.strip() for tool in tools))
    if len(names) > MAX_MEMBERS or any(not 1 <= len(n) <= 64 for n in names):
        raise Invalid(
            "invalid",
            _("A toolkit has at most %(most)s tools, whose names have 1 to 64 characters.")
            % {"most": MAX_MEMBERS},
            data={"field": "tools"},
        )
    with tenant_scope(tenant.pk):
        found = Toolkit.objects.select_for_update(of=("self",)).filter(tenant=tenant, name=name).first()
        before = toolkit_state(found) if found else None
        kit: Toolkit
        kit, is_new = Toolkit.objects.update_or_create(
            tenant=tenant, name=name, defaults={"description": description.strip()}
        )
        kit.members.exclude(tool_name__in=names).delete()
        ToolkitMember.objects.bulk_create(
            [ToolkitMember(tenant=tenant, toolkit=kit, tool_name=n) for n in names], ignore_conflicts=True
        )
        audit_record(
            tenant=tenant,
            actor=actor,
            action="toolkit.set",
            object=kit,
            data={"is_new": is_new, "before": before, "after": toolkit_state(kit)},
        )
    return kit


@transaction.atomic
def toolkit_delete(*, tenant: Tenant, actor: Actor, pk: int) -> None:
    """Delete a toolkit, unless grants still use it.

    Raises:
        Denied, Missing: without the right; there is none.
        Invalid: a grant that denies would go with it, and open what it closes.
    """
    actor.require("tool.manage")
    with tenant_scope(tenant.pk):
        kit = Toolkit.objects.select_for_update(of=("self",)).filter(tenant=tenant, pk=pk).first()
        if kit is None:
            raise Missing("toolkit")
        if kit.grants.exists():
            raise Invalid("toolkit_used", _("This toolkit is used in rules. Delete those rules first."))
        audit_record(
            tenant=tenant,
            actor=actor,
            action="toolkit.delete",
            object=kit,
            data={"before": toolkit_state(kit), "after": None},
        )
        kit.delete()


@transaction.atomic
def collection_toolkit_set(
    *, tenant: Tenant, actor: Actor, collection: int, toolkit: int | None
) -> Toolkit | None:
    """Say which toolkit conversations over a collection are offered besides; None for none.

    It grants nothing: a call is held against the grants as ever. An assistant that is limited to a toolkit of its own may
    use these tools too, unless it was given none at all.

    Raises:
        Denied: without the right ``tool.manage``.
        Missing: no such collection.
        Invalid: no such toolkit.
    """
    actor.require("tool.manage")
    with tenant_scope(tenant.pk):
        rows = Collection.objects.visible_to(actor).select_for_update(no_key=True, of=("self",))
        row = rows.filter(pk=collection).first()
        if row is None:
            raise Missing("collection")
        kit: Toolkit | None = None
        if toolkit is not None:
            kit = Toolkit.objects.filter(tenant=tenant, pk=toolkit).first()
            if kit is None:
                raise Invalid(
                    "invalid",
                    _("This toolkit no longer exists. Choose another one."),
                    data={"field": "toolkit"},
                )
        own = CollectionToolkit.objects.filter(tenant=tenant, collection=row)
        before = own.values_list("toolkit__name", flat=True).first()
        if kit is None:
            own.delete()
        else:
            own.update_or_create(
                defaults={"toolkit": kit},
                create_defaults={"tenant": tenant, "collection": row, "toolkit": kit},
            )
        after = None if kit is None else kit.name
        if before != after:
            audit_record(
                tenant=tenant,
                actor=actor,
                action="collection.toolkit_set",
                object=row,
                data={"before": before, "after": after},
            )
    return kit
