"""Sending: one turn per question, and nothing typed is ever lost."""

from __future__ import annotations

import re

from playwright.sync_api import Route, expect

from tests.browser.portal import Portal, assert_like_fresh

SHORT = "fake-search-words40-gap15"


def test_turn_is_one_when_a_question_is_sent_twice_at_once(portal: Portal) -> None:
    portal.ask("First question", SHORT)
    portal.wait_end()
    portal.box.fill("Asked twice")
    portal.page.evaluate(
        "() => { const f = document.getElementById('composer'); f.requestSubmit(); f.requestSubmit(); }"
    )
    portal.wait_end()
    expect(portal.turns).to_have_count(2)
    portal.page.reload()
    expect(portal.turns).to_have_count(2)


def test_conversation_is_one_when_the_first_question_is_sent_twice_at_once(portal: Portal) -> None:
    portal.choose_model(f"compatible/{SHORT}")
    portal.box.fill("Started twice")
    portal.page.evaluate(
        "() => { const f = document.getElementById('composer'); f.requestSubmit(); f.requestSubmit(); }"
    )
    portal.page.wait_for_url(re.compile(r"/chat/\d+/"))
    portal.wait_end()
    recent = portal.page.get_by_role("navigation", name="Recent conversations").first
    expect(recent.get_by_role("link")).to_have_count(1)


def test_turn_is_one_when_the_answer_to_the_post_is_lost(portal: Portal) -> None:
    portal.ask("First question", SHORT)
    portal.wait_end()

    def swallow(route: Route) -> None:
        route.fetch()  # the server takes the question, the browser never hears of it
        route.abort()

    portal.page.route("**/turns/", swallow, times=1)
    portal.box.fill("Was it sent?")
    portal.box.press("Enter")
    alert = portal.page.locator("#composer-error")
    expect(alert).to_contain_text("could not be reached")
    alert.get_by_role("button", name="Retry").click()
    expect(portal.turns).to_have_count(2)
    portal.wait_end()
    assert_like_fresh(portal)


def test_text_stays_with_a_retry_when_the_browser_is_offline(portal: Portal) -> None:
    portal.ask("First question", SHORT)
    portal.wait_end()
    portal.page.context.set_offline(True)
    portal.box.fill("Sent into the void")
    portal.box.press("Enter")
    alert = portal.page.locator("#composer-error")
    expect(alert).to_contain_text("could not be reached")
    expect(portal.box).to_have_value("Sent into the void")
    portal.page.context.set_offline(False)
    alert.get_by_role("button", name="Retry").click()
    expect(portal.turns.last.locator(".user")).to_have_text("Sent into the void")
    portal.wait_end()
    expect(portal.turns).to_have_count(2)
    expect(portal.box).to_have_value("")
    assert_like_fresh(portal)


def test_text_stays_with_a_retry_when_the_server_fails(portal: Portal) -> None:
    portal.choose_model(f"compatible/{SHORT}")
    portal.page.route(
        "**/chat/new/", lambda route: route.fulfill(status=500, body="<html>broken</html>"), times=1
    )
    portal.box.fill("Will this get through?")
    portal.box.press("Enter")
    alert = portal.page.locator("#composer-error")
    expect(alert).to_contain_text("(500)")
    expect(portal.box).to_have_value("Will this get through?")
    alert.get_by_role("button", name="Retry").click()
    portal.page.wait_for_url(re.compile(r"/chat/\d+/"))
    expect(portal.turns.last.locator(".user")).to_have_text("Will this get through?")
    portal.wait_end()


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


def test_draft_is_there_when_the_page_is_reloaded(portal: Portal) -> None:
    portal.box.fill("Half a thought")
    portal.page.reload()
    expect(portal.box).to_have_value("Half a thought")
    portal.choose_model(f"compatible/{SHORT}")
    portal.box.press("Enter")
    portal.page.wait_for_url(re.compile(r"/chat/\d+/"))
    expect(portal.box).to_have_value("")
    portal.wait_end()
    portal.open()
    expect(portal.box).to_have_value("")


def test_enter_sends_nothing_when_an_input_method_composes(portal: Portal) -> None:
    portal.box.fill("にほん")
    for event in ("{isComposing: true}", "{keyCode: 229}"):
        portal.page.evaluate(
            "() => document.querySelector('#composer textarea').dispatchEvent(new KeyboardEvent('keydown',"
            f" Object.assign({{key: 'Enter', bubbles: true, cancelable: true}}, {event})))"
        )
    portal.box.press("Shift+Enter")
    expect(portal.box).to_have_value("にほん\n")
    expect(portal.page.locator(".user")).to_have_count(0)
