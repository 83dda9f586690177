"""Sending: one turn per question, and nothing typed is ever lost."""

from __future__ import annotations

import re

from playwright.sync_api import Route, expect

from tests.browser.portal import Portal, assert_like_fresh

SHORT = "fake-search-words40-gap15"


TWICE = "() => { const f = document.getElementById('composer'); f.requestSubmit(); f.requestSubmit(); }"


def test_turn_is_one_when_it_is_sent_twice_or_its_answer_is_lost_or_the_line_is_down(portal: Portal) -> None:
    """One conversation for all of it, begun by a question that is sent twice at once."""
    page = portal.page
    portal.choose_model(f"compatible/{SHORT}")
    portal.box.fill("Started twice")
    page.evaluate(TWICE)
    page.wait_for_url(re.compile(r"/chat/\d+/"))
    page.wait_for_load_state()
    portal.wait_end()
    recent = page.get_by_role("navigation", name="Recent conversations").first
    expect(recent.get_by_role("link")).to_have_count(1)

    portal.box.fill("Asked twice")
    page.evaluate(TWICE)
    portal.wait_end()
    expect(portal.turns).to_have_count(2)
    page.reload()
    expect(portal.turns).to_have_count(2)

    def swallow(route: Route) -> None:
        route.fetch()  # the server takes the question, the browser never hears of it
        route.abort()

    page.route("**/turns/", swallow, times=1)
    portal.box.fill("Was it sent?")
    portal.box.press("Enter")
    alert = page.locator("#composer-error")
    expect(alert).to_contain_text("could not be reached")
    alert.get_by_role("button", name="Retry").click()
    expect(portal.turns).to_have_count(3)
    portal.wait_end()

    page.context.set_offline(True)
    portal.box.fill("Sent into the void")
    portal.box.press("Enter")
    expect(alert).to_contain_text("could not be reached")
    expect(portal.box).to_have_value("Sent into the void")
    page.context.set_offline(False)
    alert.get_by_role("button", name="Retry").click()
    expect(portal.turns.last.locator(".user")).to_have_text("Sent into the void")
    portal.wait_end()
    expect(portal.turns).to_have_count(4)
    expect(portal.box).to_have_value("")
    assert_like_fresh(portal)


def test_text_stays_when_an_input_method_composes_and_after_a_reload_and_when_the_server_fails(
    portal: Portal,
) -> None:
    page = portal.page
    portal.choose_model(f"compatible/{SHORT}")
    portal.box.fill("にほん")
    for event in ("{isComposing: true}", "{keyCode: 229}"):
        page.evaluate(
            "() => document.querySelector('#composer textarea').dispatchEvent(new KeyboardEvent('keydown',"
            f" Object.assign({{key: 'Enter', bubbles: true, cancelable: true}}, {event})))"
        )
    portal.box.press("Shift+Enter")
    expect(portal.box).to_have_value("にほん\n")
    expect(page.locator(".user")).to_have_count(0)

    portal.box.fill("Half a thought")
    page.reload()
    expect(portal.box).to_have_value("Half a thought")
    portal.choose_model(f"compatible/{SHORT}")
    page.route("**/chat/new/", lambda route: route.fulfill(status=500, body="<html>broken</html>"), times=1)
    portal.box.press("Enter")
    alert = page.locator("#composer-error")
    expect(alert).to_contain_text("(500)")
    expect(portal.box).to_have_value("Half a thought")
    alert.get_by_role("button", name="Retry").click()
    page.wait_for_url(re.compile(r"/chat/\d+/"))
    expect(portal.turns.last.locator(".user")).to_have_text("Half a thought")
    expect(portal.box).to_have_value("")
    portal.wait_end()
    portal.open()
    expect(portal.box).to_have_value("")


def test_cause_and_request_id_are_shown_and_the_question_can_be_asked_again_when_the_model_fails(
    portal: Portal,
) -> None:
    portal.ask("Will the model answer?", "fake-fail500")
    portal.wait_end()
    alert = portal.turns.last.get_by_role("alert")
    expect(alert).to_contain_text(re.compile(r"Code \w+\.\s+Request [0-9a-f]{32}\."))
    expect(portal.turns.last.locator(".user")).to_have_text("Will the model answer?")
    assert_like_fresh(portal)
    portal.choose_model(f"compatible/{SHORT}")
    alert.get_by_role("button", name="Ask again").click()
    portal.wait_words(5)
    portal.wait_end()
    expect(portal.turns.last.locator(".user")).to_have_text("Will the model answer?")
    expect(portal.turns.last.get_by_role("alert")).to_have_count(0)
    assert_like_fresh(portal)
