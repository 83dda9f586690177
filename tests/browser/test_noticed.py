"""Details of the chat that walks of other tests pass by: a failed call opens itself, another model, a title of its own."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from playwright.sync_api import expect

from tests.browser.conftest import Site
from tests.browser.portal import Portal, assert_like_fresh
from tests.browser.test_details import by_turns
from tests.cast import Cast

SAID = "fake-said"
SHORT = "fake-search-words40-gap15"
CALLS = [
    {"name": "calculate", "arguments": {"expression": "1+30"}},
    {"name": "calculate", "arguments": {"expression": "1+"}},
]


@pytest.fixture
def told(site: Site) -> Iterator[Site]:
    yield site
    site.model_server.replies.clear()


def test_failed_call_opens_itself_and_the_others_stay_closed(portal: Portal, told: Site, cast: Cast) -> None:
    """Detail 13."""
    told.model_server.replies[SAID] = by_turns(CALLS, "It cannot be reckoned.")
    portal.ask("How many days?", SAID)
    portal.wait_end()
    cards = portal.turns.last.locator("details.tool")
    expect(cards).to_have_count(2)
    expect(cards.first).not_to_have_attribute("open", "")
    expect(cards.last).to_have_attribute("data-failed", "")
    expect(cards.last).to_have_attribute("open", "")
    expect(cards.last.locator(".io").last).to_be_visible()
    assert_like_fresh(portal)


def test_another_model_is_chosen_where_an_answer_failed_and_the_title_comes_with_the_answer(
    portal: Portal,
) -> None:
    """Details 15 and 20."""
    page = portal.page
    portal.ask("Will the model answer?", "fake-fail500")
    portal.wait_end()
    page.get_by_role("button", name="Switch model").click()
    expect(page.get_by_label("Model", exact=True)).to_be_focused()
    page.keyboard.press("Escape")
    portal.choose_model(f"compatible/{SHORT}")
    page.get_by_role("button", name="Ask again").click()
    portal.wait_words(5)
    portal.wait_end()
    expect(page.locator("#conversation-title")).to_have_text("Will the model answer?")
    expect(page.locator("#recent-a a[aria-current]")).to_contain_text("Will the model answer?")


def test_card_that_takes_the_place_of_a_running_one_of_another_kind_comes_to_life(portal: Portal) -> None:
    """The call is shown running before it is a note that reads itself: in a fast answer the page never sees the first."""
    page = portal.page
    portal.open()
    after = '<div class="remembered" id="r0-t1" hx-get="/kept/" hx-trigger="load" hx-swap="innerHTML"></div>'
    failed = '<details class="tool" id="r0-t2" data-failed><summary>Failed</summary></details>'
    page.route("**/frame/", lambda route: route.fulfill(content_type="text/html", body=f"{after}{failed}"))
    page.route("**/kept/", lambda route: route.fulfill(content_type="text/html", body="<p>Kept in mind</p>"))
    page.evaluate("""() => {
      const work = document.createElement("div"), ask = document.createElement("button");
      work.id = "r0-work";
      work.innerHTML = `<details class="tool" id="r0-t1" open><summary>Running</summary></details>
        <div class="remembered" id="r0-t2">Running</div><details class="tool" id="r0-t3"></details>`;
      for (const [name, value] of Object.entries({get: "/frame/", target: "#r0-work", swap: "blocks"})) {
        ask.setAttribute(`hx-${name}`, value);
      }
      ask.id = "ask-frame";
      document.querySelector("#main").append(work, ask);
      htmx.process(ask);
      ask.click();
    }""")
    work = page.locator("#r0-work")
    expect(work.locator("div#r0-t1")).to_have_text("Kept in mind")
    expect(work.locator("details#r0-t2")).to_have_attribute("open", "")
    assert work.evaluate("(el) => [...el.children].map((c) => c.id)") == ["r0-t1", "r0-t2", "r0-t3"]
