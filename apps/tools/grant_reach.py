"""Rules whose target is no tool: told when they are made, and later when what they named has gone."""

from __future__ import annotations

from collections.abc import Iterable

from apps.tools.bundles import Bundle
from apps.tools.catalog import catalog_bundles
from apps.tools.models import ToolGrant, ToolkitMember
from apps.tools.policy import ToolFacts, glob_matches
from apps.tools.run_tools import CODE_MODE, PROGRAM_TOOL
from tenancy.actors import Actor

_WHAT = {
    ToolGrant.Target.TOOL: "no tool of this workspace is named “{0}”",
    ToolGrant.Target.GROUP: "no tool of this workspace is in the group “{0}”",
    ToolGrant.Target.PATTERN: "no tool of this workspace has a name like “{0}”",
    ToolGrant.Target.TOOLKIT: "no tool of this workspace is in the toolkit “{0}”",
}


def grant_warnings(*, actor: Actor, grants: Iterable[ToolGrant]) -> dict[int, str]:
    """Return by id what to tell about grants that match no tool now; those that match one are left out.

    They are kept, since tools come and go: a source that is switched on again finds its rules as they were. A constant
    number of queries.
    """
    rows = list(grants)
    if not rows:
        return {}
    facts = [ToolFacts(PROGRAM_TOOL, CODE_MODE), *_facts(catalog_bundles(actor=actor))]
    names = {fact.name for fact in facts}
    groups = {fact.group for fact in facts}
    kits: dict[int, set[str]] = {}
    wanted = {row.toolkit_id for row in rows if row.toolkit_id is not None}
    members = ToolkitMember.objects.visible_to(actor).filter(toolkit__in=wanted)
    for kit, name in members.values_list("toolkit_id", "tool_name"):
        kits.setdefault(kit, set()).add(name)

    def matches(row: ToolGrant) -> bool:
        if row.target_kind == ToolGrant.Target.TOOL:
            return row.target in names
        if row.target_kind == ToolGrant.Target.GROUP:
            return any(f"{group}.".startswith(f"{row.target}.") for group in groups)
        if row.target_kind == ToolGrant.Target.PATTERN:
            return any(glob_matches(row.target, name) for name in names)
        return bool(kits.get(row.toolkit_id or 0, set()) & names)

    return {row.pk: _told(row) for row in rows if not matches(row)}


def grant_warning(*, actor: Actor, grant: ToolGrant) -> str:
    """Return what to tell about one grant, "" where it matches a tool."""
    return grant_warnings(actor=actor, grants=[grant]).get(grant.pk, "")


def _facts(bundles: Iterable[Bundle]) -> list[ToolFacts]:
    return [bundle.facts(tool) for bundle in bundles for tool in bundle.tools()]


def _told(row: ToolGrant) -> str:
    kit = row.toolkit
    name = row.target if kit is None else kit.name
    what = _WHAT[ToolGrant.Target(row.target_kind)].format(name)
    return f"This rule matches nothing now: {what}."
