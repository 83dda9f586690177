"""Tools that come with the code: each app registers its bundle when it is loaded."""

from __future__ import annotations

import functools
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeVar

from apps.tools.policy.engine import ToolFacts
from runs.models import Run
from tenancy.models import Tenant
from toolloop.tools import Tool
from toolloop.tools.builtins import builtin_tools

BUILTIN = "builtin"
COLLECTIONS = "collections"
T = TypeVar("T")
ToolChange = Callable[[Tool], Tool | None]


class CallGuard(Protocol):
    """What a running tool may ask of the guard that let it run; see ``apps.tools.toolset.guard.Guard``."""

    @property
    def bundles(self) -> tuple[Bundle, ...]: ...
    @property
    def change(self) -> ToolChange | None: ...
    @property
    def off(self) -> Collection[str]: ...
    def collections(self, rows: Iterable[T], pk: Callable[[T], int]) -> list[T]: ...


@dataclass(frozen=True, slots=True)
class CallScope:
    """What a call outside of a conversation works on; ``in_db`` runs a function where the database may be used.

    ``only`` are the ids of the collections it is about; None means all that the caller may read.
    """

    tenant: Tenant
    run: Run
    in_db: Callable[..., Awaitable[Any]]
    guard: CallGuard
    only: frozenset[int] | None = None


def _no_context(scope: CallScope) -> Mapping[str, Any]:
    return {}


@dataclass(frozen=True, slots=True)
class Bundle:
    """Tools of one app.

    Attributes:
        name: the group its tools are granted by; a tool's own group stands below it.
        tools: gives them; called when they are asked for, once the apps are loaded.
        context: what they expect in ``ToolContext.data`` when they are called outside of a conversation.
        filtering: names of tools that leave out by themselves the collections they may not touch
            (``Guard.collections``). Any other tool is refused where one collection in its scope refuses it.
        changes_need: the right without which a caller is not offered the tools that change data; the services
            they call ask for it again.
    """

    name: str
    tools: Callable[[], Iterable[Tool]]
    context: Callable[[CallScope], Mapping[str, Any]] = _no_context
    filtering: frozenset[str] = field(default_factory=frozenset)
    changes_need: str = ""

    def facts(self, tool: Tool) -> ToolFacts:
        """Return what grants may ask about one of its tools."""
        inside = tool.group == self.name or tool.group.startswith(f"{self.name}.")
        group = tool.group if inside else f"{self.name}.{tool.group}".rstrip(".")
        return ToolFacts(tool.name, group, tool.side_effects)


# Made once: reading their signatures took a quarter of what a run's toolset costs.
_bundles: dict[str, Bundle] = {BUILTIN: Bundle(BUILTIN, functools.cache(builtin_tools))}


def bundle_register(bundle: Bundle) -> None:
    """Add an app's tools; call it in ``AppConfig.ready``.

    Raises:
        ValueError: another bundle has the name.
    """
    if _bundles.setdefault(bundle.name, bundle) != bundle:
        raise ValueError(f"two bundles of tools are named {bundle.name!r}: rename one")


def bundle_list() -> tuple[Bundle, ...]:
    """Return the registered bundles, the built-in one first."""
    return tuple(_bundles.values())
