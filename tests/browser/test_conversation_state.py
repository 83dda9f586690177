"""Branches, waiting questions, drafts, feedback, shares and search, as a person uses them."""

from __future__ import annotations

import re
from collections.abc import Callable

from playwright.sync_api import APIResponse, Page, Route, expect

from apps.conversations.models import Turn
from tenancy.scope import tenant_scope
from tests.browser.conftest import sign_in
from tests.browser.portal import Portal, assert_like_fresh
from tests.browser.shots import shot
from tests.cast import Cast
from tests.servers import wait_for

SHORT = "fake-search-words40-gap15"
LONG = "fake-words400-gap50-held"


def test_edit_and_regenerate_make_versions_to_switch_between(portal: Portal) -> None:
    page = portal.page
    portal.ask("What is the duty?", SHORT)
    portal.wait_end()
    portal.ask("And later?")
    portal.wait_end()
    portal.box.press("ArrowUp")
    edit = page.get_by_label("Your edited question")
    expect(edit).to_be_focused()
    edit.press("Escape")
    expect(edit).to_have_count(0)

    first = portal.turns.first
    first.hover()
    first.get_by_role("button", name="Edit this question").click()
    edit.fill("What is the duty on trucks?")
    shot(page, "edit")
    edit.press("Enter")
    expect(portal.turns).to_have_count(1)
    expect(portal.turns.first.locator(".user")).to_have_text("What is the duty on trucks?")
    portal.wait_end()
    switch = page.get_by_role("group", name="Versions of this question")
    expect(switch).to_contain_text("Version 2 of 2")
    assert_like_fresh(portal)

    page.get_by_role("button", name="Regenerate").click()
    expect(switch).to_contain_text("Version 3 of 3")
    portal.wait_end()
    shot(page, "versions")
    for place in ("Version 2 of 3", "Version 1 of 3"):
        page.get_by_role("button", name="Earlier version").click()
        expect(switch).to_contain_text(place)
    expect(portal.turns).to_have_count(2)
    expect(portal.turns.last.locator(".user")).to_have_text("And later?")
    assert_like_fresh(portal)

    late: list[Route] = []
    page.route("**/choose/", lambda route: late.append(route))
    page.get_by_role("button", name="Later version").click()
    portal.box.fill("Asked before the other version is shown")
    portal.box.press("Enter")
    expect(portal.box).to_have_value("")
    late[0].continue_()
    expect(switch).to_contain_text("Version 2 of 3")
    expect(portal.turns.last.locator(".user")).to_have_text("Asked before the other version is shown")
    portal.wait_end()
    assert_like_fresh(portal)

    portal.turns.first.hover()
    portal.turns.first.get_by_role("button", name=re.compile("^Continue from here")).click()
    old = page.url
    page.wait_for_url(lambda url: url != old)
    expect(portal.turns).to_have_count(1)


def turns_of(cast: Cast) -> int:
    with tenant_scope(cast.tenant.pk):
        return Turn.objects.count()


def test_question_waits_and_is_asked_after_the_answer(portal: Portal, cast: Cast) -> None:
    page = portal.page
    portal.ask("Tell me everything", LONG)
    portal.wait_words(3)
    for text, tool in (("Then what?", ""), ("And after that?", "#calc")):
        portal.box.fill(text)
        if tool:
            portal.box.press_sequentially(f" {tool}")
            expect(page.get_by_role("option").first).to_contain_text("Calculator")
            portal.box.press("Enter")
        portal.box.press("Enter")
        expect(page.locator("#queue")).to_contain_text(text)
    expect(page.locator(".qitem").last).to_contain_text("1 tool only")
    only = page.get_by_role("list", name="Only for this question").get_by_role("listitem")
    expect(only).to_have_count(0)
    shot(page, "queue")
    portal.box.fill("Typed meanwhile")
    late: list[Route] = []
    page.route(re.compile(r"/queue/\?"), lambda route: late.append(route))
    portal.box.press("Escape")
    wait_for(lambda: turns_of(cast) == 2, "the question that waits, asked behind the page's back")
    page.get_by_role("button", name="Edit queued question").last.click()
    expect(portal.box).to_have_value("And after that?\n\nTyped meanwhile")
    expect(only).to_have_text(["Calculator"])
    expect(portal.turns).to_have_count(2)
    expect(portal.turns.last.locator(".user")).to_have_text("Then what?")
    page.unroute(re.compile(r"/queue/\?"))
    expect(page.locator(".qitem")).to_have_count(0)
    expect(portal.turns.first.get_by_text("Stopped", exact=True)).to_be_visible()
    portal.box.press("Escape")
    portal.wait_end()
    page.get_by_role("button", name="Continue", exact=True).last.click()
    expect(portal.turns).to_have_count(3)
    portal.box.press("Escape")
    portal.wait_end()
    assert_like_fresh(portal)


