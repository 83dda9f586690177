"""What a workspace's tools and models were used for: calls, failures, times, tokens and money, by tool, member, model, day.

Two statements, whatever the number of rows. Times of calls are exact percentiles, which PostgreSQL computes for each
grouping in one pass over the calls.
"""

from __future__ import annotations

import datetime
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from decimal import Decimal
from typing import Any

from django.db import connection
from django.utils import timezone
from django.utils.translation import gettext_lazy

from basics.errors import Invalid
from basics.texts import gettext as _
from runs.call_log import call_choice, day_start, people_named
from tenancy.actors import Actor

MOST_DAYS = 366
DEFAULT_DAYS = 30
GONE = gettext_lazy("someone who has left")

# Names are compared by bytes: the language's order would cost more than everything else here.
_CALLS = """
SELECT grouping(name, user_id, day), name, user_id, day, count(*),
    count(*) FILTER (WHERE status IN ('failed', 'unknown') AND error_code <> 'cancelled'), count(*) FILTER (WHERE status = 'denied'),
    percentile_cont(ARRAY[0.5, 0.95]) WITHIN GROUP (ORDER BY duration_ms), sum(cost_usd)
FROM (
    SELECT name COLLATE "C" AS name, user_id, (started_at AT TIME ZONE %(zone)s)::date AS day, status, error_code, duration_ms, cost_usd
    FROM runs_toolcall
    WHERE tenant_id = %(tenant)s AND started_at >= %(begin)s AND started_at < %(end)s
        AND (%(user)s::bigint IS NULL OR user_id = %(user)s)
) AS calls
GROUP BY GROUPING SETS ((name), (user_id), (day), ())
"""
# Only models have times here, so only their grouping sorts; the others add up what each person used on each day.
_REQUESTS = """
WITH requests AS NOT MATERIALIZED (
    SELECT (model || CASE WHEN service_tier IN ('', 'standard') THEN '' ELSE ' (' || service_tier || ')' END)
        COLLATE "C" AS model, user_id, (at AT TIME ZONE %(zone)s)::date AS day, kind = 'lost' AS is_lost,
        input_tokens, output_tokens, cost_usd, duration_ms
    FROM runs_usagerecord
    WHERE tenant_id = %(tenant)s AND at >= %(begin)s AND at < %(end)s
        AND (%(user)s::bigint IS NULL OR user_id = %(user)s)
), summed AS (
    SELECT user_id, day, count(*) AS requests, count(*) FILTER (WHERE is_lost) AS lost, sum(input_tokens) AS input_tokens,
        sum(output_tokens) AS output_tokens, sum(cost_usd) AS cost_usd
    FROM requests GROUP BY user_id, day
)
SELECT 3, model, NULL::bigint, NULL::date, count(*), count(*) FILTER (WHERE is_lost), sum(input_tokens), sum(output_tokens),
    sum(cost_usd), percentile_cont(ARRAY[0.5, 0.95]) WITHIN GROUP (ORDER BY duration_ms)
FROM requests GROUP BY model
UNION ALL
SELECT 4 + grouping(user_id, day), NULL, user_id, day, coalesce(sum(requests), 0)::bigint, coalesce(sum(lost), 0)::bigint,
    sum(input_tokens), sum(output_tokens), sum(cost_usd), NULL
FROM summed GROUP BY GROUPING SETS ((user_id), (day), ())
"""
# What grouping() says: a bit for each column that a row is not grouped by, the first column's the highest.
_FIRST, _USER, _DAY, _ALL = 0b011, 0b101, 0b110, 0b111


@dataclass(frozen=True, slots=True)
class UsageRow:
    """The figures of one tool, member, model or day, or of all.

    Attributes:
        key: name, id as text, or day; "" of all.
        label: for people.
        calls, errors, denied: of tools; errors are those that failed or whose outcome is unknown; a call that ended
            because somebody stopped the answer is none.
        p50_ms, p95_ms: of calls that ended, in milliseconds; of a model, of requests, from each to the end of its answer.
        requests, lost: to models; lost ones were billed in vain, and not because somebody stopped the answer.
        input_tokens, output_tokens: of those requests.
        cost_usd: of those requests; of a tool, its calls' shares of the turns that made them. None: not known.
    """

    key: str
    label: str
    calls: int = 0
    errors: int = 0
    denied: int = 0
    p50_ms: float | None = None
    p95_ms: float | None = None
    requests: int = 0
    lost: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    cost_usd: Decimal | None = None

    @property
    def tokens(self) -> int:
        """Return input and output together."""
        return self.input_tokens + self.output_tokens

    def to_json(self) -> dict[str, Any]:
        """Return it as plain values."""
        return {one.name: getattr(self, one.name) for one in fields(self)}


