"""An editor makes an assistant, tries a draft, publishes it and takes that back; a viewer asks it."""

from __future__ import annotations

import re
from collections.abc import Callable

from playwright.sync_api import Page, expect

from tests.browser.conftest import sign_in
from tests.browser.portal import Portal
from tests.cast import Cast


def test_assistant_is_made_tried_published_and_asked(
    portal: Portal, new_page: Callable[..., Page], cast: Cast
) -> None:
    page = portal.page
    portal.create_collection("Entry rules")
    portal.upload({"name": "r.txt", "mimeType": "text/plain", "buffer": b"Lots are kept for 7 years."})
    portal.expect_ready("r.txt")
    portal.open("assistants/")
    page.get_by_role("link", name="Create one").click()
    page.get_by_label("Name", exact=True).fill("Entry clerk")
    page.get_by_label("Instructions").fill("Be brief.")
    # Another mode keeps what was typed.
    page.get_by_role("button", name="Quick").click()
    expect(page.get_by_label("Name", exact=True)).to_have_value("Entry clerk")
    page.get_by_label("Passages optional", exact=True).fill("99")
    page.get_by_label("Starters").fill("How long are lots kept?")
    page.get_by_role("button", name="Create assistant").click()
    expect(page.get_by_text("less than or equal to 50")).to_be_visible()
    page.get_by_label("Passages optional", exact=True).fill("5")
    page.get_by_role("button", name="Create assistant").click()
    expect(page.get_by_text("Version 1 is saved.")).to_be_visible()
    home = page.url

    page.get_by_label("Question").fill("How long?")
    page.get_by_role("button", name="Ask this version").click()
    page.wait_for_url(re.compile(r"/chat/\d+/"))
    expect(page.get_by_role("link", name="Answered by Entry clerk, version 1")).to_be_visible()
    portal.wait_end()

    page.goto(home)
    page.get_by_role("button", name="Publish version 1").click()
    expect(page.get_by_text("version 1 is published", exact=True)).to_be_visible()
    page.get_by_role("button", name="Undo").click()
    expect(page.get_by_text("not published", exact=True)).to_be_visible()
    page.get_by_role("button", name="Publish version 1").click()

    page.get_by_role("link", name="New version").click()
    page.get_by_label("Instructions").fill("Be brief.\nName the lot.")
    page.get_by_label("What changed").fill("Names lots")
    page.get_by_role("button", name="Save as a new version").click()
    page.get_by_role("link", name="Version 2").click()
    expect(page.locator(".lines .added")).to_have_text(re.compile(r"Name the lot\."))

    viewer = new_page()
    sign_in(viewer, cast.user("viewer").email)
    viewer.goto(f"/t/{cast.tenant.slug}/chat/")
    viewer.get_by_role("link", name="Entry clerk").click()
    viewer.get_by_role("button", name="How long are lots kept?").click()
    expect(viewer.get_by_label("Message")).to_have_value("How long are lots kept?")
    viewer.get_by_role("button", name="Send").click()
    viewer.wait_for_url(re.compile(r"/chat/\d+/"))
    expect(viewer.get_by_role("link", name="Answered by Entry clerk", exact=True)).to_be_visible()
    Portal(viewer, cast.tenant.slug).wait_end()
    viewer.goto(home)
    expect(viewer.get_by_role("button", name="Publish")).to_have_count(0)
