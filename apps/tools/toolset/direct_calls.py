"""The tools that one caller may use outside of a conversation, and what they work with."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any

from apps.collections.models import Collection
from apps.tools.toolset.bundles import CallGuard, CallScope
from apps.tools.toolset.guard import Guard
from apps.tools.toolset.selectors import guard_for
from basics.errors import Missing
from runs.models import Run
from tenancy.actors import Actor
from tenancy.models import Tenant
from toolloop.tools import Toolset


def offer_guard(
    *, actor: Actor, collections: Sequence[int] | None, tools: frozenset[str] | None = None
) -> Guard:
    """Return the guard of calls about some collections, None for all that the actor may read.

    Args:
        tools: names of the only tools to choose from; None for all.

    Raises:
        Missing: a collection is not there for the actor.
    """
    scope: dict[int, str] = {}
    if actor.can("collection.read"):
        rows = Collection.objects.visible_to(actor)
        if collections is not None:
            rows = rows.filter(pk__in=collections)
        scope = dict(rows.order_by("pk").values_list("pk", "name"))
    if collections is not None and set(collections) - set(scope):
        raise Missing("collection")
    return guard_for(actor=actor, scope=scope, tools=tools)


def offer_tools(guard: Guard, *, tells_withheld: bool = True) -> Toolset:
    """Return every tool, of the code and of the workspace, that some call of the guard's caller could be allowed.

    Args:
        tells_withheld: a call of another tool that there is learns that it is not permitted, and not that it is unknown.
    """
    return Toolset(guard.tools(), withheld=guard.withheld if tells_withheld else None)


def offer_context(
    *,
    tenant: Tenant,
    run: Run,
    guard: CallGuard,
    collections: Sequence[int] | None,
    in_db: Callable[..., Awaitable[Any]],
) -> Mapping[str, Any]:
    """Return what those tools expect in ``ToolContext.data``."""
    only = None if collections is None else frozenset(collections)
    scope = CallScope(tenant, run, in_db, guard, only)
    return {k: v for bundle in guard.bundles for k, v in bundle.context(scope).items()}
