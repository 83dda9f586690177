"""A new conversation starts with questions that passages answer (detail 18)."""

from __future__ import annotations

import re

from playwright.sync_api import expect

from apps.collections.models import Collection
from tenancy.scope import tenant_scope
from tests.browser.portal import Portal
from tests.browser.shots import shot
from tests.browser.test_details import document_ready
from tests.cast import Cast

DUTIES = b"""# Duties of importers

Goods are kept in the store.

Each declaration must be signed by the owner of the goods. The customs office requires a copy of the invoice.
"""
CODE = b'def rate(code: str) -> float:\n    """Return the rate of a code."""\n    return RATES[code]\n'
ATTACHED = b"# Travel\n\nEach ticket must be approved by the manager of the team.\n"


def test_starter_is_a_question_that_its_passage_answers(portal: Portal, cast: Cast) -> None:
    document_ready(cast, "Rules", "duties-final-v2.md", DUTIES)
    document_ready(cast, "Code", "rates.py", CODE)
    document_ready(cast, "Attached", "ticket-4711.md", ATTACHED)
    with tenant_scope(cast.tenant.pk):  # as the files of a conversation are kept
        Collection.objects.filter(name="Attached").update(owner=cast.user("member"))
    page = portal.page
    portal.open()
    starts = page.locator("[data-start]")
    expect(starts.first).to_have_text("What does the customs office require?")
    for text in starts.all_inner_texts():
        assert not re.search(r"\.\w{2,4}\b|duties-final|[Tt]icket|rates", text), text
    shot(page, "starters")
    starts.first.click()
    portal.choose_model("extractive")
    portal.box.press("Enter")
    page.wait_for_url(re.compile(r"/chat/\d+/"))
    portal.wait_end()
    expect(portal.answer).to_contain_text("a copy of the invoice")
    expect(portal.answer.locator("button.cite").first).to_have_attribute(
        "aria-label", re.compile("duties-final-v2.md")
    )
