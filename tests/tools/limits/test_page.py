"""Settings, Limits: set, seen with what is used, removed."""

from __future__ import annotations

import re
from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from apps.tools.limits.counting import calls_take
from apps.tools.models import ToolLimit
from apps.tools.policy.engine import Subject
from tenancy.models import RateLimit
from tenancy.scope import tenant_scope
from tests.cast import Cast
from tests.markup import flat

pytestmark = pytest.mark.django_db


def page(cast: Cast, role: str = "owner") -> tuple[Client, str]:
    client = Client()
    client.force_login(cast.user(role), "django.contrib.auth.backends.ModelBackend")
    return client, reverse("tools:settings-limits", args=[cast.tenant.slug])


def put(cast: Cast, role: str = "owner", **values: Any) -> Any:
    client, url = page(cast, role)
    made = {"action": "set", "what": "all", "whose": "member", "most": 4, "period": "day"}
    return client.post(url, made | values)


def test_limit_is_set_shown_with_its_use_and_removed(cast: Cast) -> None:
    assert put(cast, what="tool", target="calculate").status_code == 302
    subject = Subject("member", cast.user("member").pk, None)
    with tenant_scope(cast.tenant.pk):
        for _ in range(3):
            assert calls_take(cast.tenant.pk, subject, "calculate", []) is None
        row = ToolLimit.objects.get()
    client, url = page(cast)
    html = client.get(url).content.decode()
    assert "4 calls of calculate a day" in html
    assert re.search(r'<progress value="3" max="4"', flat(html))
    assert f"most by {cast.user('member')}" in html
    with tenant_scope(cast.tenant.pk):
        calls_take(cast.tenant.pk, subject, "calculate", [])
    assert "Used up" in client.get(url).content.decode()
    client.post(url, {"action": "remove", "source": "calls", "limit": row.pk})
    assert "No limits of your own" in client.get(url).content.decode()


def test_tool_page_shows_the_limits_that_count_its_calls(cast: Cast) -> None:
    put(cast, what="tool", target="calculate", most=7)
    put(cast, what="tool", target="look", most=8)
    put(cast, what="all", most=9, period="month")
    client, _ = page(cast)
    html = client.get(reverse("tools:tool", args=[cast.tenant.slug, "calculate"])).content.decode()
    assert "7 calls of calculate a day" in html
    assert "9 calls of all tools a month" in html
    assert "calls of look" not in html
    plain, _ = page(cast, "member")
    assert (
        "calls of calculate"
        not in plain.get(reverse("tools:tool", args=[cast.tenant.slug, "calculate"])).content.decode()
    )


def test_one_person_and_one_key_can_be_named(cast: Cast) -> None:
    whose = f"member:{cast.user('viewer').pk}"
    assert put(cast, whose=whose).status_code == 302
    assert put(cast, whose=f"member:{cast.user('outsider').pk}").status_code == 422
    with tenant_scope(cast.tenant.pk):
        assert ToolLimit.objects.get().user_id == cast.user("viewer").pk


def test_speed_of_rest_is_the_owners_to_set(cast: Cast) -> None:
    assert put(cast, what="requests", most=60).status_code == 302
    assert put(cast, "admin", what="requests", most=60).status_code == 422
    client, url = page(cast)
    with tenant_scope(cast.tenant.pk):
        row = RateLimit.objects.get()
    assert (row.per_minute, row.burst, row.kind) == (60, 10, "member")
    assert "refilled with 60 a minute" in client.get(url).content.decode()
    admin, _ = page(cast, "admin")
    removal = {"action": "remove", "source": "requests", "limit": row.pk}
    assert admin.post(url, removal).status_code == 403
    assert client.post(url, removal).status_code == 302


@pytest.mark.parametrize(
    "wrong", [{"what": "tool"}, {"most": 0}, {"whose": "team"}, {"period": "hour"}], ids=str
)
def test_what_does_not_fit_is_said_at_its_field(cast: Cast, wrong: dict[str, Any]) -> None:
    answer = put(cast, **wrong)
    assert answer.status_code == 422
    assert "errorlist" in answer.content.decode()


def test_number_of_queries_does_not_grow_with_limits(cast: Cast) -> None:
    client, url = page(cast)

    def count() -> int:
        with CaptureQueriesContext(connection) as queries:
            assert client.get(url).status_code == 200
        return len(queries)

    put(cast)
    put(cast, what="requests")
    few = count()
    for number in range(5):
        put(cast, what="tool", target=f"t{number}")
    put(cast, what="requests", whose="tenant")
    assert count() == few
