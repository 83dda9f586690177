"""The admin of tools in a real browser, under the policy: its pages open, and a cell of the matrix is set."""

from __future__ import annotations

from collections.abc import Callable

from django.urls import reverse
from playwright.sync_api import Page, expect

from tests.browser.conftest import sign_in
from tests.cast import Cast

PAGES = (
    "tools_toolsource_changelist",
    "tools_toolsource_add",
    "tools_toolversion_changelist",
    "tools_toolentry_add",
    "tools_toolentry_changes",
    "tools_toolkit_add",
    "tools_toolgrant_changelist",
    "tools_toolgrant_add",
    "tools_exchange",
    "tools_matrix",
    "collections_check",
    "collections_import_changelist",
    "collections_filerevision_changelist",
)


def test_admin_of_tools_keeps_the_policy(new_page: Callable[..., Page], cast: Cast) -> None:
    page = new_page()  # fails on a violation or a script error when it is closed
    sign_in(page, cast.user("owner").email)
    for name in PAGES:
        page.goto(reverse(f"admin:{name}"))
        expect(page.locator("#content h1")).to_be_visible()
    page.goto(reverse("admin:tools_matrix"))
    row = page.locator("tr", has=page.get_by_text("calculate", exact=True))
    row.locator("td a.effect").nth(1).click()
    page.get_by_role("button", name="Deny").click()
    expect(page.locator(".messagelist")).to_contain_text("1 of 1 cell changed")
    expect(row.locator("td a.effect").nth(1)).to_have_text("✕ deny")
