"""Retention rules: how long a workspace keeps things of each kind, what a rule would remove, and what it must leave.

Rooms register their kinds. Preview and removal (``erasure.removal``) read the same rows, ``due_rows``, so that one never
shows what the other doesn't do.
"""

from __future__ import annotations

import datetime
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from django.conf import settings
from django.contrib.humanize.templatetags.humanize import intcomma
from django.db import transaction
from django.db.models import BigIntegerField, Count, Min, Q, QuerySet, Sum, Value
from django.db.models.functions import Cast
from django.utils import timezone

from basics.errors import Invalid
from basics.texts import gettext as _
from erasure.holds import hold_of, removal_lock
from erasure.models import LegalHold, RetentionRule
from tenancy.actors import Actor
from tenancy.models import Tenant
from tenancy.scope import tenant_scope
from tenancy.services import audit_record

if TYPE_CHECKING:
    from django_stubs_ext import StrOrPromise

MOST_DAYS = 3650
Rows = QuerySet[Any, Any]


UNKNOWN_SIZE = Cast(Value(None), BigIntegerField())
"""For ``bytes`` of kinds without files; Postgres can't add up a null without a type."""


def _forever() -> int:
    return 0


@dataclass(frozen=True, slots=True)
class RetentionKind:
    """One kind of thing that has a rule.

    Attributes:
        name: its name in REST and in ``RetentionRule``.
        label: its name on pages.
        what: what is removed, in a few words.
        since: from when the days count, in a few words.
        rows: all rows of all workspaces that a rule could remove one day, with ``since`` (when they last changed) and
            ``bytes`` (None: unknown) annotated.
        column: of the row itself, and never later than ``since``; an index may have it. Empty: there is none.
        remove: removes the rows of a query, inside a transaction, by the room's own way to delete; returns how many.
        default_days: the server's default, 0 for ever.
        longest_days: the operator's limit, 0 for none; a workspace can only choose a shorter time.
        fewest_days: the shortest time that can be chosen.
        step: most things removed in one transaction.
        batch: most things of one workspace removed in one round.
        own: days of all workspaces that have a rule of their own, as one column of a query.
        put: stores a workspace's own days, where the room keeps its rule itself.
    """

    name: str
    label: StrOrPromise
    what: StrOrPromise
    since: StrOrPromise
    rows: Callable[[], Rows]
    column: str
    remove: Callable[[Tenant, Rows], int]
    default_days: Callable[[], int] = _forever
    longest_days: Callable[[], int] = _forever
    fewest_days: int = 1
    step: int = 1
    batch: int = 50
    own: Callable[[], Rows] | None = None
    put: Callable[[Tenant, int | None], None] | None = None

    def own_days(self) -> Rows:
        """Return the days of all workspaces that have a rule of their own."""
        if self.own is not None:
            return self.own()
        rules = RetentionRule.objects.filter(kind=self.name, days__isnull=False)
        return rules.values_list("days", flat=True)

    def days(self, own: int | None) -> int:
        """Return after how many days it is removed, 0 for never, where a workspace has chosen ``own``."""
        days = self.default_days() if own is None else own
        longest = self.longest_days()
        return min(days or longest, longest) if longest else days


@dataclass(frozen=True, slots=True)
class Use:
    """A reason to keep something although it is old.

    Attributes:
        why: the reason, in a few words.
        rows: condition on a row of the kind, for a workspace's number: it holds while the row is in use.
    """

    why: StrOrPromise
    rows: Callable[[int], Q]


_kinds: dict[str, RetentionKind] = {}
_uses: dict[str, list[Use]] = {}


def kind_add(kind: RetentionKind, uses: Iterable[Use]) -> None:
    """Give a kind a rule; see ``removal.retention_kind_register``, which also has it carried out."""
    _kinds[kind.name] = kind
    for use in uses:
        retention_used_by(kind.name, use)


def retention_used_by(name: str, use: Use) -> None:
    """Have rows of a kind kept while another room uses them; at start-up, also before the kind itself."""
    uses = _uses.setdefault(name, [])
    if use not in uses:
        uses.append(use)


_ORDER = ("documents", "conversations", "runs", "datasets", "experiments", "reads", "deliveries", "jobs")


