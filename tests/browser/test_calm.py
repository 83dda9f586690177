"""Calm (detail 20): nothing that is read moves, while an answer grows and after its end."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from tests.browser.conftest import Site
from tests.browser.portal import Portal, assert_like_fresh
from tests.browser.test_conversation_state import shot
from tests.browser.test_details import document_ready
from tests.cast import Cast

SAID = "fake-said"
NOTICE = b"# Notice of entry\n\nThe notice period is thirty days from the first of the month.\n"
MOST_SHIFT = 0.02
# Runs before the page's own scripts; moves within half a second of a key or click are what the person asked for.
WATCH = """
window.moved = [];
new PerformanceObserver((list) => {
  for (const entry of list.getEntries()) {
    if (entry.hadRecentInput) continue;
    window.moved.push([entry.value, ...entry.sources.map((s) =>
      `${s.node?.nodeName}.${s.node?.className ?? ""}#${s.node?.id ?? ""} ${s.previousRect.y}>${s.currentRect.y}`)]);
  }
}).observe({type: "layout-shift", buffered: true});
"""
CLAIMS = [
    f"The harbour of town {n} was rebuilt by {n + 3} masons with granite from a distant quarry."
    for n in range(1, 13)
]


def unsupported_answer(body: dict[str, Any]) -> str | list[dict[str, Any]]:
    """Search, then say one sentence with its source and thirteen that no source backs."""
    found = re.findall(r"\bc\d+\b", json.dumps([m for m in body["messages"] if m["role"] == "tool"]))
    if not found:
        return [{"name": "search_documents", "arguments": {"query": "notice period"}}]
    rows = " ".join(CLAIMS[:6]) + "\n\n" + "\n".join(f"- {claim}" for claim in CLAIMS[6:])
    bold = "**The lighthouse keepers of Lampedusa received golden medals for bravery.**"
    return f"The notice period is thirty days from the first of the month [{found[0]}].\n\n{rows}\n\nAlso: {bold}"


def moved(page: Page) -> float:
    """Return how far things on this page moved by themselves, as browsers add it up; each move in the message."""
    found: list[list[Any]] = page.evaluate("window.moved")
    total = float(sum(entry[0] for entry in found))
    print(total, *found, sep="\n  ")
    return total


def test_nothing_moves_while_an_answer_with_thirteen_unsupported_sentences_comes(
    portal: Portal, cast: Cast, site: Site
) -> None:
    document_ready(cast, "Notices", "notice.md", NOTICE)
    page = portal.page
    page.add_init_script(WATCH)
    site.model_server.replies[SAID] = unsupported_answer
    portal.open()
    portal.ask("What is the notice period?", SAID)
    portal.wait_end()
    shot(page, "unsupported")
    assert moved(page) <= MOST_SHIFT
