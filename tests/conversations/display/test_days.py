"""Lists of conversations are grouped by the days of their reader, pinned ones first."""

from __future__ import annotations

import datetime
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from django.test import Client
from django.utils import timezone

from apps.conversations.display.days import day_name, days_grouped
from apps.conversations.models import Conversation
from apps.conversations.transcript.selectors import RECENT
from apps.conversations.turns.conversations import conversation_create
from tenancy.scope import tenant_scope
from tests.cast import Cast
from tests.conversations.chat.test_views import HTMX, client_of, url

NOW = datetime.datetime(2026, 11, 27, 1, 30, tzinfo=datetime.UTC)


@pytest.mark.parametrize(
    ("moment", "zone", "name"),
    [
        ("2026-11-27T00:10", "UTC", "Today"),
        ("2026-11-27T01:40", "UTC", "Today"),  # the clock of another machine is ahead
        ("2026-11-26T23:50", "UTC", "Yesterday"),
        ("2026-11-26T23:50", "Europe/Berlin", "Today"),
        ("2026-11-27T00:10", "America/New_York", "Today"),
        ("2026-11-26T04:30", "America/New_York", "Yesterday"),
        ("2026-11-25T12:00", "UTC", "Previous 7 days"),
        ("2026-11-20T00:00", "UTC", "Previous 7 days"),
        ("2026-11-19T23:59", "UTC", "November"),
        ("2026-01-02T12:00", "UTC", "January"),
        ("2025-12-31T12:00", "UTC", "December 2025"),
    ],
)
def test_days_are_those_of_the_reader(moment: str, zone: str, name: str) -> None:
    used = datetime.datetime.fromisoformat(moment).replace(tzinfo=datetime.UTC)
    assert day_name(used, now=NOW, zone=ZoneInfo(zone)) == name


def made(cast: Cast, title: str, **values: Any) -> Conversation:
    with tenant_scope(cast.tenant.pk):
        row = conversation_create(tenant=cast.tenant, actor=cast.actor("member"), title=title)
        Conversation.objects.filter(pk=row.pk).update(**values)
    return row


def headings(client: Client, cast: Cast) -> list[str]:
    page: Any = client.get(url("list", cast))
    return [group.name for group in page.context["groups"]]


def test_pinned_one_is_first_in_both_lists_however_old_it_is(cast: Cast) -> None:
    old = made(cast, "Old one", updated_at=datetime.datetime(2020, 3, 4, tzinfo=datetime.UTC))
    for number in range(RECENT):
        made(cast, f"New {number}")
    client = client_of(cast, "member")
    assert headings(client, cast) == ["Today", "March 2020"]
    assert "Old one" not in client.get(url("recent", cast)).content.decode()
    answer = client.post(url("pin", cast, old.pk), {"is_pinned": "1"}, headers=HTMX)
    assert answer.status_code == 204
    assert headings(client, cast) == ["Pinned", "Today"]
    side = client.get(url("recent", cast)).content.decode()
    assert side.index("Pinned") < side.index("Old one") < side.index("Today") < side.index("New 14")
    assert client.post(url("pin", cast, old.pk), headers=HTMX).status_code == 204
    assert headings(client, cast) == ["Today", "March 2020"]


def test_zone_of_the_cookie_decides_and_an_unknown_one_does_not(
    cast: Cast, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = datetime.datetime.now(datetime.UTC)
    monkeypatch.setattr("apps.conversations.display.days.timezone.now", lambda: now)  # no midnight in between
    made(cast, "Just now", updated_at=now)
    client = client_of(cast, "member")
    for name in ("Pacific/Kiritimati", "Etc/GMT+12", "../../etc/passwd", "No/Where", ""):
        client.cookies["gw.zone"] = name
        assert headings(client, cast) == ["Today"], name
    # 25 hours ago was yesterday, or the day before where it is between midnight and one.
    ago = now - datetime.timedelta(hours=25)
    with tenant_scope(cast.tenant.pk):
        Conversation.objects.update(updated_at=ago)
    seen = set()
    for zone in ("Pacific/Kiritimati", "Etc/GMT+12", *(f"Etc/GMT{n:+}" for n in range(-13, 12))):
        client.cookies["gw.zone"] = zone
        here = ZoneInfo(zone)
        days = (now.astimezone(here).date() - ago.astimezone(here).date()).days
        expected = "Yesterday" if days == 1 else "Previous 7 days"
        assert headings(client, cast) == [expected], zone
        seen.add(expected)
    assert seen == {"Yesterday", "Previous 7 days"}


def test_row_actions_answer_a_list_and_leave_the_page_of_what_is_deleted(cast: Cast) -> None:
    row, client = made(cast, "Mine"), client_of(cast, "member")
    at_list = {**HTMX, "HX-Current-URL": "http://testserver" + url("list", cast)}
    at_row = {**HTMX, "HX-Current-URL": "http://testserver" + url("detail", cast, row.pk) + "?x=1"}
    assert client.post(url("rename", cast, row.pk), {"title": "Ours"}, headers=at_list).status_code == 204
    assert client.post(url("rename", cast, row.pk), {"title": " "}, headers=at_list).status_code == 400
    assert "Ours" in client.get(url("list", cast)).content.decode()
    answer = client.post(url("delete", cast, row.pk), headers=at_row)
    assert answer["HX-Redirect"] == url("home", cast)
    other = made(cast, "Other")
    assert client.post(url("delete", cast, other.pk), headers=at_list).status_code == 204
    assert headings(client, cast) == []


def test_pin_is_the_owners_alone(cast: Cast) -> None:
    row = made(cast, "Mine")
    for role in ("owner", "viewer", "outsider"):
        assert client_of(cast, role).post(url("pin", cast, row.pk), {"is_pinned": "1"}).status_code in (
            403,
            404,
        )
    with tenant_scope(cast.tenant.pk):
        assert not Conversation.objects.get(pk=row.pk).is_pinned


def test_only_groups_of_one_day_leave_the_date_to_their_heading() -> None:
    """Rows under "Today" and "Yesterday" need their hour alone, those under any other heading the day as well."""
    now = timezone.now()
    days = {"today": 0, "yesterday": 1, "week": 4, "pinned": 0}
    groups = days_grouped(
        list(days),
        used_at=lambda name: now - datetime.timedelta(days=days[name]),
        is_pinned=lambda name: name == "pinned",
        zone=datetime.UTC,
    )
    assert {group.rows[0]: group.is_of_day for group in groups} == {
        "today": True,
        "yesterday": True,
        "week": False,
        "pinned": False,
    }
