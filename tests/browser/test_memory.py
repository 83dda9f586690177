"""A person's memory on their pages: switched on, written, added to by an answer, undone and erased."""

from __future__ import annotations

from typing import Any

from playwright.sync_api import expect

from tests.browser.conftest import Site
from tests.browser.portal import Portal
from tests.browser.test_accessibility import Looking


def _reply(body: dict[str, Any]) -> str | list[dict[str, Any]]:
    if any(m["role"] == "tool" for m in body["messages"]):
        return "I will use tables."
    said = str([m for m in body["messages"] if m["role"] == "user"][-1]["content"])
    return [{"name": "remember", "arguments": {"note": "Likes tables.", "said": said[:60]}}]


def test_memory_is_switched_on_used_undone_and_erased(portal: Portal, site: Site) -> None:
    page = portal.page
    problems: list[str] = []

    looking = Looking(page, problems)

    def look(name: str) -> None:
        looking.here(name)
        looking.turn("light-1440")

    site.model_server.replies["fake-said"] = _reply
    portal.open("chat/")
    page.get_by_role("button", name="Account and theme").click()
    page.get_by_role("link", name="Memory").click()
    page.get_by_role("button", name="Switch on").click()
    page.get_by_label("New note").fill("I work in customs.")
    page.get_by_role("button", name="Add note").click()
    expect(page.locator(".notelist li")).to_have_count(1)
    look("memory")

    portal.open("chat/")
    portal.ask("Please remember that I like tables", "fake-said")
    portal.wait_end()
    told = [str(asked["messages"][0]) for asked in site.model_server.log if "remember" in asked["tools"]]
    assert "I work in customs." in told[-1]
    card = page.locator(".remembered")
    expect(card).to_contain_text("Likes tables.")
    look("remembered")
    card.get_by_role("button", name="Undo").click()
    expect(card).to_contain_text("Undone")
    page.reload()
    expect(page.locator(".remembered")).to_contain_text("deleted since")

    portal.open("chat/memory/")
    expect(page.locator(".notelist li")).to_have_count(1)
    page.get_by_role("button", name="Edit the note").click()
    page.get_by_role("dialog").get_by_role("textbox").fill("I work at the port.")
    page.get_by_role("dialog").get_by_role("button", name="Save").click()
    expect(page.locator(".notelist")).to_contain_text("I work at the port.")
    page.get_by_role("button", name="Delete all").first.click()
    page.get_by_role("dialog").get_by_role("button", name="Delete all").click()
    expect(page.get_by_text("No notes yet")).to_be_visible()
    portal.open("chat/instructions/")
    look("instructions")
    assert problems == []
