"""Reads of a workspace's own tools: sources, versions, credentials without their secrets, contract tests."""

from __future__ import annotations

from django.db.models import Count, Q, QuerySet

from apps.tools.models import ContractTest, ToolCredential, ToolSource, ToolVersion
from apps.tools.sources.version_diff import VersionDiff, version_diff
from basics.errors import Missing
from tenancy.actors import Actor


def source_list(*, actor: Actor) -> QuerySet[ToolSource]:
    """Return the workspace's sources by name, without their documents; each with its counts.

    ``current_count``, ``waiting_count`` and ``gone_count`` are numbers of tools. Raises Denied.
    """
    actor.require("tool.manage")
    rows: QuerySet[ToolSource] = ToolSource.objects.visible_to(actor)
    return (
        rows.defer("document")
        .annotate(
            current_count=Count("versions", filter=Q(versions__state="current")),
            waiting_count=Count("versions", filter=Q(versions__state="waiting")),
            gone_count=Count("versions", filter=Q(versions__state="current", versions__is_gone=True)),
        )
        .order_by("name")
    )


def source_get(*, actor: Actor, pk: int) -> ToolSource:
    """Return a source. Raises Denied, Missing."""
    found = source_list(actor=actor).filter(pk=pk).first()
    if found is None:
        raise Missing("source")
    return found


def version_list(
    *, actor: Actor, source: int | None = None, tool_name: str = "", state: str = ""
) -> QuerySet[ToolVersion]:
    """Return versions with their sources, by tool, the newest of each first.

    Args:
        source, tool_name, state: only those of one source, tool or state.

    Raises:
        Denied: without the right ``tool.manage``.
    """
    actor.require("tool.manage")
    rows: QuerySet[ToolVersion] = ToolVersion.objects.visible_to(actor)
    if source is not None:
        rows = rows.filter(source_id=source)
    if tool_name:
        rows = rows.filter(tool_name=tool_name)
    if state:
        rows = rows.filter(state=state)
    return (
        rows.select_related("source", "decided_by").defer("source__document").order_by("tool_name", "-number")
    )


def version_get(*, actor: Actor, pk: int, source: int | None = None) -> ToolVersion:
    """Return a version with its source, which must be this one if one is given. Raises Denied, Missing."""
    found = version_list(actor=actor, source=source).filter(pk=pk).first()
    if found is None:
        raise Missing("version")
    return found


def version_changes(*, actor: Actor, pk: int) -> VersionDiff:
    """Return how a version differs from the current one of its tool, or for the current one from the one before.

    Raises:
        Denied, Missing: without the right ``tool.manage``; there is none.
    """
    new = version_get(actor=actor, pk=pk)
    others = version_list(actor=actor, tool_name=new.tool_name).exclude(pk=new.pk)
    old = others.filter(state="current").first() or others.filter(number__lt=new.number).first()
    return version_diff(old, new)


def credential_list(*, actor: Actor, source: int | None = None) -> QuerySet[ToolCredential]:
    """Return credentials without their secrets, in the order they were made. Raises Denied."""
    actor.require("tool.manage")
    rows: QuerySet[ToolCredential] = ToolCredential.objects.visible_to(actor)
    if source is not None:
        rows = rows.filter(source_id=source)
    return rows.defer("secret_encrypted").order_by("pk")


def contract_test_list(
    *, actor: Actor, source: int | None = None, tool_name: str = ""
) -> QuerySet[ContractTest]:
    """Return contract tests by tool and name. Raises Denied."""
    actor.require("tool.manage")
    rows: QuerySet[ContractTest] = ContractTest.objects.visible_to(actor)
    if source is not None:
        rows = rows.filter(source_id=source)
    if tool_name:
        rows = rows.filter(tool_name=tool_name)
    return rows.order_by("tool_name", "name")


def contract_test_get(*, actor: Actor, pk: int) -> ContractTest:
    """Return a contract test. Raises Denied, Missing."""
    found = contract_test_list(actor=actor).filter(pk=pk).first()
    if found is None:
        raise Missing("contract test")
    return found