def test_draft_follows_its_owner_to_another_browser(
    portal: Portal, new_page: Callable[..., Page], cast: Cast
) -> None:
    portal.ask("What is the duty?", SHORT)
    portal.wait_end()
    page = portal.page
    with page.expect_response("**/draft/"):
        portal.box.press_sequentially("Half a thou")
    other = new_page()
    sign_in(other, cast.user("member").email)
    other.goto(page.url)
    expect(other.get_by_label("Message")).to_have_value("Half a thou")
    shot(other, "draft")

    held: list[Route] = []
    page.route("**/draft/", lambda route: held.append(route))
    with page.expect_request("**/draft/"):
        portal.box.press_sequentially("ght")
    portal.box.press("Enter")
    portal.wait_end()
    with page.expect_response("**/draft/"):
        held[0].continue_()  # behind its question
    other.reload()
    expect(other.locator(".turn .user").last).to_have_text("Half a thought")
    expect(other.get_by_label("Message")).to_have_value("")
    other.get_by_label("Message").fill("Asked in a tab that doesn't show all")
    portal.ask("Asked in the first tab", SHORT)
    portal.wait_end()
    other.get_by_label("Message").press("Enter")
    theirs = Portal(other, portal.slug)
    expect(theirs.turns).to_have_count(4)
    theirs.wait_end()
    assert_like_fresh(theirs)


def test_feedback_with_a_reason_stays_and_can_be_undone(portal: Portal) -> None:
    page = portal.page
    portal.ask("What is the duty?", SHORT)
    portal.wait_end()
    page.get_by_role("button", name="Bad answer").click()
    page.get_by_text("Something is missing").click()
    page.get_by_label("Comment").fill("No number.")
    shot(page, "feedback")
    page.get_by_role("button", name="Send", exact=True).first.click()
    expect(page.get_by_text("Thank you")).to_be_visible()
    page.reload()
    bad = page.get_by_role("button", name="Bad answer")
    expect(bad).to_have_attribute("aria-pressed", "true")
    bad.click()
    expect(bad).to_have_attribute("aria-pressed", "false")


def test_share_is_read_by_a_member_until_it_is_revoked(
    portal: Portal, new_page: Callable[..., Page], cast: Cast
) -> None:
    page = portal.page
    portal.ask("What is the duty?", SHORT)
    portal.wait_end()
    page.get_by_role("button", name="Share or export").click()
    page.get_by_role("button", name="Create link").click()
    link = page.get_by_label(re.compile("^Link from")).input_value()
    reader = new_page()
    sign_in(reader, cast.user("viewer").email)
    reader.goto(link)
    expect(reader.locator(".user")).to_have_text("What is the duty?")
    shot(reader, "shared")
    page.keyboard.press("Escape")
    page.get_by_role("button", name="Share or export").click()
    expect(page.locator("#shares")).to_contain_text("Opened by")
    shot(page, "share")
    page.get_by_role("button", name="Revoke").click()
    expect(page.locator("#shares")).to_contain_text("No links yet")
    reader.reload()
    expect(reader.locator(".user")).to_have_count(0)
    page.keyboard.press("Escape")
    late: list[tuple[Route, APIResponse]] = []
    page.route("**/shares/", lambda route: late.append((route, route.fetch())), times=1)
    page.get_by_role("button", name="Share or export").click()
    wait_for(lambda: page.evaluate("1") and late, "the links, read before there is one")
    page.get_by_role("button", name="Create link").click()
    links = page.get_by_label(re.compile("^Link from"))
    expect(links).to_have_count(1)
    late[0][0].fulfill(response=late[0][1])
    page.evaluate("new Promise((done) => setTimeout(() => requestAnimationFrame(done)))")
    expect(links).to_have_count(1)


def test_conversations_are_listed_and_found_by_what_was_said(portal: Portal) -> None:
    page = portal.page
    portal.ask("What about unicorns?", SHORT)
    portal.wait_end()
    page.get_by_role("link", name="All conversations").first.click()
    shot(page, "list")
    page.get_by_label("Search your conversations").fill("unicor")
    page.keyboard.press("Enter")
    expect(page.locator(".convs mark")).to_have_text("unicorns")
    shot(page, "search")
    page.wait_for_load_state()  # its scripts: the words are there before them
    page.keyboard.press("Control+k")
    page.get_by_role("combobox").fill("unicor")
    expect(page.get_by_role("option").first).to_contain_text("unicorns")
    shot(page, "palette")
