"""What a workspace limits, in words, and how much of each limit is used now."""

from __future__ import annotations

import datetime
from dataclasses import dataclass

from django.db.models import Prefetch, Q
from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from apps.tools.limits.counting import groups_of, period_ends, period_start
from apps.tools.models import ToolLimit, ToolLimitUse
from basics.errors import Missing
from basics.texts import number_told
from tenancy.actors import Actor
from tenancy.models import ApiKey, RateBucket, RateLimit, User

_EACH = {
    "tenant": gettext_lazy("The whole workspace"),
    "member": gettext_lazy("Each member"),
    "key": gettext_lazy("Each API key"),
}


@dataclass(frozen=True, slots=True)
class LimitShown:
    """One limit.

    Attributes:
        source: "calls" of tools, or "requests" over REST.
        whose, what, period: in words.
        most: calls or requests a period.
        used: of that, by the one caller who used most.
        by: who that is; "" where the limit is about one only.
    """

    source: str
    pk: int
    whose: str
    what: str
    period: str
    most: int
    used: int
    by: str

    @property
    def is_full(self) -> bool:
        """Whether nothing is left."""
        return self.used >= self.most


@dataclass(frozen=True, slots=True)
class LimitUse:
    """A limit of tool calls and its present period.

    Attributes:
        used: calls, by the one caller who used most.
        resets_at: when the next period begins.
    """

    row: ToolLimit
    used: int
    resets_at: datetime.datetime

    @property
    def remaining(self) -> int:
        """Calls that are left to that caller."""
        return max(self.row.calls - self.used, 0)


def tool_limit_uses(*, actor: Actor) -> list[LimitUse]:
    """Return the limits of tool calls with their present use, in two queries. Raises Denied."""
    actor.require("tool.manage")
    uses = Prefetch("uses", ToolLimitUse.objects.visible_to(actor).order_by("-used"))
    rows = ToolLimit.objects.visible_to(actor).prefetch_related(uses)
    now = timezone.now()
    return [_used(row, now) for row in rows.order_by("kind", "target_kind", "target", "pk")]


def tool_limit_get(*, actor: Actor, pk: int) -> LimitUse:
    """Return one of ``tool_limit_uses``. Raises Denied, Missing."""
    for use in tool_limit_uses(actor=actor):
        if use.row.pk == pk:
            return use
    raise Missing("limit")


def limit_list(*, actor: Actor) -> list[LimitShown]:
    """Return every limit of the workspace with its present use, in a constant number of queries. Raises Denied."""
    actor.require("tool.manage")
    now = timezone.now()
    uses = Prefetch("uses", ToolLimitUse.objects.visible_to(actor).order_by("-used"))
    rows = ToolLimit.objects.visible_to(actor).select_related("user", "api_key")
    calls = list(rows.prefetch_related(uses).order_by("kind", "target_kind", "target", "pk"))
    rates = list(RateLimit.objects.visible_to(actor).select_related("user", "api_key").order_by("kind", "pk"))
    buckets = list(RateBucket.objects.visible_to(actor)) if rates else []
    subjects = {use.subject for row in calls for use in row.uses.all()}
    names = _names(actor, subjects | {bucket.subject for bucket in buckets})
    return [_rate(row, buckets, names, now) for row in rates] + [_call(row, names, now) for row in calls]


def tool_limits(*, actor: Actor, name: str, group: str) -> list[LimitShown]:
    """Return the limits that count calls of one tool, with their present use. Raises Denied."""
    actor.require("tool.manage")
    about = Q(target_kind="all") | Q(target_kind="tool", target=name)
    about |= Q(target_kind="group", target__in=groups_of(group))
    uses = Prefetch("uses", ToolLimitUse.objects.visible_to(actor).order_by("-used"))
    rows = ToolLimit.objects.visible_to(actor).filter(about).select_related("user", "api_key")
    found = list(rows.prefetch_related(uses).order_by("kind", "target_kind", "target", "pk"))
    names = _names(actor, {use.subject for row in found for use in row.uses.all()})
    now = timezone.now()
    return [_call(row, names, now) for row in found]


def _used(row: ToolLimit, now: datetime.datetime) -> LimitUse:
    begun = period_start(row.period, now)
    used = max((use.used for use in row.uses.all() if use.starts_at >= begun), default=0)
    return LimitUse(row, used, period_ends(row.period, begun))


def _call(row: ToolLimit, names: dict[str, str], now: datetime.datetime) -> LimitShown:
    begun = period_start(row.period, now)
    top = next((use for use in row.uses.all() if use.starts_at >= begun), None)
    is_each = row.kind != "tenant" and row.user is None and row.api_key is None
    what = {
        "all": _("calls of all tools"),
        "group": _("calls of tools of “%(group)s”") % {"group": row.target},
        "tool": _("calls of %(tool)s") % {"tool": row.target},
    }
    return LimitShown(
        "calls",
        row.pk,
        _whose(row),
        what[row.target_kind],
        row.get_period_display(),
        row.calls,
        0 if top is None else top.used,
        names.get(top.subject, "") if top is not None and is_each else "",
    )


def _rate(
    row: RateLimit, buckets: list[RateBucket], names: dict[str, str], now: datetime.datetime
) -> LimitShown:
    prefix = {"tenant": "tenant", "member": "user:", "key": "key:"}[row.kind]
    if row.user_id or row.api_key_id:
        prefix += str(row.user_id or row.api_key_id)
    is_each = prefix.endswith(":")
    used = {
        b.subject: row.burst
        - min(row.burst, b.tokens + (now - b.updated_at).total_seconds() * row.per_minute / 60)
        for b in buckets
        if (b.subject.startswith(prefix) if is_each else b.subject == prefix)
    }
    top = max(used, key=lambda subject: used[subject], default="")
    return LimitShown(
        "requests",
        row.pk,
        _whose(row),
        _("REST requests at once, refilled with %(rate)s a minute") % {"rate": number_told(row.per_minute)},
        "",
        row.burst,
        round(used.get(top, 0)),
        names.get(top, "") if is_each and used.get(top, 0) >= 0.5 else "",
    )


def _whose(row: ToolLimit | RateLimit) -> str:
    if row.api_key is not None:
        return _("The key “%(name)s”") % {"name": row.api_key.name}
    return str(row.user) if row.user is not None else str(_EACH[row.kind])


def _names(actor: Actor, subjects: set[str]) -> dict[str, str]:
    """Return names of those whom counts know as ``member:<id>``, ``user:<id>`` or ``key:<id>``."""
    people = {s: int(s.partition(":")[2]) for s in subjects if s.startswith(("member:", "user:"))}
    keys = {s: int(s.partition(":")[2]) for s in subjects if s.startswith("key:")}
    members = User.objects.filter(pk__in=set(people.values()), memberships__tenant_id=actor.tenant_id)
    person = {user.pk: str(user) for user in members} if people else {}
    rows = ApiKey.objects.visible_to(actor).filter(pk__in=set(keys.values()))
    named = dict(rows.values_list("pk", "name")) if keys else {}
    return {s: person.get(pk, _("a former member")) for s, pk in people.items()} | {
        s: _("the key “%(name)s”") % {"name": named.get(pk, pk)} for s, pk in keys.items()
    }
