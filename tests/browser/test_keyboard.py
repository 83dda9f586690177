"""The main job without a mouse: sign in, documents, scope, question, approval, source, branch, sign out."""

from __future__ import annotations

import re
from collections.abc import Callable

from playwright.sync_api import Locator, Page, expect

from apps.tools.permissions.services import grant_create
from tests.browser.portal import READY_MS, Portal
from tests.cast import Cast

MODEL = "fake-search-words40-gap15"
QUESTION = "Which tariffs does the notice add?"
# A field may show its focus on the box around it.
RING = """() => {
  for (let el = document.activeElement, up = 0; el && up < 3; el = el.parentElement, up++) {
    const style = getComputedStyle(el);
    if (style.outlineStyle !== "none" && parseFloat(style.outlineWidth) > 0) return true;
  }
  return false;
}"""


def go_to(page: Page, target: Locator, key: str = "Tab") -> None:
    """Press Tab until the target has the focus, and check that one can see it."""
    expect(target).to_be_visible()
    for _ in range(120):
        if target.evaluate("(el) => el === document.activeElement"):
            break
        page.keyboard.press(key)
    expect(target).to_be_focused()
    assert page.evaluate(RING), f"no focus ring: {target}"


def push(page: Page, target: Locator, key: str = "Tab") -> None:
    """Go to a button or link and press Enter."""
    go_to(page, target, key)
    page.keyboard.press("Enter")


def test_main_job_is_done_without_a_mouse(new_page: Callable[..., Page], cast: Cast) -> None:
    """Detail 19, and 14, 16 and 18 by keyboard."""
    grant_create(
        tenant=cast.tenant,
        actor=cast.actor("owner"),
        effect="ask",
        target_kind="tool",
        target="search_documents",
    )
    page = new_page()
    page.on("filechooser", lambda _: None)  # heard from now on: asking at the press comes too late at times
    page.goto("/accounts/login/")
    portal = Portal(page, cast.tenant.slug)
    go_to(page, page.get_by_label("Email"))
    page.keyboard.type(cast.user("member").email)
    go_to(page, page.get_by_label("Password", exact=True))
    page.keyboard.type("secret-password")
    page.keyboard.press("Enter")
    page.wait_for_url("**/chat/")

    push(page, page.get_by_role("button", name="Add a sample collection"))
    expect(page.get_by_role("heading", name="Section 232 tariffs")).to_be_visible()
    page.wait_for_load_state()
    with page.expect_file_chooser():
        page.keyboard.press("u")
    page.keyboard.press("?")
    keys = page.get_by_role("dialog", name="Keyboard shortcuts")
    expect(keys).to_be_visible()
    page.keyboard.press("Escape")
    expect(keys).to_be_hidden()
    portal.expect_ready("federal-register-2025-15819.pdf", "hts-chapter-99-note-33-automobiles.txt")

    page.keyboard.press("c")
    page.wait_for_url("**/chat/")
    page.wait_for_load_state()
    expect(portal.box).to_be_focused()
    push(page, page.get_by_role("button", name="Search in"))
    go_to(page, page.get_by_role("combobox", name="Find a collection to search"))
    choice = page.locator("#scope-menu").get_by_role("option", name="Section 232 tariffs")
    expect(choice).to_have_attribute("aria-selected", "true")
    page.keyboard.press("Enter")
    page.keyboard.press("Escape")
    scope = page.get_by_role("button", name="Search in")
    expect(scope).to_have_text(re.compile("Section 232 tariffs"))
    expect(scope).to_be_focused()
    go_to(page, page.get_by_label("Model", exact=True))
    page.keyboard.type(MODEL)
    expect(page.get_by_label("Model", exact=True)).to_have_value(f"compatible/{MODEL}")
    go_to(page, portal.box, "Shift+Tab")
    page.keyboard.type(QUESTION)
    page.keyboard.press("Enter")
    page.wait_for_url(re.compile(r"/chat/\d+/"))
    page.wait_for_load_state()
    approve = page.get_by_role("button", name="Approve")
    expect(approve).to_be_visible(timeout=READY_MS)
    push(page, approve)
    portal.wait_end()

    push(page, portal.answer.locator("button.cite").first)
    expect(page.locator("details.src[open] .leaf mark")).to_be_in_viewport()
    push(page, page.locator("details.src[open]").get_by_role("link", name=re.compile("^Open")))
    page.wait_for_url(re.compile(r"/documents/\d+/\?.*chunk=\d+"))
    page.keyboard.press("Control+k")
    search = page.get_by_role("combobox")
    expect(search).to_be_focused()
    page.keyboard.type("Which tariffs")
    page.keyboard.press("Enter")  # before the list has come: it is not lost, and means what is typed
    page.wait_for_url(re.compile(r"/chat/\d+/"))
    page.wait_for_load_state()

    page.keyboard.press("/")
    expect(portal.box).to_be_focused()
    page.keyboard.press("ArrowUp")
    edit = page.get_by_label("Your edited question")
    expect(edit).to_be_focused()
    page.keyboard.type(" Since when?")
    page.keyboard.press("Enter")
    switch = page.get_by_role("group", name="Versions of this question")
    expect(switch).to_contain_text("Version 2 of 2")
    expect(approve).to_be_visible(timeout=READY_MS)
    push(page, approve)
    portal.wait_end()
    push(page, page.get_by_role("button", name="Earlier version"), "Shift+Tab")
    expect(switch).to_contain_text("Version 1 of 2")
    expect(portal.turns.last.locator(".user")).to_have_text(QUESTION)

    push(page, page.get_by_role("button", name="Account and theme"))
    push(page, page.get_by_role("button", name="Sign out"))
    page.wait_for_url("**/accounts/login/**")
