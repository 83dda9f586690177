"""From an open collection to a finished experiment whose result is the gate: few clicks, each step leads to the next."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import expect

from tests.browser.portal import READY_MS, Portal
from tests.browser.shots import shot
from tests.browser.test_details import document_ready
from tests.browser.test_newcomer import Clicks
from tests.cast import Cast

MOST_CLICKS = 12
ROWS = 3
DUTIES = b"""# Duties of importers

Each declaration must be signed by the owner of the goods. The customs office requires a copy of the invoice.

An importer must keep the proof of origin for five years. The carrier must announce each cargo a day before it arrives.

The notice period is thirty days from the first of the month. The director may grant a delay of ten days.
"""


@pytest.fixture
def clicks(portal: Portal) -> Clicks:
    return Clicks(portal.page)


def test_twelve_clicks_from_a_collection_to_an_experiment_that_is_the_gate(
    portal: Portal, cast: Cast, clicks: Clicks
) -> None:
    page = portal.page
    document_ready(cast, "Duties", "duties.md", DUTIES)
    portal.open("collections/")
    page.get_by_role("main").get_by_role("link", name="Duties").first.click()  # the way begins here
    expect(page.get_by_role("heading", name="Duties", level=1)).to_be_visible()

    clicks("link", "Generate test questions")
    expect(page.get_by_label("Name of the dataset")).to_have_value("Duties")
    expect(page.get_by_label("Duties (")).to_be_checked()
    shot(page, "gate-generate")
    clicks.select("Model", "extractive")
    clicks.type("Rows", str(ROWS))
    clicks("button", "Start")
    page.wait_for_url(re.compile(r"/jobs/\d+/$"))
    expect(page.get_by_role("link", name="Review the rows")).to_be_visible(timeout=READY_MS)
    shot(page, "gate-job")
    kept = int(page.locator("#job-state dd").first.get_by_role("link").inner_text())
    assert kept > 1

    clicks("link", "Review the rows")
    for left in range(kept, 0, -1):
        expect(page.get_by_text(f"{left} to review")).to_be_visible()
        clicks("button", "Approve")
    expect(page.get_by_text("All reviewed")).to_be_visible()
    shot(page, "gate-reviewed")
    clicks("button", "Create version")
    expect(page.get_by_text(f"Version 1 has {kept} rows.")).to_be_visible()
    shot(page, "gate-version")

    clicks("link", "Use these rows in an experiment")
    expect(page.get_by_label("Name", exact=True)).to_have_value("Duties, version 1")
    expect(page.get_by_label("Dataset", exact=True).locator("option:checked")).to_contain_text(
        "Duties, version 1"
    )
    expect(page.locator("input[name=models]:checked")).to_have_count(1)
    clicks("button", "Start")
    page.wait_for_url(re.compile(r"/evaluations/\d+/$"))
    gate = page.get_by_role("button", name="Make this result the gate")
    expect(gate).to_be_visible(timeout=READY_MS)
    shot(page, "gate-experiment")
    clicks("button", "Make this result the gate")
    page.wait_for_url(re.compile(r"/gate/$"))
    expect(page.get_by_role("heading", name="Can be released")).to_be_visible()
    expect(page.get_by_text("is the baseline of Duties")).to_be_visible()
    shot(page, "gate")
    assert clicks.count <= MOST_CLICKS


def test_second_dataset_of_a_collection_has_a_name_of_its_own_and_a_refusal_leaves_none_behind(
    portal: Portal, cast: Cast, clicks: Clicks
) -> None:
    page = portal.page
    document_ready(cast, "Duties", "duties.md", DUTIES)
    portal.open("collections/")
    page.get_by_role("main").get_by_role("link", name="Duties").first.click()
    clicks("link", "Generate test questions")
    clicks.select("Model", "extractive")
    page.get_by_label("Personas").fill("A clerk")
    clicks("button", "Start")
    expect(page.get_by_text("need a language model")).to_be_visible()
    page.get_by_label("Personas").fill("")
    clicks.type("Rows", "1")
    clicks("button", "Start")
    page.wait_for_url(re.compile(r"/jobs/\d+/$"))
    portal.open("collections/")
    page.get_by_role("main").get_by_role("link", name="Duties").first.click()
    clicks("link", "Generate test questions")
    expect(page.get_by_label("Name of the dataset")).to_have_value("Duties 2")
