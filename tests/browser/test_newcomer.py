"""The first minutes of a new person: few clicks to an answer over their own document, and no dead end on the way."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest
from playwright.sync_api import Page, expect

from tests.browser.conftest import sign_in
from tests.browser.portal import Portal, paper
from tests.browser.test_main_job import QUESTION, RULES, open_source
from tests.cast import Cast

PDF = {"mimeType": "application/pdf", "buffer": paper(title="Rules of entry", paragraphs=RULES)}


class Clicks:
    """Clicks as a person does, and counts."""

    def __init__(self, page: Page) -> None:
        self.page, self.count = page, 0

    def __call__(self, role: str, name: str | re.Pattern[str]) -> None:
        self.count += 1
        self.page.get_by_role(role, name=name).click()  # type: ignore[arg-type]

    def select(self, label: str, value: str) -> None:
        """Choose in a list."""
        self.count += 1
        self.page.get_by_label(label, exact=True).select_option(value)

    def type(self, label: str, text: str) -> None:
        """Click into a field and type over what is in it."""
        self.count += 1
        self.page.get_by_label(label, exact=True).fill(text)

    def choose(self, *names: str) -> None:
        """Click the drop zone and choose files."""
        self.count += 1
        with self.page.expect_file_chooser() as chooser:
            self.page.get_by_text("Browse files").click()
        chooser.value.set_files([{"name": name, **PDF} for name in names])  # type: ignore[arg-type]


@pytest.fixture
def clicks(page: Page) -> Clicks:
    return Clicks(page)


def test_four_clicks_from_sign_in_to_a_cited_answer_over_an_own_pdf(
    new_page: Callable[..., Page], cast: Cast
) -> None:
    page = new_page()
    clicks = Clicks(page)
    page.goto("/accounts/login/")
    page.get_by_label("Email").fill(cast.user("member").email)
    page.get_by_label("Password", exact=True).fill("secret-password")
    clicks("button", "Sign in")
    expect(page.get_by_role("heading", name="Add documents, then ask")).to_be_visible()
    steps = page.get_by_role("list", name="First steps").get_by_role("listitem")
    expect(steps).to_have_count(3)
    expect(steps.nth(0)).to_have_attribute("aria-current", "step")
    clicks.choose("rules.pdf")
    page.wait_for_url(re.compile(r"/collections/\d+/$"))
    portal = Portal(page, cast.tenant.slug)
    expect(page.get_by_role("heading", name="Documents", level=1)).to_be_visible()
    portal.expect_ready("rules.pdf")
    clicks("link", "Ask this collection")
    expect(page.locator("#scope-label")).to_have_text("Documents")
    expect(steps.nth(0)).to_contain_text("Ready to be asked")
    expect(steps.nth(1)).to_have_attribute("aria-current", "step")
    portal.ask(QUESTION)
    portal.wait_end()
    clicks.count += 1
    assert open_source(portal)
    assert clicks.count <= 4
    portal.open("chat/")
    expect(page.get_by_role("heading", name="What do you want to know?")).to_be_visible()
    expect(steps).to_have_count(0)


def test_new_collection_is_a_name_and_files(page: Page, cast: Cast, clicks: Clicks) -> None:
    portal = Portal(page, cast.tenant.slug)
    portal.open("collections/new/")
    expect(page.get_by_label("Language")).to_be_hidden()
    expect(page.get_by_text("passages of up to 1,200 characters")).to_be_visible()
    clicks.choose("first.pdf", "second.pdf")
    expect(page.get_by_text("To upload: 2 files")).to_be_visible()
    page.get_by_role("button", name="Remove: second.pdf").click()
    expect(page.get_by_text("To upload: 1 file")).to_be_visible()
    page.get_by_label("Name").fill("Rules")
    clicks("button", "Create collection")
    page.wait_for_url(re.compile(r"/collections/\d+/$"))
    portal.expect_ready("first.pdf")
    expect(portal.row("second.pdf")).to_have_count(0)


def test_refused_name_keeps_the_files_that_wait(page: Page, cast: Cast, clicks: Clicks) -> None:
    portal = Portal(page, cast.tenant.slug)
    portal.create_collection("Rules")
    portal.open("collections/new/")
    clicks.choose("first.pdf")
    page.get_by_label("Name").fill("Rules")
    clicks("button", "Create collection")
    expect(page.locator("#fields [aria-invalid=true]")).to_be_visible()
    expect(page.get_by_text("To upload: 1 file")).to_be_visible()
    page.get_by_label("Name").fill("Other rules")
    clicks("button", "Create collection")
    page.wait_for_url(re.compile(r"/collections/\d+/$"))
    expect(page.get_by_role("heading", name="Other rules", level=1)).to_be_visible()
    portal.expect_ready("first.pdf")


def test_drop_on_an_empty_workspace_goes_to_its_collection_and_on_the_box_to_the_message(
    portal: Portal,
) -> None:
    page = portal.page
    portal.create_collection("Rules")
    portal.open("chat/")
    drop = """(target) => {
      const held = new DataTransfer();
      held.items.add(new File(["# Rules\\n\\nKeep proofs for ten years."], "rules.md", {type: "text/markdown"}));
      for (const name of ["dragenter", "dragover", "drop"])
        document.querySelector(target).dispatchEvent(
          new DragEvent(name, {bubbles: true, cancelable: true, dataTransfer: held}));
    }"""
    page.evaluate(drop, "#composer")
    expect(page.locator("#attached li")).to_have_count(1)
    page.evaluate(drop, "#hello")
    page.wait_for_url(re.compile(r"/collections/\d+/$"))
    portal.expect_ready("rules.md")


def test_viewer_of_an_empty_workspace_hears_whom_to_ask(new_page: Callable[..., Page], cast: Cast) -> None:
    page = new_page()
    sign_in(page, cast.user("viewer").email)
    page.goto(f"/t/{cast.tenant.slug}/chat/")
    expect(page.get_by_text("Ask a member with write access")).to_be_visible()
    expect(page.get_by_label("Files to upload")).to_have_count(0)
