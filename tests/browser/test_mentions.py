"""Prompts, documents and tools in the message box, by keyboard alone."""

from __future__ import annotations

import re

from playwright.sync_api import expect

from apps.conversations.models import Turn
from apps.conversations.prompts.services import prompt_create
from tenancy.scope import tenant_scope
from tests.browser.portal import Portal
from tests.browser.test_details import NOTICE, document_ready
from tests.browser.test_keyboard import go_to
from tests.cast import Cast

MODEL = "fake-search-words40-gap15"
LETTER = b"# Letter\n\nThe notice period of letters is ten days from the first of the month.\n"


def test_message_is_written_from_a_prompt_and_limited_without_a_mouse(portal: Portal, cast: Cast) -> None:
    page = portal.page
    document_ready(cast, "Notices", "notice.md", NOTICE)
    document_ready(cast, "Letters", "letter.md", LETTER)
    with tenant_scope(cast.tenant.pk):
        for name, text in (("Period", "What is the {what period} of {goods}?"), ("Other", "Sum up.")):
            prompt_create(tenant=cast.tenant, actor=cast.actor("owner"), name=name, text=text, is_shared=True)
    portal.open()
    portal.choose_model(f"compatible/{MODEL}")
    go_to(page, portal.box, "Shift+Tab")
    options = page.get_by_role("listbox", name="Suggestions").get_by_role("option")

    page.keyboard.type("/")
    expect(options).to_have_text([re.compile("Other"), re.compile("Period"), re.compile("Manage prompts")])
    expect(page.get_by_role("textbox", name="Message")).to_have_attribute("aria-controls", "suggest-list")
    page.keyboard.type("per")
    expect(options.first).to_contain_text("Period")
    page.keyboard.press("Enter")
    form = page.get_by_role("dialog", name="Period")
    expect(form.get_by_label("what period")).to_be_focused()
    page.keyboard.type("notice {goods}")  # stays what it is
    page.keyboard.press("Tab")
    page.keyboard.type("letters")
    page.keyboard.press("Enter")
    expect(portal.box).to_have_value("What is the notice {goods} of letters?")
    expect(portal.box).to_be_focused()

    page.keyboard.type(" @no one")
    expect(options).to_have_count(0)
    for _ in range(len("no one")):
        page.keyboard.press("Backspace")
    page.keyboard.type("lett")
    expect(options).to_have_text([re.compile("Letters"), re.compile(r"letter\.md")])
    page.keyboard.press("Escape")
    expect(page.get_by_role("listbox", name="Suggestions")).to_be_hidden()
    page.keyboard.type("er")
    expect(page.get_by_role("listbox", name="Suggestions")).to_be_hidden()
    for _ in range(len("@letter")):
        page.keyboard.press("Backspace")
    page.keyboard.type("@lett")
    expect(options.first).to_contain_text("Letters")
    page.keyboard.press("Enter")
    only = page.get_by_role("list", name="Only for this question").get_by_role("listitem")
    expect(only).to_have_text(["Letters"])
    page.keyboard.type("@letter")
    expect(options.last).to_contain_text("letter.md")
    page.keyboard.press("ArrowUp")
    page.keyboard.press("Enter")
    expect(only).to_have_text(["letter.md"])  # in place of its collection
    page.keyboard.type("#calc")
    expect(options.first).to_contain_text("Calculator")
    page.keyboard.press("Enter")
    expect(only).to_have_text(["letter.md", "Calculator"])
    expect(portal.box).to_have_value("What is the notice {goods} of letters? ")
    go_to(page, only.last.get_by_role("button", name="Remove Calculator"), "Shift+Tab")
    page.keyboard.press("Delete")
    expect(only).to_have_text(["letter.md"])
    expect(only.first.get_by_role("button")).to_be_focused()
    go_to(page, portal.box)
    page.keyboard.press("Enter")
    page.wait_for_url(re.compile(r"/chat/\d+/"))
    portal.wait_end()
    with tenant_scope(cast.tenant.pk):
        turn = Turn.objects.select_related("run").get()
        assert turn.run.request["narrowed"]["tools"] == []
        assert {c.document_name for c in turn.citations.all()} == {"letter.md"}
    expect(portal.turns.last.locator(".qrow")).to_contain_text("1 document only")
    expect(only).to_have_count(0)
