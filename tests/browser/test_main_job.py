"""What a new user comes for: documents in, a question, a streamed answer, and the passage it rests on."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from tests.browser.conftest import Site
from tests.browser.portal import Portal, paper

QUESTION = "How many years must an importer keep the proof of origin of lot 7?"
RULES = [
    f"Section {n}. An importer keeps the proof of origin of lot {n} for {n + 3} years after the entry. "
    f"The officer at port {n} may ask for it at any time during that period, in writing."
    for n in range(1, 9)
]


def squeezed(text: str) -> str:
    return re.sub(r"\W+", "", text).lower()


def open_source(portal: Portal) -> str:
    """Click the last answer's first citation; return the quote of the source that opens."""
    marker = portal.answer.locator("button.cite").first
    expect(marker).to_have_text("1")
    marker.click()
    source = portal.page.locator("details.src[open]")
    expect(source).to_have_count(1)
    quote = source.locator(".quote").inner_text()
    passage = source.locator(".leaf mark")
    expect(passage).to_be_visible()
    assert squeezed(quote)[:80] in squeezed(passage.inner_text())
    return quote


def follow_to_page(portal: Portal) -> Page:
    """Go from the opened source to the document's page."""
    portal.page.locator("details.src[open]").get_by_role("link", name=re.compile("Open")).click()
    portal.page.wait_for_url(re.compile(r"/documents/\d+/\?.*chunk=\d+"))
    return portal.page


def test_answer_leads_to_the_marked_passage_when_a_new_user_asks_about_an_upload(
    portal: Portal, site: Site
) -> None:
    portal.watch()
    portal.create_by_form("Entry rules")
    content = paper(title="Rules of entry", paragraphs=RULES)
    portal.upload({"name": "rules.pdf", "mimeType": "application/pdf", "buffer": content})
    portal.expect_ready("rules.pdf")
    portal.page.get_by_role("link", name="Ask this collection").click()
    portal.page.wait_for_load_state()
    expect(portal.page.get_by_role("heading", name="What do you want to know?")).to_be_visible()
    portal.ask(QUESTION, "fake-search-words90-gap40-held")
    portal.wait_words(30)  # they come while it writes: it is held at the half
    site.model_server.release()
    portal.wait_end()
    watched = portal.watched()
    assert watched["grown"] >= 1
    assert watched["shrunk"] == []
    assert watched["doubled"] == []
    card = portal.turns.last.locator("details.tool")
    expect(card).to_have_count(1)
    expect(card).to_contain_text("search_documents")
    expect(portal.turns.last.get_by_role("button", name="1 source")).to_be_visible()
    quote = open_source(portal)
    page = follow_to_page(portal)
    expect(page.locator(".sheet image")).to_be_visible()
    assert page.locator(".marks rect").count() >= 1
    page.get_by_role("link", name="Text", exact=True).click()
    marked = page.locator("#passage").inner_text()
    assert squeezed(quote)[:80] in squeezed(marked)


def test_extractive_answer_quotes_and_says_what_it_is_when_no_model_is_chosen(portal: Portal) -> None:
    portal.create_collection("Entry rules")
    text = "# Rules of entry\n\n" + "\n\n".join(RULES)
    portal.upload({"name": "rules.md", "mimeType": "text/markdown", "buffer": text.encode()})
    portal.expect_ready("rules.md")
    portal.open("chat/")
    portal.choose_model("extractive")
    expect(portal.page.get_by_text("Quotes only (no AI model): answers quote")).to_be_visible()
    portal.ask(QUESTION, "extractive")
    portal.wait_end()
    expect(portal.answer).to_contain_text("lot 7 for 10 years")
    footer = portal.turns.last.locator("footer")
    expect(footer.get_by_text("Quotes only (no AI model)")).to_be_visible()
    quote = open_source(portal)
    page = follow_to_page(portal)
    assert squeezed(quote)[:80] in squeezed(page.locator("#passage").inner_text())


@pytest.mark.shared_data
def test_real_document_is_read_and_cited_when_it_is_uploaded(portal: Portal, shared_data: Path) -> None:
    portal.create_collection("Trade notices")
    portal.upload(shared_data / "trade-us" / "2025-15819.pdf")
    portal.expect_ready("2025-15819.pdf")
    portal.open("chat/")
    portal.ask("Which steel and aluminum derivative products did the notice add?", "extractive")
    portal.wait_end()
    quote = open_source(portal)
    page = follow_to_page(portal)
    expect(page.locator(".sheet image")).to_be_visible()
    assert page.locator(".marks rect").count() >= 1
    page.get_by_role("link", name="Text", exact=True).click()
    assert squeezed(quote)[:60] in squeezed(page.locator("#passage").inner_text())
