"""A first question stays where it is read from, and the list of conversations is kept in order (details 2 and 20)."""

from __future__ import annotations

import datetime
import re
from collections.abc import Callable
from zoneinfo import ZoneInfo

import pytest
from playwright.sync_api import APIResponse, Locator, Page, Route, expect

from apps.conversations.models import Conversation
from apps.conversations.turns.conversations import conversation_create
from tenancy.scope import tenant_scope
from tests.browser.conftest import Site, sign_in
from tests.browser.portal import Portal, assert_like_fresh
from tests.browser.shots import shot
from tests.cast import Cast
from tests.nightly import NIGHTLY
from tests.servers import wait_for

SAID = "fake-said"
LONG = "fake-words600-gap10"
PLACE = """() => {
  const m = document.getElementById("msgs").getBoundingClientRect();
  return document.querySelector(".turn .user").getBoundingClientRect().top - m.top;
}"""
PHONE = {"viewport": {"width": 390, "height": 844}, "has_touch": True, "is_mobile": True}


def at_the_top(page: Page) -> bool:
    place: float = page.evaluate(PLACE)
    return 0 <= place < 60


def test_first_question_stays_at_the_top_while_its_answer_grows_and_after_a_reload(portal: Portal) -> None:
    page = portal.page
    page.set_viewport_size({"width": 700, "height": 480})
    portal.open()
    portal.ask("Tell me everything", LONG)
    portal.wait_words(150)  # more than fits beneath the question
    assert at_the_top(page)
    jump = page.get_by_role("button", name="Jump to latest")
    expect(jump).to_be_visible()
    page.reload()
    portal.wait_words(200)
    assert at_the_top(page)
    jump.click()  # from here on the reader follows
    portal.wait_words(260)
    assert not at_the_top(page)
    page.keyboard.press("Escape")
    portal.wait_end()
    assert_like_fresh(portal)


SAMPLES = 10 if NIGHTLY else 3


def test_first_question_is_at_the_top_in_each_of_several_conversations(portal: Portal) -> None:
    page = portal.page
    page.set_viewport_size({"width": 700, "height": 480})
    tops = []
    for number in range(SAMPLES):
        portal.open()
        portal.ask(f"Tell me everything of chapter {number}", LONG)
        portal.wait_words(150)
        tops.append(at_the_top(page))
        page.keyboard.press("Escape")
        portal.wait_end()
        tops.append(at_the_top(page))
    assert tops == [True] * 2 * SAMPLES


def test_first_question_is_at_the_top_when_its_answer_is_there_before_its_page(
    portal: Portal, site: Site
) -> None:
    page = portal.page
    page.set_viewport_size({"width": 700, "height": 480})
    site.model_server.replies[SAID] = lambda body: "\n\n".join(f"Paragraph {n}." for n in range(60))
    try:
        portal.open()
        portal.ask("Tell me everything", SAID)
        portal.wait_end()
        assert at_the_top(page)
        page.reload()  # the whole answer comes with the page
        expect(page.get_by_role("button", name="Jump to latest")).to_be_visible()
        assert at_the_top(page)
        portal.ask("And more", SAID)
        portal.wait_end()
        page.reload()  # a longer conversation opens at its end
        expect(page.get_by_role("button", name="Jump to latest")).to_be_hidden()
        assert not at_the_top(page)
    finally:
        site.model_server.replies.clear()


def zone_at(hour: int) -> str:
    """Return a time zone where it is this hour now: no midnight comes while a test runs."""
    ahead = (hour - datetime.datetime.now(datetime.UTC).hour + 12) % 24 - 12
    return f"Etc/GMT{-ahead:+d}" if ahead else "UTC"


@pytest.fixture
def many(cast: Cast) -> list[int]:
    """Conversations of the member, last used today, yesterday, some days ago and in months before."""
    now = datetime.datetime.now(datetime.UTC)
    ages = {
        "Notice periods in the tariff": 0,
        "Which forms does a move need?": 0,
        "Draft of the answer to the works council about shifts on holidays": 1,
        "Travel costs": 3,
        "Warranty of the pumps": 5,
        "Storage temperatures": 60,
        "Old handbook": 500,
    }
    with tenant_scope(cast.tenant.pk):
        rows = [
            conversation_create(tenant=cast.tenant, actor=cast.actor("member"), title=title) for title in ages
        ]
        for row, days in zip(rows, ages.values(), strict=True):
            used = now - datetime.timedelta(days=days)
            Conversation.objects.filter(pk=row.pk).update(updated_at=used)
    return [row.pk for row in rows]


def row_of(place: Locator, title: str) -> Locator:
    return place.get_by_role("listitem").filter(has_text=title)


