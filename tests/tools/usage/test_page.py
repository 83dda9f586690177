"""Figures of usage: what is counted, for whom, by what; and the page that shows them."""

from __future__ import annotations

import datetime
from decimal import Decimal
from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse
from django.utils import timezone

from basics.errors import Denied, Invalid
from runs.models import Run, ToolCall, UsageRecord
from runs.usage_figures import Usage, usage_range, usage_read
from tenancy.actors import Actor
from tenancy.scope import tenant_scope
from tests.cast import Cast, make_cast
from tests.markup import flat
from web.charts.bars import bars_chart, columns_chart, figure

pytestmark = pytest.mark.django_db
TODAY = datetime.timedelta(0)


@pytest.fixture(autouse=True)
def _no_midnight_between(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the clock stand still: what is used and what is asked for are of one day, also at midnight."""
    now = timezone.now()
    monkeypatch.setattr(timezone, "now", lambda: now)


def used(
    cast: Cast,
    role: str = "member",
    *,
    ago: datetime.timedelta = TODAY,
    cost: str | None = "0.5",
    request_ms: int | None = None,
    **call: Any,
) -> None:
    """Make a run with a request and a call that belongs to it."""
    at, user = timezone.now() - ago, cast.actor(role).user_id
    with tenant_scope(cast.tenant.pk):
        run = Run.objects.create(tenant=cast.tenant, user_id=user, kind="t", model="m", status="completed")
        given = {
            "name": "look",
            "status": "succeeded",
            "duration_ms": 100,
            "cost_usd": cost,
            "started_at": at,
            **call,
        }
        ToolCall.objects.create(tenant=cast.tenant, run=run, user_id=user, step=0, call_id="c", **given)
        UsageRecord.objects.create(
            tenant=cast.tenant,
            run_id=run.pk,
            user_id=user,
            step=0,
            kind="turn",
            provider="p",
            model="big",
            input_tokens=100,
            output_tokens=10,
            cost_usd=cost,
            at=at,
            duration_ms=request_ms,
        )


def read(cast: Cast, role: str = "owner", days: int = 30) -> Usage:
    until = timezone.localdate()
    with tenant_scope(cast.tenant.pk):
        since = until - datetime.timedelta(days=days - 1)
        return usage_read(actor=cast.actor(role), since=since, until=until)


def test_figures_by_tool_member_model_and_day(cast: Cast) -> None:
    day = datetime.timedelta(days=1)
    for duration in range(1, 101):
        used(cast, name="slow", duration_ms=duration * 10, cost=None, request_ms=duration * 100)
    used(cast, "owner", name="pay", status="failed", error_code="timeout", cost="0.25")
    used(cast, "owner", name="pay", status="denied", ago=day)
    used(cast, "owner", name="pay", ago=40 * day)
    found = read(cast)
    assert (found.total.calls, found.total.errors, found.total.denied) == (102, 1, 1)
    assert (found.total.requests, found.total.input_tokens, found.total.output_tokens) == (102, 10200, 1020)
    slow, pay = found.tools
    assert (slow.label, slow.calls, slow.p50_ms, slow.p95_ms) == ("slow", 100, 505, 950.5)
    assert slow.cost_usd is None
    assert (pay.label, pay.calls, pay.errors, pay.denied, pay.cost_usd) == ("pay", 2, 1, 1, Decimal("0.75"))
    assert [(m.label, m.calls, m.requests) for m in found.members] == [
        (cast.member.user.email, 100, 100),
        (cast.owner.user.email, 2, 2),
    ]
    (big,) = found.models
    assert (big.label, big.requests, big.cost_usd) == ("big", 102, Decimal("0.75"))
    # Of the 100 requests that were measured; a model's times are not those of the workspace's calls.
    assert (big.p50_ms, big.p95_ms) == (5050, 9505)
    assert found.total.p50_ms == 495
    assert len(found.days) == 30
    assert [(d.calls, d.errors) for d in found.days[-2:]] == [(1, 0), (101, 1)]
    assert sum(d.calls for d in found.days) == 102


def test_a_model_has_a_row_for_each_tier_that_costs_something_else(cast: Cast) -> None:
    for tier, cost in (("", "1.0"), ("standard", "1.0"), ("flex", "0.5"), ("priority", "2.0")):
        with tenant_scope(cast.tenant.pk):
            UsageRecord.objects.create(
                tenant=cast.tenant,
                kind="turn",
                provider="p",
                model="big",
                service_tier=tier,
                input_tokens=1,
                cost_usd=cost,
                at=timezone.now(),
            )
    assert {(m.label, m.requests, m.cost_usd) for m in read(cast).models} == {
        ("big", 2, Decimal(2)),
        ("big (flex)", 1, Decimal("0.5")),
        ("big (priority)", 1, Decimal(2)),
    }


def test_people_see_their_own_figures_and_admins_everybodys(cast: Cast) -> None:
    used(cast)
    used(cast, "owner", name="secret_tool")
    used(make_cast())
    own = read(cast, "member")
    assert (own.total.calls, own.total.requests) == (1, 1)
    assert [t.label for t in own.tools] == ["look"]
    assert own.members == []
    assert read(cast, "admin").total.calls == 2
    today = timezone.localdate()
    with tenant_scope(cast.tenant.pk):
        nobody = Actor("api_key", cast.tenant.pk, frozenset({"run.read"}))
        assert usage_read(actor=nobody, since=today, until=today).total.calls == 0
        with pytest.raises(Denied):
            usage_read(actor=Actor("api_key", cast.tenant.pk, frozenset()), since=today, until=today)


@pytest.mark.parametrize(
    "given",
    [
        {"since": "x"},
        {"since": "2026-02-02", "until": "2026-02-01"},
        {"since": "2020-01-01", "until": "2026-01-01"},
        {"since": "2999-01-01"},
    ],
    ids=["no day", "backwards", "too long", "begins in the future"],
)
def test_days_that_mean_nothing_are_refused(cast: Cast, given: dict[str, str]) -> None:
    with pytest.raises(Invalid):
        usage_range(given)
    assert "The last 30 days are shown." in page(cast, **given)


def page(cast: Cast, role: str = "owner", **query: str) -> str:
    client = Client()
    client.force_login(getattr(cast, role).user, "django.contrib.auth.backends.ModelBackend")
    response = client.get(reverse("usage:page", args=[cast.tenant.slug]), query)
    assert response.status_code == 200
    return response.content.decode()


def test_page_shows_charts_with_tables_and_says_when_there_is_nothing(cast: Cast) -> None:
    assert "No usage on these days" in page(cast)
    used(cast, name="<b>tool</b>")
    shown = page(cast)
    assert flat(shown).count('<svg class="chart"') == 5
    assert "&lt;b&gt;tool&lt;/b&gt;" in shown
    assert "<b>tool" not in shown
    assert "By member" not in page(cast, "member")


def test_queries_do_not_grow(cast: Cast) -> None:
    def cost() -> int:
        with CaptureQueriesContext(connection) as queries:
            page(cast)
        return len(queries)

    used(cast)
    few = cost()
    for number in range(10):
        used(cast, ("member", "owner", "viewer")[number % 3], name=f"tool_{number}")
    assert cost() == few


def test_rest_gives_the_same_figures(cast: Cast) -> None:
    used(cast)
    client = Client(headers={"X-Tenant": cast.tenant.slug})
    client.force_login(cast.owner.user, "django.contrib.auth.backends.ModelBackend")
    told = client.get("/api/v1/usage").json()
    assert told["total"]["calls"] == 1
    assert told["tools"][0] | {"label": "look", "p50_ms": 100.0, "cost_usd": 0.5} == told["tools"][0]
    assert len(told["days"]) == 30
    assert client.get("/api/v1/usage", {"since": "x"}).status_code == 400


def test_charts_stay_within_their_box() -> None:
    chart = columns_chart([(f"day {n}", n * 37.0, n * 7.0) for n in range(40)])
    for column in chart.columns:
        for part in column.segments:
            assert 0 <= part.x <= chart.width - part.width
            assert 0 <= part.y <= chart.height - part.height
    assert sum(bool(c.label) for c in chart.columns) <= 7
    assert [t.label for t in columns_chart([("a", 0.0, 0.0)]).ticks] == ["0", "1"]
    assert [t.label for t in columns_chart([("a", 1, 0)]).ticks] == ["0", "1"]
    assert [t.label for t in columns_chart([("a", 10, 0)]).ticks] == ["0", "5", "10"]
    assert [t.label for t in columns_chart([("a", 0.5, 0)], unit="$").ticks][-1] == "$0.60"
    assert [t.label for t in columns_chart([("a", 7500.0, 0.0)]).ticks][-1] == "8k"
    bars = bars_chart([("a" * 60, 5.0, 1.0), ("b", 0.0, 0.0)])
    assert [b.width for b in bars.bars] == [394.0, 1.0]
    assert len(bars.bars[0].label) == 24
    assert [figure(v) for v in (0.0, 0.005, 0.25, 950, 9999, 12345, 3_400_000)] == [
        "0",
        "0.005",
        "0.25",
        "950",
        "9,999",
        "12.3k",
        "3.4M",
    ]