@dataclass(frozen=True, slots=True)
class Usage:
    """The figures of some days; the lists begin with the most used, days with the first."""

    since: datetime.date
    until: datetime.date
    total: UsageRow
    days: Sequence[UsageRow] = field(default_factory=list)
    tools: Sequence[UsageRow] = field(default_factory=list)
    members: Sequence[UsageRow] = field(default_factory=list)
    models: Sequence[UsageRow] = field(default_factory=list)


def usage_range(given: Mapping[str, Any]) -> tuple[datetime.date, datetime.date]:
    """Read the days from the parameters of an address, the last 30 days without any.

    Raises:
        Invalid: they mean nothing, or are more than a year.
    """
    choice = call_choice({name: given.get(name) for name in ("since", "until")})
    until = choice.until or timezone.localdate()
    since = choice.since or until - datetime.timedelta(days=DEFAULT_DAYS - 1)
    if since > until:
        raise _invalid(_("The last day is before the first."))
    if (until - since).days >= MOST_DAYS:
        raise _invalid(_("Choose at most %(most)s days.") % {"most": MOST_DAYS})
    return since, until


def _invalid(text: str) -> Invalid:
    return Invalid("invalid", text, data={"fields": {"since": [text]}})


def usage_read(*, actor: Actor, since: datetime.date, until: datetime.date) -> Usage:
    """Return the figures of some days: everybody's with the right ``audit.read``, else the actor's own.

    Raises:
        Denied: without the right ``run.read``.
    """
    actor.require("run.read")
    everybody = actor.can("audit.read")
    if not everybody and actor.user_id is None:
        return _usage(since, until, [], [], everybody=True)
    values = {
        "tenant": actor.tenant_id,
        "user": None if everybody else actor.user_id,
        "zone": timezone.get_current_timezone_name(),
        "begin": day_start(since),
        "end": day_start(until + datetime.timedelta(days=1)),
    }
    with connection.cursor() as cursor:
        cursor.execute(_CALLS, values)
        calls = cursor.fetchall()
        cursor.execute(_REQUESTS, values)
        requests = cursor.fetchall()
    return _usage(since, until, calls, requests, everybody=everybody)


def _usage(
    since: datetime.date,
    until: datetime.date,
    calls: Iterable[tuple[Any, ...]],
    requests: Iterable[tuple[Any, ...]],
    *,
    everybody: bool,
) -> Usage:
    tools: dict[str, UsageRow] = {}
    models: dict[str, UsageRow] = {}
    members: dict[str, UsageRow] = {}
    count = (until - since).days + 1
    days = {
        str(day): UsageRow(str(day), str(day))
        for day in (since + datetime.timedelta(days=n) for n in range(count))
    }
    total = {"": UsageRow("", "")}
    for kind, name, user_id, day, number, errors, denied, times, cost in calls:
        rows, key = _place(kind, name, user_id, day, tools, members, days, total)
        p50, p95 = times or (None, None)
        found = replace(
            rows.get(key) or UsageRow(key, key),
            calls=number,
            errors=errors,
            denied=denied,
            p50_ms=p50,
            p95_ms=p95,
        )
        rows[key] = replace(found, cost_usd=cost) if rows is tools else found
    for kind, name, user_id, day, number, lost, tokens_in, tokens_out, cost, times in requests:
        rows, key = _place(kind, name, user_id, day, models, members, days, total)
        found = replace(
            rows.get(key) or UsageRow(key, key),
            requests=number,
            lost=lost,
            input_tokens=int(tokens_in or 0),
            output_tokens=int(tokens_out or 0),
            cost_usd=cost,
        )
        p50, p95 = times or (None, None)
        rows[key] = replace(found, p50_ms=p50, p95_ms=p95) if rows is models else found
    people = people_named(int(key) for key in members if key)
    named = [replace(m, label=people.get(int(m.key or 0)) or str(GONE)) for m in members.values()]
    return Usage(
        since,
        until,
        total[""],
        days=list(days.values()),
        tools=_most(tools.values()),
        members=_most(named) if everybody else [],
        models=_most(models.values()),
    )


def _place(
    kind: int,
    name: str,
    user_id: int | None,
    day: datetime.date,
    first: dict[str, UsageRow],
    members: dict[str, UsageRow],
    days: dict[str, UsageRow],
    total: dict[str, UsageRow],
) -> tuple[dict[str, UsageRow], str]:
    """Return which rows a grouped row belongs to, and under which key."""
    if kind == _FIRST:
        return first, name
    if kind == _USER:
        return members, "" if user_id is None else str(user_id)
    if kind == _DAY:
        return days, str(day)
    return total, ""


def _most(rows: Iterable[UsageRow]) -> list[UsageRow]:
    return sorted(rows, key=lambda row: (-row.calls, -row.requests, row.label))
