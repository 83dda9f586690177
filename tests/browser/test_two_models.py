"""Two models answer side by side: both stream, both can be stopped, one is kept; with room for one, a switch."""

from __future__ import annotations

from collections.abc import Callable

from playwright.sync_api import Locator, Page, expect

from tests.browser.conftest import Site, sign_in
from tests.browser.portal import ANSWER_MS, Portal, assert_like_fresh
from tests.browser.shots import shot
from tests.browser.test_accessibility import Looking
from tests.browser.test_calm import MOST_SHIFT, WATCH, moved
from tests.browser.test_details import document_ready
from tests.cast import Cast

FIRST, SECOND = "compatible/fake-search-words90-gap40-held", "compatible/fake-words400-gap50-held"


def compare(portal: Portal, text: str) -> None:
    """Ask the chosen model and a second one."""
    portal.page.get_by_label("Compare with").select_option(SECOND)
    portal.ask(text)


def side(portal: Portal, number: int) -> Locator:
    return portal.turns.last.locator(".sides > .asst").nth(number)


def test_two_models_answer_side_by_side_and_one_is_kept(
    portal: Portal, new_page: Callable[..., Page], cast: Cast, site: Site
) -> None:
    page = portal.page
    document_ready(cast, "Notices", "notice.md", b"# Notice\n\nThe notice period is thirty days.\n")
    page.add_init_script(WATCH)
    portal.watch()
    portal.open()
    portal.choose_model(FIRST)
    shot(page, "two-composer")
    expect(page.get_by_label("Compare with").locator(f'option[value="{FIRST}"]')).to_be_disabled()
    compare(portal, "Which one is better?")
    live = page.locator("#turns [data-live]")
    expect(live).to_have_count(2)
    for number in (0, 1):
        expect(side(portal, number).locator(".blocks")).to_contain_text("duty", timeout=ANSWER_MS)
    left, right = side(portal, 0).bounding_box(), side(portal, 1).bounding_box()
    assert left
    assert right
    assert left["y"] == right["y"]
    assert left["x"] + left["width"] <= right["x"]
    shot(page, "two-live")
    page.reload()  # in the middle: both go on
    expect(live).to_have_count(2)
    expect(page.locator(".turn .user")).to_have_count(1)
    side(portal, 1).get_by_role("button", name="Stop", exact=True).click()
    expect(live).to_have_count(1)
    expect(side(portal, 1)).to_contain_text("Stopped")
    site.model_server.release()
    portal.wait_end()
    total, moves = moved(page, 0)
    assert total <= MOST_SHIFT, moves
    assert_like_fresh(portal)
    shot(page, "two-ended")
    page.get_by_text("Also send my choice as feedback").click()
    side(portal, 1).get_by_role("button", name="Keep this answer").press("Enter")
    expect(page.locator(".sides")).to_have_count(0)
    expect(page.get_by_label("Message")).to_be_focused()
    kept = portal.turns.last
    expect(kept.get_by_text("Kept", exact=True)).to_be_visible()
    expect(kept.get_by_role("button", name="Good answer")).to_have_attribute("aria-pressed", "true")
    shot(page, "two-kept")
    assert_like_fresh(portal)
    page.get_by_role("button", name="Earlier version").click()
    expect(kept.get_by_role("button", name="Keep this answer")).to_be_visible()
    expect(kept.get_by_text("fake-search-words90")).to_be_visible()
    page.get_by_role("button", name="Later version").click()

    site.model_server.hold()
    compare(portal, "And once more?")
    expect(live).to_have_count(2)
    expect(page.get_by_label("Compare with")).to_have_value("")
    page.keyboard.press("Escape")
    portal.wait_end()
    expect(portal.turns.last.get_by_text("Stopped", exact=True)).to_have_count(2)

    phone = new_page(bypass_csp=True)
    sign_in(phone, cast.user("member").email)
    problems: list[str] = []
    Looking(phone, problems).at({"two-models": page.url})
    assert problems == []
    phone.set_viewport_size({"width": 390, "height": 844})
    sides = phone.locator(".sides > .asst")
    expect(sides.first).to_be_visible()
    expect(sides.last).to_be_hidden()
    phone.locator(".side-switch input").first.press("ArrowRight")
    expect(sides.last).to_be_visible()
    expect(sides.first).to_be_hidden()
    shot(phone, "two-phone")
    portal.ask("What follows?", "extractive")
    portal.wait_end()
    expect(page.locator(".sides")).to_have_count(0)
    assert_like_fresh(portal)
