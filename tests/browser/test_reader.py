"""The chunk reader, document facts and search bench, as a person uses them."""

from __future__ import annotations

import re

from playwright.sync_api import expect

from tests.browser.portal import Portal
from tests.browser.test_collections import RULES, file

RULEBOOK = (
    "# Rules of entry\n\n" + "\n\n".join(f"## Lot {n}\n\n{rule}" for n, rule in enumerate(RULES))
).encode()
CODE = b'''"""Duties."""


def rate(code):
    """Return the rate of duty of a code."""
    return lookup(code) * 2


def lookup(code):
    """Look a code up in the schedule."""
    return len(code)
'''


def test_passage_is_found_by_its_new_words_when_it_is_edited_and_comes_back(portal: Portal) -> None:
    portal.create_collection("Edited")
    portal.upload(file("rules.md", RULEBOOK))
    portal.expect_ready("rules.md")
    page = portal.page
    page.get_by_role("link", name="Passages", exact=True).click()
    page.locator(".chunk").first.get_by_role("link", name="Details").click()
    before = page.get_by_label("Text", exact=True).input_value()
    page.get_by_label("Text", exact=True).fill("Bicycles with seven gears pay eleven percent.")
    page.get_by_label("Why").fill("corrected")
    page.get_by_role("button", name="Save text").click()
    expect(page.get_by_text("Search now uses the passage's new text")).to_be_visible()
    expect(page.locator(".diff ins").first).to_be_visible()
    address = page.url
    page.get_by_role("link", name="Search test").click()
    page.get_by_role("searchbox").last.fill("bicycles with gears")
    page.get_by_role("searchbox").last.press("Enter")
    expect(page.locator(".chunk").first).to_contain_text("Bicycles with seven gears")
    page.goto(address)
    page.get_by_role("button", name="Undo this change").click()
    expect(page.get_by_label("Text", exact=True)).to_have_value(before)
    page.get_by_role("button", name="Exclude from search").click()
    expect(page.get_by_text("This passage is now excluded from search")).to_be_visible()
    expect(page.get_by_role("button", name="Include in search")).to_be_visible()


def test_links_lead_from_passage_to_passage_and_code_to_its_callers_and_the_bench_tells_of_a_search(
    portal: Portal,
) -> None:
    portal.create_collection("Linked")
    portal.upload(file("rules.md", RULEBOOK), file("duty.py", CODE))
    portal.expect_ready("rules.md", "duty.py")
    page = portal.page
    page.get_by_role("link", name="rules.md").first.click()
    page.get_by_role("link", name="Show on page").first.click()
    expect(page.locator(".chunk.on .points")).to_contain_text("by rule")
    first = page.url
    page.locator(".chunk.on .linkchips a").first.click()
    expect(page).not_to_have_url(first)
    expect(page.locator(".chunk.on")).to_have_count(1)
    portal.page.go_back()
    page.get_by_role("link", name="Linked").first.click()
    page.get_by_role("link", name="Passages", exact=True).click()
    page.get_by_label("Kind").select_option("function")
    card = page.locator(".chunk").filter(has_text="Look a code up")
    card.get_by_role("link", name="Details").click()
    graph = page.get_by_role("region", name="Code graph")
    expect(graph).to_contain_text("calls")
    graph.get_by_role("link", name=re.compile("rate")).click()
    expect(page.locator(".chunk")).to_contain_text("Return the rate of duty")

    page.get_by_role("link", name="Search test").click()
    page.get_by_role("searchbox").last.fill("proof of origin of lot 7")
    page.get_by_text("Filters and settings").click()
    page.get_by_label("Field 1").fill("kind")
    page.get_by_label("Value 1").fill("doc")
    page.get_by_label("Neighbours each side").fill("1")
    page.get_by_role("button", name="Search", exact=True).click()
    trace = page.get_by_role("region", name="Retrieval trace")
    expect(trace.get_by_role("row")).not_to_have_count(1)
    expect(trace).to_contain_text("Returned")
    page.get_by_label("Mark as correct answer").first.check()
    page.get_by_role("button", name="Save as test question").click()
    expect(page.get_by_text("Test question saved")).to_be_visible()
    expect(page.get_by_role("region", name="Saved questions")).to_contain_text("1 passage should answer it")
    page.get_by_label("Field 1").fill("flavour")
    page.get_by_label("Value 1").fill("sweet")
    page.get_by_role("button", name="Search", exact=True).click()
    expect(page.get_by_role("alert").first).to_contain_text("no filter field")


def test_documents_are_tagged_together_and_described_one_by_one(portal: Portal) -> None:
    portal.create_collection("Described")
    portal.upload(file("rules.md", RULEBOOK), file("duty.py", CODE))
    portal.expect_ready("rules.md", "duty.py")
    page = portal.page
    page.get_by_label("Choose rules.md").check()
    page.get_by_label("Choose duty.py").check()
    page.get_by_label("Action for the selected documents").select_option("tag")
    page.get_by_label("Tag to add or remove").fill("entry")
    page.get_by_role("button", name="Apply").click()
    expect(page.get_by_text("2 documents tagged")).to_be_visible()
    expect(portal.row("duty.py").get_by_text("entry", exact=True)).to_be_visible()
    page.get_by_role("link", name="About rules.md").click()
    page.get_by_label("Type", exact=True).fill("agency_regulation")
    page.get_by_role("button", name="Save description").click()
    expect(page.get_by_text("Description saved")).to_be_visible()
    expect(page.get_by_role("region", name="Versions")).to_contain_text("Version 1")
    page.get_by_role("button", name="Read again").click()
    expect(page.get_by_role("region", name="Versions")).to_contain_text("Version 2")
    page.get_by_label("Path in the collection").fill("law/rules.md")
    page.get_by_role("button", name="Move").click()
    expect(page.get_by_role("heading", name="law/rules.md")).to_be_visible()
