"""The door: signing in and out, and two workspaces side by side."""

from __future__ import annotations

from collections.abc import Callable

from playwright.sync_api import Page, expect

from tenancy.models import Role
from tests.browser.conftest import sign_in, sign_in_by_form
from tests.browser.portal import Portal
from tests.cast import Cast
from tests.factories import make_collection, make_member


def test_chat_opens_when_a_member_signs_in(new_page: Callable[..., Page], cast: Cast) -> None:
    page = new_page()
    sign_in_by_form(page, cast.user("member").email)
    assert page.url.endswith(f"/t/{cast.tenant.slug}/chat/")
    expect(page.get_by_role("heading", name="Add documents, then ask")).to_be_visible()


def test_reason_is_shown_when_the_password_is_wrong(new_page: Callable[..., Page], cast: Cast) -> None:
    page = new_page()
    page.goto("/accounts/login/")
    page.get_by_label("Email").fill(cast.user("member").email)
    page.get_by_label("Password", exact=True).fill("another-password")
    page.get_by_role("button", name="Sign in").click()
    expect(page.get_by_role("alert")).to_contain_text("is wrong")
    expect(page.get_by_label("Email")).to_have_value(cast.user("member").email)


def test_sign_in_page_comes_first_and_leads_back_when_nobody_is_signed_in(
    new_page: Callable[..., Page], cast: Cast
) -> None:
    page = new_page()
    wanted = f"/t/{cast.tenant.slug}/collections/"
    page.goto(wanted)
    page.get_by_label("Email").fill(cast.user("member").email)
    page.get_by_label("Password", exact=True).fill("secret-password")
    page.get_by_role("button", name="Sign in").click()
    page.wait_for_url(lambda url: url.endswith(wanted))


def test_tabs_stay_apart_when_each_shows_another_workspace(new_page: Callable[..., Page], cast: Cast) -> None:
    make_member(cast.other_tenant, Role.MEMBER, cast.user("member"))
    make_collection(cast.tenant, "Ours alone")
    make_collection(cast.other_tenant, "Theirs alone")
    page = new_page()
    sign_in(page, cast.user("member").email)
    here, there = (Portal(page, cast.tenant.slug), Portal(page.context.new_page(), cast.other_tenant.slug))
    here.open("collections/")
    there.open("collections/")
    here.page.reload()
    expect(here.page.get_by_text("Ours alone")).to_be_visible()
    expect(here.page.get_by_text("Theirs alone")).to_have_count(0)
    expect(there.page.get_by_text("Theirs alone")).to_be_visible()
    here.page.get_by_role("link", name="New collection").click()
    here.page.get_by_label("Name").fill("Made in the first tab")
    here.page.get_by_role("button", name="Create collection").click()
    expect(here.page.get_by_role("heading", name="Made in the first tab")).to_be_visible()
    there.page.reload()
    expect(there.page.get_by_text("Made in the first tab")).to_have_count(0)


def test_nothing_is_shown_when_the_workspace_is_somebody_elses(page: Page, cast: Cast) -> None:
    answer = page.goto(f"/t/{cast.other_tenant.slug}/collections/")
    assert answer is not None
    assert answer.status == 404
    expect(page.get_by_text(cast.other_tenant.name)).to_have_count(0)
