"""How often tools may be called: counted when a call runs, exactly, however many run at once.

A period is a calendar one in UTC. One statement takes a call from every limit that is about it; where one of them is used
up, nothing is taken from the others.
"""

from __future__ import annotations

import datetime
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from django.db import connection, transaction

from apps.tools.policy.engine import Subject, ToolFacts
from basics.errors import DomainError
from toolloop.tools.context import CallRefused, Severity
from toolloop.tools.tool import AdmitRule

LIMITED = "rate_limited"
SOON_S = 60
"""A model may try again by itself when the next period begins within so many seconds."""
_WHOSE = {"tenant": "this workspace", "member": "this person", "key": "this API key"}
_TAKE = """
WITH about AS MATERIALIZED (
    SELECT l.id, l.kind, l.target_kind, l.target, l.period, l.calls,
        CASE l.kind WHEN 'tenant' THEN 'tenant' WHEN 'member' THEN 'member:' || %(user)s::bigint
            ELSE 'key:' || %(key)s::bigint END AS subject,
        date_trunc(l.period, clock_timestamp(), 'UTC') AS starts_at
    FROM tools_toollimit l
    WHERE l.tenant_id = %(tenant)s
        AND (l.target_kind = 'all' OR (l.target_kind = 'tool' AND l.target = %(tool)s)
            OR (l.target_kind = 'group' AND l.target = ANY(%(groups)s)))
        AND (l.kind = 'tenant' OR (l.kind = 'member' AND coalesce(l.user_id, %(user)s) = %(user)s)
            OR (l.kind = 'key' AND coalesce(l.api_key_id, %(key)s) = %(key)s))
        AND NOT EXISTS (  -- one that names the caller takes the place of that of everybody
            SELECT FROM tools_toollimit own
            WHERE own.tenant_id = l.tenant_id AND own.kind = l.kind AND own.period = l.period
                AND own.target_kind = l.target_kind AND own.target = l.target AND own.id <> l.id
                AND l.user_id IS NULL AND l.api_key_id IS NULL
                AND (own.user_id = %(user)s OR own.api_key_id = %(key)s))
), taken AS (
    INSERT INTO tools_toollimituse AS u (tenant_id, limit_id, subject, starts_at, used)
    SELECT %(tenant)s, id, subject, starts_at, 1 FROM about ORDER BY id
    ON CONFLICT ON CONSTRAINT tool_limit_use_one_each DO UPDATE SET
        used = CASE WHEN u.starts_at < EXCLUDED.starts_at THEN 1 ELSE u.used + 1 END,
        starts_at = greatest(u.starts_at, EXCLUDED.starts_at)
    WHERE u.starts_at < EXCLUDED.starts_at
        OR u.used < (SELECT a.calls FROM about a WHERE a.id = u.limit_id)
    RETURNING u.limit_id
)
SELECT kind, target_kind, target, period, calls,
    extract(epoch FROM starts_at + ('1 ' || period)::interval - clock_timestamp())::float8
FROM about WHERE id NOT IN (SELECT limit_id FROM taken)
"""


@dataclass(frozen=True, slots=True)
class Exhausted:
    """A limit of which nothing is left.

    Attributes:
        scope: tenant, member or key.
        what: the tools it is about, in words.
        period: minute, day or month.
        limit: calls a period.
        reset_s: seconds until the next period begins.
    """

    scope: str
    what: str
    period: str
    limit: int
    reset_s: int

    @property
    def message(self) -> str:
        """What a model or a person reads."""
        calls, whose = "call" if self.limit == 1 else "calls", _WHOSE[self.scope]
        return (
            f"{whose[:1].upper()}{whose[1:]} has made its {self.limit} {calls} of {self.what} for this "
            f"{self.period}. 0 are left; the count starts again in {_wait(self.reset_s)}."
        )

    @property
    def data(self) -> dict[str, Any]:
        """The same for programs."""
        return {
            "scope": self.scope,
            "period": self.period,
            "limit": self.limit,
            "remaining": 0,
            "reset": self.reset_s,
            "retry_after": self.reset_s,
        }


class CallsLimited(DomainError):
    """None of the calls of a request ran, because what they count against is used up."""

    default_status = 429

    def __init__(self, message: str, data: Mapping[str, Any]) -> None:
        super().__init__("tool_rate_limited", message, data=dict(data))


class ToolLimits:
    """Which tools of one caller are limited, read once; the counting itself always sees the limits of the moment.

    Args:
        tenant_id: of the caller.
        subject: the caller.
        targets: (kind, name) of what any limit of this caller is about.
    """

    def __init__(self, tenant_id: int, subject: Subject, targets: frozenset[tuple[str, str]]) -> None:
        self._tenant_id, self._subject, self._targets = tenant_id, subject, targets

    def rule(self, facts: ToolFacts) -> AdmitRule | None:
        """Return what takes a call of a tool from its limits and refuses it where one is used up; None without limits."""
        groups = groups_of(facts.group)
        about = {("all", ""), ("tool", facts.name), *(("group", group) for group in groups)}
        if not about & self._targets:
            return None

        def admit(arguments: Mapping[str, Any]) -> None:
            found = calls_take(self._tenant_id, self._subject, facts.name, groups)
            if found is not None:
                soon = found.reset_s <= SOON_S
                severity: Severity = "non_fatal" if soon else "fatal"
                raise CallRefused(LIMITED, found.message, severity, data=found.data)

        return admit


def groups_of(group: str) -> list[str]:
    """Return a dotted group and those around it."""
    parts = group.split(".") if group else []
    return [".".join(parts[: end + 1]) for end in range(len(parts))]


def calls_take(tenant_id: int, subject: Subject, tool: str, groups: list[str]) -> Exhausted | None:
    """Take one call from every limit about it; return the one that begins anew last when any is used up.

    Nothing is taken then. Call it where the ORM may be used, in the tenant's scope.
    """
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(
            _TAKE,
            {
                "tenant": tenant_id,
                "user": subject.user_id,
                "key": subject.api_key_id,
                "tool": tool,
                "groups": groups,
            },
        )
        refused = [_exhausted(*row) for row in cursor.fetchall()]
        if refused:
            transaction.set_rollback(True)
    return max(refused, key=lambda found: found.reset_s) if refused else None


def _exhausted(
    kind: str, target_kind: str, target: str, period: str, calls: int, seconds: float
) -> Exhausted:
    what = {"tool": target, "group": f"the tools of the group {target}", "all": "all tools"}
    return Exhausted(kind, what[target_kind], period, calls, max(1, math.ceil(seconds)))


def _wait(seconds: int) -> str:
    if seconds < 120:
        return f"{seconds} s"
    minutes = seconds // 60
    if minutes < 120:
        return f"{minutes} minutes"
    hours = minutes // 60
    return f"{hours} hours" if hours < 48 else f"{hours // 24} days"


def period_ends(period: str, begun: datetime.datetime) -> datetime.datetime:
    """Return when the period ends that began at a moment of ``period_start``."""
    if period == "month":
        return (begun + datetime.timedelta(days=32)).replace(day=1)
    return begun + datetime.timedelta(**{f"{period}s": 1})


def period_start(period: str, now: datetime.datetime) -> datetime.datetime:
    """Return when the present period began, in UTC."""
    now = now.astimezone(datetime.UTC).replace(second=0, microsecond=0)
    if period == "minute":
        return now
    day = now.replace(hour=0, minute=0)
    return day if period == "day" else day.replace(day=1)
