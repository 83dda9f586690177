"""Calm (detail 20): nothing that is read moves, while an answer grows and after its end."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from tests.browser.conftest import Site, sign_in
from tests.browser.portal import Portal, assert_like_fresh
from tests.browser.shots import shot
from tests.browser.test_details import document_ready
from tests.cast import Cast

SAID = "fake-said"
NOTICE = b"# Notice of entry\n\nThe notice period is thirty days from the first of the month.\n"
LONG = "fake-words120-gap50"
MOST_SHIFT = 0.02
MOST_REQUESTS, MOST_BYTES = 12, 150_000
OTHERS = [
    *("collections/", "collections/new/", "assistants/", "datasets/", "evaluations/"),
    *("evaluations/new/", "tools/", "tools/approvals/", "usage/", "settings/members/"),
]
# Full stops that a line begins with: the first rectangle of the text behind a marker is left of the marker.
ORPHANS = """(el) => [...el.querySelectorAll("button.cite")].filter((b) => {
  const next = b.nextSibling;
  if (!next?.textContent.startsWith(".")) return false;
  const range = document.createRange();
  range.setStart(next, 0);
  range.setEnd(next, 1);
  return range.getBoundingClientRect().left < b.getBoundingClientRect().left;
}).map((b) => b.outerHTML)"""
# Runs before the page's own scripts; moves within half a second of a key or click are what the person asked for.
WATCH = """
window.moved = [];
new PerformanceObserver((list) => {
  for (const entry of list.getEntries()) {
    if (entry.hadRecentInput) continue;
    window.moved.push([entry.startTime, entry.value, ...entry.sources.map((s) =>
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


def asked(portal: Portal, question: str, model: str) -> float:
    """Ask, and return when the page had made room for it: a busy machine takes longer than half a second from the click."""
    portal.ask(question, model)
    expect(portal.turns.last).to_be_visible()
    drawn = "new Promise((tell) => requestAnimationFrame(() => requestAnimationFrame(tell)))"
    return float(portal.page.evaluate(drawn))


def moved(page: Page, since: float) -> tuple[float, list[Any]]:
    """Return how far things on this page moved by themselves, as browsers add it up, and each move."""
    found = [entry for entry in page.evaluate("window.moved") if entry[0] > since]
    return float(sum(entry[1] for entry in found)), found


@pytest.fixture
def watched(portal: Portal, cast: Cast, site: Site) -> Iterator[Portal]:
    document_ready(cast, "Notices", "notice.md", NOTICE)
    portal.page.add_init_script(WATCH)
    portal.open()
    yield portal
    site.model_server.replies.clear()


def test_nothing_moves_when_an_answer_has_thirteen_unsupported_sentences(watched: Portal, site: Site) -> None:
    page = watched.page
    site.model_server.replies[SAID] = unsupported_answer
    since = asked(watched, "What is the notice period?", SAID)
    watched.wait_end()
    total, moves = moved(page, since)
    assert total <= MOST_SHIFT, moves
    sentences = watched.answer.locator(".nosrc[id]")
    expect(sentences).to_have_count(13)
    expect(sentences.first).to_have_css("text-decoration-style", "dotted")
    expect(watched.answer.get_by_role("strong")).to_have_text(re.compile("golden medals for bravery"))
    line = watched.turns.last.locator(".unbacked")
    expect(line.locator("summary")).to_contain_text("13 of 14 sentences are not backed by a source")
    expect(line.get_by_role("list")).to_be_hidden()
    tall = watched.answer.evaluate("(el) => el.offsetHeight")
    line.get_by_text("Show").click()
    expect(line.get_by_role("listitem")).to_have_count(13)
    assert watched.answer.evaluate("(el) => el.offsetHeight") == tall
    shot(page, "unsupported")
    line.get_by_role("link").last.click()
    expect(sentences.last).to_be_in_viewport()
    assert watched.answer.evaluate(ORPHANS) == []
    page.set_viewport_size({"width": 390, "height": 844})
    assert watched.answer.evaluate(ORPHANS) == []
    assert_like_fresh(watched)


def test_nothing_moves_while_a_long_answer_grows(watched: Portal) -> None:
    since = asked(watched, "Tell me everything", LONG)
    busy = watched.turns.last.locator(".afoot .busy")
    expect(busy).to_be_visible()
    before = busy.bounding_box()
    watched.wait_words(40)
    after = busy.bounding_box()
    assert before
    assert after
    assert after["y"] == before["y"]
    watched.wait_end()
    total, moves = moved(watched.page, since)
    assert total <= MOST_SHIFT, moves
    assert_like_fresh(watched)


def test_cold_page_is_at_most_a_dozen_requests_and_150_kilobytes(
    watched: Portal, new_page: Callable[..., Page], cast: Cast, site: Site
) -> None:
    """As this server sends it: production compresses static files as well."""
    site.model_server.replies[SAID] = unsupported_answer
    watched.ask("What is the notice period?", SAID)
    watched.wait_end()
    here = watched.page.url.split(f"/t/{watched.slug}/")[1]
    heavy = {}
    for path in ("chat/", here, "chat/all/", *OTHERS, "/help/ask/"):
        page = new_page()  # a profile of its own: nothing is kept from the page before
        sign_in(page, cast.user("owner").email)
        weighed = weigh(page, path if path.startswith("/") else f"/t/{watched.slug}/{path}")
        if weighed[0] > MOST_REQUESTS or weighed[1] > MOST_BYTES:
            heavy[path] = weighed
        page.context.close()
    assert heavy == {}


SEEN = """Promise.all([...document.images].filter(i => i.getBoundingClientRect().top < innerHeight).map(i => i.decode()))"""
"""Pictures in the window, which come when they like."""


def weigh(page: Page, path: str) -> tuple[int, int]:
    """Return how many answers a page takes, and their bytes on the wire."""
    network = page.context.new_cdp_session(page)
    network.send("Network.enable")
    sizes: dict[str, int] = {}
    network.on(
        "Network.loadingFinished", lambda e: sizes.__setitem__(e["requestId"], int(e["encodedDataLength"]))
    )
    page.goto(path)  # until it has loaded: some pages have a stream, and are never done
    page.evaluate(SEEN)
    return len(sizes), sum(sizes.values())