def test_conversations_are_grouped_by_day_and_pinned_renamed_and_deleted_from_the_side_bar(
    new_page: Callable[..., Page], cast: Cast, many: list[int]
) -> None:
    page = new_page(timezone_id=zone_at(12))
    page.add_init_script(
        "window.setInterval = () => 0"
    )  # what changes here comes at once, not at the next look
    sign_in(page, cast.user("member").email)
    page.goto(f"/t/{cast.tenant.slug}/chat/{many[0]}/")
    side = page.locator("#recent-a")
    headings = side.get_by_role("heading")
    expect(headings).to_contain_text(["Today", "Yesterday", "Previous 7 days"])
    row = row_of(side, "Travel costs")
    row.hover()
    row.get_by_role("button", name="Options for Travel costs").click()
    menu = page.locator("#conv-menu")
    shot(page, "row-menu")
    menu.get_by_role("button", name="Pin").click()
    expect(headings.first).to_have_text("Pinned")
    expect(menu).to_be_hidden()
    expect(side.get_by_role("listitem").first).to_contain_text("Travel costs")
    row_of(side, "Travel costs").get_by_role("button").focus()  # by keyboard
    page.keyboard.press("Enter")
    expect(menu.get_by_role("button", name="Unpin")).to_be_focused()
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    page.get_by_label("Title").fill("Costs of travel")
    shot(page, "row-rename")
    late: list[tuple[Route, APIResponse]] = []
    page.route("**/recent/**", lambda route: late.append((route, route.fetch())), times=1)
    page.evaluate("document.dispatchEvent(new Event('gw:listed'))")
    wait_for(lambda: page.evaluate("1") and late, "a list from before the change")
    page.keyboard.press("Enter")
    expect(page.locator("#conv-rename")).to_be_hidden()
    late[0][0].fulfill(response=late[0][1])
    expect(row_of(side, "Costs of travel")).to_be_visible()
    shot(page, "side-bar")
    row = row_of(side, "Old handbook")
    row.hover()
    row.get_by_role("button").click()
    menu.get_by_role("button", name="Delete").click()
    asked = page.get_by_role("dialog", name="Delete this conversation?")
    expect(asked).to_contain_text("Old handbook")
    erase = asked.get_by_role("link", name="Erase…")
    expect(erase).to_have_attribute("href", re.compile(rf"/chat/{many[-1]}/erase/$"))
    shot(page, "row-delete")
    asked.get_by_role("button", name="Delete").click()
    expect(row_of(side, "Old handbook")).to_have_count(0)
    expect(page.get_by_role("heading", level=1)).to_have_text(
        "Notice periods in the tariff"
    )  # the page stays
    page.locator("#open-menu").click()
    menu.get_by_role("button", name="Rename").click()
    page.get_by_label("Title").fill("Notice")
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", level=1)).to_have_text("Notice")
    page.locator("#open-menu").click()
    expect(menu.get_by_role("heading")).to_have_text("Notice")
    menu.get_by_role("button", name="Delete").click()
    asked.get_by_role("button", name="Delete").click()
    page.wait_for_url(re.compile(r"/chat/$"))
    expect(page.get_by_text("“Notice” is deleted.")).to_be_visible()
    page.get_by_role("link", name="All conversations").first.click()
    shot(page, "all-conversations")
    row_of(page.locator("#convs"), "Costs of travel").get_by_role("button").click()
    menu.get_by_role("button", name="Unpin").click()
    expect(page.locator("#convs").get_by_role("heading").first).to_have_text("Today")


def test_conversations_are_managed_on_a_phone(
    new_page: Callable[..., Page], cast: Cast, many: list[int]
) -> None:
    page = new_page(**PHONE)
    sign_in(page, cast.user("member").email)
    page.goto(f"/t/{cast.tenant.slug}/chat/{many[0]}/")
    shown = page.locator("#drawer")
    page.get_by_role("button", name="Open navigation").tap()
    side = shown.locator("#recent-b")
    button = row_of(side, "Storage temperatures").get_by_role("button")
    button.scroll_into_view_if_needed()
    expect(button).to_have_css("opacity", "1")
    button.tap()
    menu = page.locator("#conv-menu")
    expect(menu).to_be_visible()
    menu.get_by_role("button", name="Pin").tap()
    expect(side.get_by_role("listitem").first).to_contain_text("Storage temperatures")
    row_of(side, "Storage temperatures").get_by_role("button").tap()
    menu.get_by_role("button", name="Rename").tap()
    page.get_by_label("Title").fill("Cold store")
    page.get_by_role("dialog", name="Rename conversation").get_by_role("button", name="Rename").tap()
    expect(row_of(side, "Cold store")).to_be_visible()
    row_of(side, "Travel costs").get_by_role("button").tap()
    menu.get_by_role("button", name="Delete").tap()
    page.get_by_role("dialog", name="Delete this").get_by_role("button", name="Delete").tap()
    expect(row_of(side, "Travel costs")).to_have_count(0)
    expect(shown).to_be_visible()


def test_days_are_those_of_the_readers_time_zone(
    new_page: Callable[..., Page], cast: Cast, many: list[int]
) -> None:
    """Two browsers of one person, half a day apart: each groups by its own midnight, from its first page on."""
    now = datetime.datetime.now(datetime.UTC)
    for zone in (zone_at(6), zone_at(18)):
        yesterday = now.astimezone(ZoneInfo(zone)) - datetime.timedelta(days=1)
        with tenant_scope(cast.tenant.pk):
            late = yesterday.replace(hour=23, minute=30)
            Conversation.objects.filter(pk=many[1]).update(updated_at=late)
        page = new_page(timezone_id=zone)
        sign_in(page, cast.user("member").email)
        page.goto(f"/t/{cast.tenant.slug}/chat/all/")
        group = page.get_by_role("region", name="Yesterday")
        expect(row_of(group, "Which forms")).to_contain_text("23:30")
