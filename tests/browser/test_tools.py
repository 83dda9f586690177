"""The tools section in a real browser: search as one types, a cell of the matrix and back, a call from its form."""

from __future__ import annotations

import re
from collections.abc import Callable

from playwright.sync_api import APIResponse, Page, Route, expect

from tests.browser.conftest import sign_in
from tests.browser.portal import Portal
from tests.cast import Cast
from tests.servers import wait_for


def test_member_finds_a_tool_and_tries_it(portal: Portal) -> None:
    page = portal.page
    portal.open("tools/")
    page.get_by_label("Search tools").fill("weekday")
    rows = page.locator("#catalog tbody tr")
    expect(rows.filter(has_text="calculate")).to_have_count(0)
    expect(rows.filter(has_text="date_info")).to_have_count(1)
    page.get_by_label("Search tools").fill("calculate")
    rows.filter(has_text="calculate").first.get_by_role("link").click()
    expect(page.get_by_text("This field is required.")).to_have_count(0)
    page.get_by_role("button", name="Run", exact=True).click()
    expect(page.get_by_text("This field is required.")).to_be_visible()
    page.get_by_label("expression").fill("6*7")
    page.get_by_role("button", name="Check permission only").click()
    expect(page.get_by_text("This call would run.")).to_be_visible()
    page.get_by_role("button", name="Run", exact=True).click()
    expect(page.locator(".outcome").get_by_text("42", exact=True)).to_be_visible()
    page.get_by_role("button", name="JSON", exact=True).click()
    expect(page.get_by_label("Arguments as JSON")).to_have_value('{\n  "expression": "6*7"\n}')


def test_list_of_a_call_grows_and_shrinks(portal: Portal) -> None:
    page = portal.page
    portal.open("tools/catalog/search_documents/")
    page.get_by_role("button", name="Add to collections").click()
    page.get_by_label("collections 1", exact=True).fill("First")
    page.get_by_role("button", name="Add to collections").click()
    page.get_by_label("collections 2", exact=True).fill("Second")
    page.get_by_role("button", name="Remove collections 1").click()
    expect(page.get_by_label("collections 2", exact=True)).to_have_count(0)
    expect(page.get_by_label("collections 1", exact=True)).to_have_value("Second")


def test_owner_changes_a_cell_and_takes_it_back(new_page: Callable[..., Page], cast: Cast) -> None:
    page = new_page()
    sign_in(page, cast.user("owner").email)
    page.goto(f"/t/{cast.tenant.slug}/tools/permissions/")
    cell = page.get_by_role("group", name="Viewer, calculate")
    expect(cell.get_by_role("button", name="Allow (current)")).to_be_visible()
    late: list[tuple[Route, APIResponse]] = []
    page.route(re.compile(r"/permissions/\?"), lambda route: late.append((route, route.fetch())), times=1)
    page.get_by_label("Find a tool").fill("calculate")
    wait_for(lambda: page.evaluate("1") and late, "a matrix from before the change")
    changes: list[str] = []
    page.on("request", lambda request: changes.append(request.url) if request.method == "POST" else None)
    cell.get_by_role("button", name="Deny").click()
    page.evaluate("1")  # the requests of the click are told before
    assert changes == [], "it waits for the matrix, which would hide it"
    late[0][0].fulfill(response=late[0][1])
    expect(cell.get_by_role("button", name="Deny (current)")).to_be_visible()
    others = page.get_by_role("group", name="Viewer, date_info")
    expect(others).to_have_count(0)  # as the field says, and not as it said when the matrix before came
    page.get_by_role("button", name="Undo").click()
    expect(page.get_by_text("The change has been undone.")).to_be_visible()
    expect(cell.get_by_role("button", name="Allow (current)")).to_be_visible()
    expect(others).to_have_count(0)
