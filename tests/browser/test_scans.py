"""A scan on the way through the real worker: read in its own lane, cited, and marked on its image."""

from __future__ import annotations

import os
from pathlib import Path

from playwright.sync_api import expect

from tests.browser.portal import Portal
from tests.collections.ingestion.scans import LINES, page_picture, scan_pdf


def test_scan_is_read_and_its_passage_marked_on_the_image(portal: Portal, tmp_path: Path) -> None:
    portal.create_collection("Harbour")
    path = scan_pdf(tmp_path / "harbour.pdf", ["A typed page.", page_picture()])
    portal.upload(path)
    chip = portal.page.locator("#documents tr").get_by_text("Ready", exact=True)
    expect(chip).to_be_visible(timeout=120_000)
    portal.page.get_by_role("link", name="harbour.pdf").first.click()
    portal.page.get_by_role("link", name="Next page").click()
    portal.page.get_by_role("link", name="Show on page").first.click()
    expect(portal.page.get_by_text("Read by OCR").first).to_be_visible()
    expect(portal.page.get_by_text("INV-20417").first).to_be_visible()
    marks = portal.page.locator("svg .marks rect")
    expect(marks).to_have_count(len(LINES))
    if folder := os.environ.get("SCREENSHOTS_DIR"):
        for theme in ("light", "dark"):
            portal.page.emulate_media(color_scheme=theme)
            for size in ((1440, 900), (390, 844)):
                portal.page.set_viewport_size({"width": size[0], "height": size[1]})
                portal.page.wait_for_load_state("networkidle")
                portal.page.screenshot(path=f"{folder}/scan-{theme}-{size[0]}.png")
