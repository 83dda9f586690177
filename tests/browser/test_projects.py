"""Projects from the side bar to a conversation in one, and several conversations changed at once."""

from __future__ import annotations

import re
from collections.abc import Callable

from playwright.sync_api import Page, expect

from apps.conversations.turns.conversations import conversation_create
from tenancy.scope import tenant_scope
from tests.browser.conftest import sign_in
from tests.browser.shots import shot
from tests.browser.test_conversation_list import PHONE, row_of
from tests.cast import Cast
from tests.conversations.support import make_library


def test_project_is_created_filled_asked_in_and_deleted(new_page: Callable[..., Page], cast: Cast) -> None:
    library = make_library(cast)
    titles = ("Notice periods", "Deposits", "Travel costs")
    with tenant_scope(cast.tenant.pk):
        for title in titles:
            conversation_create(tenant=cast.tenant, actor=cast.actor("member"), title=title)
    page = new_page()
    sign_in(page, cast.user("member").email)
    page.goto(f"/t/{cast.tenant.slug}/chat/")
    fold = page.locator(".app > .side .fold")
    fold.locator("summary").click()
    fold.get_by_role("link", name="Create your first project").click()
    shot(page, "projects-empty")  # the fold is as it was left, on the next page too
    expect(fold.get_by_role("link", name="Create your first project")).to_be_visible()
    page.get_by_label("Name of the new project").fill("Leases 2026")
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", name="Leases 2026")).to_be_visible()
    shot(page, "project-new")
    page.get_by_role("link", name="Edit project").click()
    page.get_by_label("Instructions").fill("Answer for tenants, without legal terms.\nName the clause.")
    page.get_by_label(library.collection.name).check()
    page.get_by_label("Everyone in the workspace").check()
    page.get_by_label("Chosen members", exact=True).check()
    page.get_by_label(cast.user("viewer").email).check()
    shot(page, "project-form")
    page.get_by_role("button", name="Save project").click()
    expect(page.get_by_text("Name the clause.")).to_be_visible()

    row_of(page.locator(".app > .side .recent"), "Deposits").hover()  # one by its menu
    page.locator(".app > .side").get_by_role("button", name="Options for Deposits").click()
    page.locator("#conv-menu").get_by_role("button", name="Move to project…").click()
    page.get_by_role("dialog", name="Move to a project").get_by_label("Project").select_option("Leases 2026")
    shot(page, "project-move")
    page.get_by_role("dialog", name="Move to a project").get_by_role("button", name="Move").click()
    row_of(page.locator(".app > .side .recent"), "Deposits").hover()
    page.locator(".app > .side").get_by_role("button", name="Options for Deposits").click()
    page.locator("#conv-menu").get_by_role("button", name="Move to project…").click()
    chosen = page.get_by_role("dialog", name="Move to a project").get_by_label("Project")
    expect(chosen.locator("option:checked")).to_have_text("Leases 2026")
    page.keyboard.press("Escape")
    page.goto(f"/t/{cast.tenant.slug}/chat/all/")
    bar = page.get_by_role("form", name="With the selected conversations")
    expect(bar).to_be_hidden()
    box = page.get_by_label("Choose Deposits").bounding_box()
    assert box is not None
    assert max(box["width"], box["height"]) <= 24, "a check box, not a field"
    for title in ("Notice periods", "Travel costs"):
        page.get_by_label(f"Choose {title}").check()
    page.evaluate("document.dispatchEvent(new Event('gw:listed'))")  # the list asks for itself meanwhile
    bar.get_by_label("Project to move to").select_option("Leases 2026")
    shot(page, "projects-bulk")
    bar.get_by_role("button", name="Archive").click()
    expect(page.get_by_text("2 conversations archived.")).to_be_visible()
    expect(page.locator("#convs").get_by_role("listitem")).to_have_count(1)
    shot(page, "projects-undo")
    page.get_by_role("button", name="Undo").click()
    page.get_by_label("Choose Notice periods").check()
    bar.get_by_role("button", name="Delete").click()
    expect(row_of(page.locator("#convs"), "Notice periods")).to_have_count(0)
    page.get_by_role("button", name="Undo").click()
    expect(row_of(page.locator("#convs"), "Notice periods")).to_be_visible()

    fold.get_by_role("link", name="Leases 2026").click()
    expect(row_of(page.locator("#convs"), "Deposits")).to_be_visible()
    shot(page, "project-page")
    page.get_by_role("link", name="New conversation here").first.click()
    expect(page.locator("#scope-label")).to_have_text(library.collection.name)
    shot(page, "project-home")
    page.get_by_label("Message", exact=True).fill("What is the notice period?")
    page.get_by_role("button", name="Send").click()
    page.wait_for_url(re.compile(r"/chat/\d+/$"))
    page.locator(".top").get_by_role("link", name="Leases 2026").click()
    expect(page.locator("#convs").get_by_role("listitem")).to_have_count(2)
    page.get_by_role("link", name="Edit project").click()
    page.get_by_role("button", name="Delete project…").click()
    shot(page, "project-delete")
    page.get_by_role("dialog").get_by_role("button", name="Delete project").click()
    expect(page.get_by_text("No projects yet")).to_be_visible()
    page.goto(f"/t/{cast.tenant.slug}/chat/all/")
    expect(page.locator("#convs").get_by_role("listitem")).to_have_count(4)


def test_project_is_reached_and_a_conversation_archived_on_a_phone(
    new_page: Callable[..., Page], cast: Cast
) -> None:
    with tenant_scope(cast.tenant.pk):
        conversation_create(tenant=cast.tenant, actor=cast.actor("member"), title="Deposits")
    page = new_page(**PHONE)
    sign_in(page, cast.user("member").email)
    page.goto(f"/t/{cast.tenant.slug}/chat/all/")
    page.get_by_role("button", name="Open navigation").tap()
    drawer = page.locator("#drawer")
    row_of(drawer.locator("#recent-b"), "Deposits").get_by_role("button").tap()
    page.locator("#conv-menu").get_by_role("button", name="Archive").tap()
    expect(row_of(drawer.locator("#recent-b"), "Deposits")).to_have_count(0)
    drawer.locator(".fold summary").tap()
    drawer.get_by_role("link", name="Create your first project").tap()
    expect(page.get_by_text("No projects yet")).to_be_visible()
