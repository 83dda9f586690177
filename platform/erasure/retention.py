"""All retention rules of a workspace in one place, with what each would remove now: told by the rooms that have them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from erasure.holds import hold_of
from erasure.models import LegalHold
from tenancy.actors import Actor
from tenancy.models import Tenant
from tenancy.scope import tenant_scope


@dataclass(frozen=True, slots=True)
class Rule:
    """One rule.

    Attributes:
        name: what it is about, in the words of the portal.
        days: after how many days it removes something, 0 for never.
        is_own: the workspace chose it; else the server's default holds.
        due: how many it would remove now.
        what: what is removed, in a few words.
    """

    name: str
    days: int
    is_own: bool
    due: int
    what: str


@dataclass(frozen=True, slots=True)
class Overview:
    """All rules; while there is a hold, none removes anything."""

    rules: list[Rule]
    hold: LegalHold | None


_told: list[Callable[[Tenant], Rule]] = []


def retention_told_by(rule: Callable[[Tenant], Rule]) -> None:
    """Have a room tell its rule, in the workspace's scope; at start-up."""
    if rule not in _told:
        _told.append(rule)


def retention_overview(*, tenant: Tenant, actor: Actor) -> Overview:
    """Return all rules of a workspace and what they would remove now; nothing is changed.

    Raises:
        Denied: without the right ``audit.read``.
    """
    actor.require("audit.read")
    with tenant_scope(tenant.pk):
        return Overview([tell(tenant) for tell in _told], hold_of(tenant.pk))
