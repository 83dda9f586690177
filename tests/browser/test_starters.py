"""A new conversation starts with questions that passages answer (detail 18)."""

from __future__ import annotations

import base64
import re

from playwright.sync_api import FilePayload, expect

from tests.browser.portal import Portal
from tests.browser.test_conversation_state import shot
from tests.browser.test_details import document_ready
from tests.cast import Cast

DUTIES = b"""# Duties of importers

Goods are kept in the store.

Each declaration must be signed by the owner of the goods. The customs office requires a copy of the invoice.
"""
CODE = b'def rate(code: str) -> float:\n    """Return the rate of a code."""\n    return RATES[code]\n'
PIXEL = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)
ATTACHED = b"# Travel\n\nEach ticket must be approved by the manager of the team.\n"


def test_starter_is_a_question_that_its_passage_answers(portal: Portal, cast: Cast) -> None:
    document_ready(cast, "Rules", "duties-final-v2.md", DUTIES)
    document_ready(cast, "Code", "rates.py", CODE)
    page = portal.page
    portal.open()
    page.get_by_label("Attach files").set_input_files(
        [
            FilePayload(name="ticket-4711.md", mimeType="text/markdown", buffer=ATTACHED),
            FilePayload(name="pixel.png", mimeType="image/png", buffer=PIXEL),
        ]
    )
    expect(page.locator("#attached li")).to_have_count(2)
    portal.ask("What is in these files?", "extractive")
    portal.wait_end()
    portal.open()
    starts = page.locator("[data-start]")
    expect(starts.first).to_have_text("By whom must each declaration be signed?")
    for text in starts.all_inner_texts():
        assert not re.search(r"\.\w{2,4}\b|duties-final|ticket|rates|pixel", text), text
    shot(page, "starters")
    starts.first.click()
    portal.choose_model("extractive")
    portal.box.press("Enter")
    page.wait_for_url(re.compile(r"/chat/\d+/"))
    portal.wait_end()
    expect(portal.answer).to_contain_text("signed by the owner of the goods")
    expect(portal.answer.locator("button.cite").first).to_have_attribute(
        "aria-label", re.compile("duties-final-v2.md")
    )