def retention_kinds() -> list[RetentionKind]:
    """Return all kinds in the order of the page."""
    return sorted(_kinds.values(), key=lambda kind: _ORDER.index(kind.name))


def _old(kind: RetentionKind, tenant_id: int, before: datetime.datetime) -> Rows:
    rows = kind.rows().filter(tenant_id=tenant_id, since__lt=before)
    return rows.filter(**{f"{kind.column}__lt": before}) if kind.column else rows


def due_rows(kind: RetentionKind, tenant_id: int, before: datetime.datetime) -> Rows:
    """Return what a rule removes of a workspace: what last changed before a moment and isn't in use."""
    rows = _old(kind, tenant_id, before)
    for use in _uses.get(kind.name, ()):
        rows = rows.filter(~use.rows(tenant_id))
    return rows


def _kept_rows(kind: RetentionKind, tenant_id: int, before: datetime.datetime) -> list[Kept]:
    """Count what is old enough and in use; what has two reasons counts for the first."""
    rows, kept = _old(kind, tenant_id, before), []
    for use in _uses.get(kind.name, ()):
        condition = use.rows(tenant_id)
        count = rows.filter(condition).count()
        if count:
            kept.append(Kept(str(use.why), count))
        rows = rows.filter(~condition)
    return kept


@dataclass(frozen=True, slots=True)
class Kept:
    """How many old things are kept, and why."""

    why: str
    count: int


@dataclass(frozen=True, slots=True)
class Preview:
    """A rule and what it would remove now.

    Attributes:
        own: the days that the workspace has chosen, None where the server's default holds.
        days: the days that count, 0 for ever.
        count: how many things it would remove now; a legal hold keeps all of them.
        oldest: when the oldest of them last changed.
        size: their bytes, None if unknown.
        kept: what is old enough and in use.
        starts_at: nothing is removed before; None: at once.
        removed: how many were removed so far.
        removed_at: when last.
    """

    kind: RetentionKind
    own: int | None
    days: int
    count: int = 0
    oldest: datetime.datetime | None = None
    size: int | None = None
    kept: tuple[Kept, ...] = ()
    starts_at: datetime.datetime | None = None
    removed: int = 0
    removed_at: datetime.datetime | None = None


@dataclass(frozen=True, slots=True)
class Overview:
    """All rules with their previews; while there is a hold, none removes anything."""

    rules: list[Preview]
    hold: LegalHold | None

    @property
    def held(self) -> int:
        """Tell how many things only the legal hold keeps."""
        return sum(rule.count for rule in self.rules) if self.hold else 0


def retention_overview(
    *,
    tenant: Tenant,
    actor: Actor,
    changes: Mapping[str, int | None] | None = None,
    now: datetime.datetime | None = None,
    is_counted: bool = True,
) -> Overview:
    """Return all rules of a workspace with what they would remove now; nothing is changed.

    Args:
        changes: by name of a kind, days to try instead of the workspace's own; None for the server's default.
        now: the moment to count from.
        is_counted: False leaves the counts out, for who only wants the rules.

    Raises:
        Denied: without the right ``audit.read``; whoever may set the rules may also see them.
        Invalid: an unknown kind, or days that can't be chosen.
    """
    if not actor.can("retention.manage"):
        actor.require("audit.read")
    changes = changes or {}
    _checked(changes)
    now = now or timezone.now()
    with tenant_scope(tenant.pk):
        stored = {row.kind: row for row in RetentionRule.objects.filter(tenant=tenant)}
        rules = [
            _rule(kind, _own(tenant, kind, stored), stored.get(kind.name), changes, now)
            for kind in retention_kinds()
        ]
        if is_counted:
            rules = [_counted(tenant, rule, now) for rule in rules]
        return Overview(rules, hold_of(tenant.pk))


def _own(tenant: Tenant, kind: RetentionKind, stored: Mapping[str, RetentionRule]) -> int | None:
    if kind.own is None:
        row = stored.get(kind.name)
        return None if row is None else row.days
    return own_days(tenant, kind)


def own_days(tenant: Tenant, kind: RetentionKind) -> int | None:
    """Return the days that a workspace has chosen for a kind, None where the server's default holds."""
    days: int | None = kind.own_days().filter(tenant=tenant).first()
    return days


