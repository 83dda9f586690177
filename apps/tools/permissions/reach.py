"""Rules whose target is no tool, or that are about nobody: told when they are made, and later when what they named has gone."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from django.utils import timezone
from django.utils.translation import gettext_lazy

from apps.tools.catalog.selectors import catalog_bundles
from apps.tools.models import ToolGrant, ToolkitMember
from apps.tools.permissions.subjects import is_live
from apps.tools.policy.engine import ToolFacts, glob_matches
from apps.tools.toolset.bundles import Bundle
from apps.tools.toolset.model_calls import CODE_MODE, PROGRAM_TOOL
from tenancy.actors import Actor
from tenancy.models import ApiKey, Membership, Role

_WHAT = {
    ToolGrant.Target.TOOL: gettext_lazy(
        "This rule currently matches no calls: no tool in this workspace is named “%(name)s”."
    ),
    ToolGrant.Target.GROUP: gettext_lazy(
        "This rule currently matches no calls: no tool in this workspace is in the group “%(name)s”."
    ),
    ToolGrant.Target.PATTERN: gettext_lazy(
        "This rule currently matches no calls: no tool name in this workspace matches “%(name)s”."
    ),
    ToolGrant.Target.TOOLKIT: gettext_lazy(
        "This rule currently matches no calls: no tool in this workspace is in the toolkit “%(name)s”."
    ),
}


_NOBODY = {
    "role": gettext_lazy("This rule currently applies to no one: this workspace has no role “%(name)s”."),
    "member": gettext_lazy(
        "This rule currently applies to no one: the person has left this workspace or is deactivated."
    ),
    "api_key": gettext_lazy(
        "This rule currently applies to no one: the key was revoked, has expired or was deleted."
    ),
}


def grant_warnings(*, actor: Actor, grants: Iterable[ToolGrant]) -> dict[int, str]:
    """Return by id what to tell about grants that match no tool now, or whose role, member or key is gone; others are left out.

    They are kept, since tools come and go: a source that is switched on again finds its rules as they were, and so does a
    person who comes back. A constant number of queries.
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

    gone = _gone(actor, rows)
    told = {
        row.pk: " ".join(filter(None, ("" if matches(row) else _told(row), gone.get(row.pk, ""))))
        for row in rows
    }
    return {pk: text for pk, text in told.items() if text}


def grant_warning(*, actor: Actor, grant: ToolGrant) -> str:
    """Return what to tell about one grant, "" where there is nothing to tell."""
    return grant_warnings(actor=actor, grants=[grant]).get(grant.pk, "")


def _gone(actor: Actor, rows: Iterable[ToolGrant]) -> dict[int, str]:
    """Return what to tell about grants to a role, member or key that nobody is or has any more."""
    named: dict[str, dict[int, str]] = {}
    for row in rows:
        named.setdefault(row.subject_kind, {})[row.pk] = row.subject
    people, keys = named.get("member", {}), named.get("api_key", {})
    there = {"role": set(Role.values), "everyone": {""}}
    if people:
        members = Membership.objects.visible_to(actor).filter(user__is_active=True)
        found = members.filter(user_id__in=_ids(people)).values_list("user_id", flat=True)
        there["member"] = {str(pk) for pk in found}
    if keys:
        of_grants = ApiKey.objects.visible_to(actor).filter(pk__in=_ids(keys))
        now = timezone.now()
        there["api_key"] = {str(key.pk) for key in of_grants if is_live(key, now)}
    return {
        pk: str(_NOBODY[kind]) % {"name": subject}
        for kind, subjects in named.items()
        for pk, subject in subjects.items()
        if subject not in there[kind]
    }


def _ids(subjects: Mapping[int, str]) -> list[int]:
    return [int(text) for text in subjects.values() if text.isdecimal()]


def _facts(bundles: Iterable[Bundle]) -> list[ToolFacts]:
    return [bundle.facts(tool) for bundle in bundles for tool in bundle.tools()]


def _told(row: ToolGrant) -> str:
    kit = row.toolkit
    name = row.target if kit is None else kit.name
    return str(_WHAT[ToolGrant.Target(row.target_kind)]) % {"name": name}
