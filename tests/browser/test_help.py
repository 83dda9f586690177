"""The "?" of a page and a term that explains itself, by keyboard and by tap, and the guide they lead to."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from playwright.sync_api import Page, expect

from tests.browser.conftest import sign_in
from tests.browser.portal import Portal
from tests.browser.test_accessibility import NARROW, WIDE, examine
from tests.cast import Cast
from tests.evaluations.support import make_compared


def test_help_opens_by_keyboard_and_leads_to_the_guide(portal: Portal) -> None:
    page = portal.page
    portal.open("collections/")
    button = page.get_by_role("button", name="What is this page for?")
    button.focus()
    page.keyboard.press("Enter")
    said = page.get_by_text("A collection holds documents that belong together.")
    expect(page.locator("#page-help").filter(has=said)).to_be_visible()
    page.keyboard.press("Escape")
    expect(page.locator("#page-help")).to_be_hidden()
    expect(button).to_be_focused()
    page.keyboard.press("Enter")
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    page.wait_for_url("**/help/documents/")
    expect(page.get_by_role("heading", level=1)).to_have_text("Add documents")
    picture = page.locator(".guide img").first
    expect(picture).to_be_visible()
    chosen = picture.evaluate("(img) => img.decode().then(() => img.currentSrc)")
    assert "/collections.webp?" in chosen, "a window of one pixel a point needs no more"
    page.get_by_role("link", name="Test and tune search").click()
    page.wait_for_url("**/help/search/")
    page.get_by_role("link", name="Guide", exact=True).click()
    expect(page).to_have_title(re.compile("Guide to Groundwork"))


def test_term_explains_itself_to_eyes_ears_and_thumbs(
    cast: Cast, new_page: Callable[..., Page], portal: Portal
) -> None:
    a, _ = make_compared(cast, rows=4)
    portal.open(f"evaluations/{a.experiment_id}/")
    term = portal.page.get_by_role("button", name="Arm", exact=True)
    expect(term).to_have_accessible_description(re.compile("^One setup that is tested"))
    term.focus()
    portal.page.keyboard.press("Enter")
    expect(portal.page.locator("#term-arm")).to_be_in_viewport(ratio=1)
    phone = new_page(has_touch=True, viewport=NARROW)
    sign_in(phone, cast.user("owner").email)
    phone.goto(portal.page.url)
    phone.get_by_role("button", name="Arm", exact=True).tap()
    expect(phone.locator("#term-arm")).to_be_in_viewport(ratio=1)


def test_open_help_and_the_guide_pass_axe(new_page: Callable[..., Page], cast: Cast) -> None:
    problems: list[str] = []
    looks: list[tuple[Any, Any]] = [(WIDE, "light"), (NARROW, "dark")]
    page = new_page(bypass_csp=True)
    sign_in(page, cast.user("owner").email)
    for size, scheme in looks:
        page.set_viewport_size(size)
        page.emulate_media(color_scheme=scheme, reduced_motion="reduce")
        page.goto(f"/t/{cast.tenant.slug}/collections/")
        page.get_by_role("button", name="What is this page for?").click()
        examine(page, "open-help", scheme, problems)
        page.goto("/help/unsupported/")
        examine(page, "guide", scheme, problems)
    assert problems == []