def _rule(
    kind: RetentionKind,
    own: int | None,
    row: RetentionRule | None,
    changes: Mapping[str, int | None],
    now: datetime.datetime,
) -> Preview:
    """Return a rule as it is, or as a change would make it, without counts."""
    days_before = kind.days(own)
    own = changes.get(kind.name, own)
    days = kind.days(own)
    starts = row.starts_at if row is not None and row.starts_at and row.starts_at > now else None
    if _is_shorter(days_before, days):
        starts = _start(now)
    return Preview(
        kind,
        own,
        days,
        starts_at=starts if days else None,
        removed=0 if row is None else row.removed,
        removed_at=None if row is None else row.removed_at,
    )


def _counted(tenant: Tenant, rule: Preview, now: datetime.datetime) -> Preview:
    if not rule.days:
        return rule
    before = now - datetime.timedelta(days=rule.days)
    found = due_rows(rule.kind, tenant.pk, before).aggregate(
        count=Count("pk"), oldest=Min("since"), size=Sum("bytes")
    )
    return replace(rule, kept=tuple(_kept_rows(rule.kind, tenant.pk, before)), **found)


def retention_rules_set(
    *, tenant: Tenant, actor: Actor, changes: Mapping[str, int | None], now: datetime.datetime | None = None
) -> None:
    """Set rules of a workspace. A longer one holds at once, a shorter one after days in which it can be undone.

    Args:
        changes: days by name of a kind; 0 for ever, None for the server's default. What isn't named stays.
        now: the moment of the change.

    Raises:
        Denied: without the right ``retention.manage``.
        Invalid: an unknown kind, or days that can't be chosen; ``fields`` names each.
    """
    actor.require("retention.manage")
    _checked(changes)
    now = now or timezone.now()
    with tenant_scope(tenant.pk), transaction.atomic():
        removal_lock(tenant.pk)
        for name, days in changes.items():
            kind = _kinds[name]
            before = own_days(tenant, kind)
            if before != days:
                _rule_set(tenant, actor, kind, before, days, now)


def _rule_set(
    tenant: Tenant,
    actor: Actor,
    kind: RetentionKind,
    before: int | None,
    days: int | None,
    now: datetime.datetime,
) -> None:
    row, _ = RetentionRule.objects.get_or_create(tenant=tenant, kind=kind.name)
    if _is_shorter(kind.days(before), kind.days(days)):
        row.starts_at = _start(now)
    elif not kind.days(days):
        row.starts_at = None
    if kind.put is not None:
        kind.put(tenant, days)
    else:
        row.days = days
    audit_record(
        tenant=tenant,
        actor=actor,
        action="retention.set",
        object=tenant,
        data={"kind": kind.name, "before": before, "after": days},
    )
    row.save(update_fields=["days", "starts_at", "updated_at"])


def _is_shorter(before: int, after: int) -> bool:
    return bool(after) and (not before or after < before)


def _start(now: datetime.datetime) -> datetime.datetime | None:
    grace = int(settings.ERASURE_GRACE_DAYS)
    return now + datetime.timedelta(days=grace) if grace else None


def _checked(changes: Mapping[str, int | None]) -> None:
    problems = {name: problem for name, days in changes.items() if (problem := _problem(name, days))}
    if problems:
        first = next(iter(problems))
        raise Invalid(
            "invalid",
            problems[first],
            data={"field": first, "fields": {name: [problem] for name, problem in problems.items()}},
        )


def _problem(name: str, days: int | None) -> str:
    kind = _kinds.get(name)
    if kind is None:
        known = ", ".join(k.name for k in retention_kinds())
        return _("“%(name)s” has no retention rule. Choose one of %(kinds)s.") % {
            "name": name,
            "kinds": known,
        }
    if days is None:
        return ""
    longest = kind.longest_days()
    if longest:
        fewest = min(kind.fewest_days, longest)
        if fewest <= days <= longest:
            return ""
        return _("Give %(fewest)s to %(most)s days.") % {
            "fewest": intcomma(fewest),
            "most": intcomma(longest),
        }
    if days == 0 or kind.fewest_days <= days <= MOST_DAYS:
        return ""
    return _("Give %(fewest)s to %(most)s days, or 0 to keep it forever.") % {
        "fewest": intcomma(kind.fewest_days),
        "most": intcomma(MOST_DAYS),
    }
