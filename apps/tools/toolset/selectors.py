"""Reads of grants and entries, and the guard that a run or request is given."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping

from django.db.models import QuerySet
from django.utils import timezone

from apps.collections.models import Collection as CollectionRow
from apps.tools.limits.counting import ToolLimits
from apps.tools.models import CollectionToolkit, ToolEntry, ToolGrant, Toolkit, ToolkitMember
from apps.tools.policy.engine import Subject
from apps.tools.toolset.bundles import ToolChange, bundle_list
from apps.tools.toolset.guard import Guard, Rights
from apps.tools.toolset.rights import ReadAlong, ToolRules, caller_and_rules, subject_and_rules
from apps.tools.toolset.tenant_bundles import tenant_bundles
from basics.errors import Missing
from tenancy.actors import Actor
from tenancy.selectors import role_of


def subject_of(actor: Actor) -> Subject:
    """Return whom grants know an actor as; a key has its person's role too, and the grants of both."""
    return Subject(role=role_of(actor), user_id=actor.user_id, api_key_id=actor.api_key_id)


def guard_for(
    *,
    actor: Actor,
    scope: Mapping[int, str],
    tools: Collection[str] | None = None,
    off: Collection[str] = (),
    change: ToolChange | None = None,
    along: ReadAlong | None = None,
) -> Guard:
    """Return the policy as it concerns one caller; at most four queries, however many tools and grants there are.

    Args:
        scope: collections that the calls are about: id -> name.
        tools: names of the only tools to choose from; None for all.
        off: names of tools not to choose from.
        change: see ``Guard``.
        along: what some tools ask for as soon as they run.
    """
    rights, has_sources = _rights(actor)
    return Guard(
        rights,
        again=lambda tool: _rights_again(actor, along if along and tool in along.tools else None),
        scope=scope,
        clock=timezone.now,
        bundles=(*bundle_list(), *(tenant_bundles(actor=actor) if has_sources else ())),
        tools=tools,
        off=off,
        change=change,
    )


def _rights(actor: Actor) -> tuple[Rights, bool]:
    """Return what an actor may do by the rules of now, and whether the workspace has tools of its own."""
    subject, rules = subject_and_rules(actor)
    return _rights_of(actor, subject, rules), rules.has_sources


def _rights_again(actor: Actor, along: ReadAlong | None) -> Rights:
    """Return what an actor that was let in may do by the rules and with the rights of now. Raises Denied."""
    if actor.kind == "system":
        return _rights(actor)[0]
    return _rights_of(*caller_and_rules(actor, along))


def _rights_of(actor: Actor, subject: Subject, rules: ToolRules) -> Rights:
    limits = ToolLimits(actor.tenant_id, subject, rules.limited)
    return Rights(rules.policy, subject, rules.entries, actor.can, limits.rule)


def grant_list(*, actor: Actor) -> QuerySet[ToolGrant]:
    """Return the workspace's grants in the order they were made. Raises Denied."""
    actor.require("tool.manage")
    rows: QuerySet[ToolGrant] = ToolGrant.objects.visible_to(actor)
    return rows.select_related("toolkit", "collection").order_by("pk")


def grant_get(*, actor: Actor, pk: int) -> ToolGrant:
    """Return a grant. Raises Denied, Missing."""
    found = grant_list(actor=actor).filter(pk=pk).first()
    if found is None:
        raise Missing("grant")
    return found


def toolkit_list(*, actor: Actor) -> QuerySet[Toolkit]:
    """Return the workspace's toolkits with their members, by name. Raises Denied."""
    actor.require("tool.manage")
    rows: QuerySet[Toolkit] = Toolkit.objects.visible_to(actor)
    return rows.prefetch_related("members").order_by("name")


def toolkit_choices(*, actor: Actor) -> list[tuple[int, str]]:
    """Return (id, name) of the workspace's toolkits, for whoever may call tools to choose from."""
    actor.require("tool.run")
    return list(Toolkit.objects.visible_to(actor).order_by("name").values_list("pk", "name"))


def collection_toolkit(*, actor: Actor, collection: int) -> Toolkit | None:
    """Return the toolkit of a collection, None where it has none. Raises Denied, Missing."""
    actor.require("collection.read")
    if not CollectionRow.objects.visible_to(actor).filter(pk=collection).exists():
        raise Missing("collection")
    rows = CollectionToolkit.objects.visible_to(actor).select_related("toolkit")
    found = rows.filter(collection_id=collection).first()
    return None if found is None else found.toolkit


def collection_tools(*, tenant_id: int, collections: Iterable[int]) -> frozenset[str]:
    """Return the names of the tools that some collections bring into conversations over them; one query.

    It grants nothing: what the person may not call is offered to nobody.
    """
    members = ToolkitMember.objects.filter(
        tenant_id=tenant_id, toolkit__collections__collection_id__in=list(collections)
    )
    return frozenset(members.values_list("tool_name", flat=True))


def entry_list(*, actor: Actor) -> QuerySet[ToolEntry]:
    """Return what the workspace states about tools, by name. Raises Denied."""
    actor.require("tool.manage")
    rows: QuerySet[ToolEntry] = ToolEntry.objects.visible_to(actor)
    return rows.order_by("name")
