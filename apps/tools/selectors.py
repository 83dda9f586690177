"""Reads of grants and entries, and the guard that a run or request is given."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping

from django.db.models import Q, QuerySet
from django.utils import timezone

from apps.collections.models import Collection as CollectionRow
from apps.tools.bundles import bundle_list
from apps.tools.guard import EntryFacts, Guard, ToolChange
from apps.tools.limits import limits_load
from apps.tools.models import CollectionToolkit, ToolEntry, ToolGrant, Toolkit, ToolkitMember
from apps.tools.policy import Grant, Policy, Subject, policy_compile
from apps.tools.tenant_tools import tenant_bundles
from basics.errors import Missing
from tenancy.actors import Actor
from tenancy.selectors import role_of
from toolloop.deferred import Approval

_FIELDS = (
    "id", "effect", "target_kind", "target", "toolkit_id", "calls", "subject_kind", "subject", "collection_id",
    "arguments", "expires_at", "note", "approver_kind", "approver", "approval_hours", "needs_reason",
)  # fmt: skip


def subject_of(actor: Actor) -> Subject:
    """Return whom grants know an actor as; a key has its person's role too, and the grants of both."""
    return Subject(role=role_of(actor), user_id=actor.user_id, api_key_id=actor.api_key_id)


def policy_load(*, actor: Actor, subject: Subject | None = None) -> Policy:
    """Return the workspace's grants, ready to decide; at most two queries.

    Args:
        subject: leave out grants that are about others.
    """
    rows = ToolGrant.objects.visible_to(actor)
    if subject is not None:
        about = Q(subject_kind="everyone") | Q(subject_kind="role", subject=subject.role)
        about |= Q(subject_kind="member", subject=str(subject.user_id))
        about |= Q(subject_kind="api_key", subject=str(subject.api_key_id))
        rows = rows.filter(about)
    grants = list(rows.order_by("pk").values_list(*_FIELDS))
    kits: dict[int, set[str]] = {}
    if used := {row[4] for row in grants if row[4] is not None}:
        members = ToolkitMember.objects.visible_to(actor).filter(toolkit_id__in=used)
        for kit, name in members.values_list("toolkit_id", "tool_name"):
            kits.setdefault(kit, set()).add(name)
    return policy_compile(
        (
            Grant(
                pk, effect, kind, target, frozenset(kits.get(kit, ())), calls, who_kind, who,
                collection, arguments, expires_at, note, Approval(*approval),
            )
            for pk, effect, kind, target, kit, calls, who_kind, who, collection, arguments, expires_at, note, *approval
            in grants
        ),
        now=timezone.now(),
    )  # fmt: skip


def guard_for(
    *,
    actor: Actor,
    scope: Mapping[int, str],
    tools: Collection[str] | None = None,
    off: Collection[str] = (),
    change: ToolChange | None = None,
) -> Guard:
    """Return the policy as it concerns one caller; at most seven queries, however many tools and grants there are.

    Args:
        scope: collections that the calls are about: id -> name.
        tools: names of the only tools to choose from; None for all.
        off: names of tools not to choose from.
        change: see ``Guard``.
    """
    subject = subject_of(actor)
    entries = ToolEntry.objects.visible_to(actor)
    return Guard(
        policy_load(actor=actor, subject=subject),
        subject,
        scope=scope,
        entries={
            name: EntryFacts(is_enabled, description, timeout_s)
            for name, is_enabled, description, timeout_s in entries.values_list(
                "name", "is_enabled", "description", "timeout_s"
            )
        },
        can=actor.can,
        clock=timezone.now,
        bundles=(*bundle_list(), *tenant_bundles(actor=actor)),
        admit=limits_load(actor=actor, subject=subject).rule,
        tools=tools,
        off=off,
        change=change,
    )


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
