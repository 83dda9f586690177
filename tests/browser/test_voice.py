"""Dictating a question and hearing an answer.

Headless Chromium has no speech engine: it recognizes nothing and speaks with no voice. So its two speech objects, and they
alone, are replaced by doubles that note what they are asked and report what the test says; page, script, browser, policy and
answer are the real ones.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any

from playwright.sync_api import Page, expect

from tests.browser.conftest import Site, sign_in
from tests.browser.portal import Portal
from tests.browser.shots import shot
from tests.browser.test_details import document_ready
from tests.cast import Cast

SAID, HELD = "fake-said", "fake-words400-gap50-held"
DOUBLES = """
window.heardBy = [];
window.SpeechRecognition = window.webkitSpeechRecognition = class extends EventTarget {
  constructor() { super(); this.calls = []; window.heardBy.push(this); }
  start() { this.calls.push("start"); }
  stop() { this.calls.push("stop"); }
  abort() { this.calls.push("abort"); this.dispatchEvent(new Event("end")); }
};
window.hear = (...results) => {
  const e = new Event("result");
  e.results = results.map(([transcript, isFinal]) => Object.assign([{ transcript }], { isFinal }));
  window.heardBy.at(-1).dispatchEvent(e);
};
window.fail = (error) => {
  const by = window.heardBy.at(-1);
  by.dispatchEvent(Object.assign(new Event("error"), { error }));
  by.dispatchEvent(new Event("end"));
};
window.spoken = [];
window.cancelled = 0;
window.SpeechSynthesisUtterance = class extends EventTarget {
  constructor(text) { super(); this.text = text; }
};
Object.defineProperty(window, "speechSynthesis", { value: {
  speak: (said) => window.spoken.push(said),
  cancel: () => { window.cancelled++; },
  getVoices: () => [{ lang: "en-US", default: true }, { lang: "de_DE" }, { lang: "de-AT" }],
} });
"""
ANSWER = """# Kündigung

Die Kündigungsfrist beträgt dreißig Tage ab dem ersten des Monats [{marker}]. Das gilt für alle, wenn $x^2$ größer ist.

$$\\int_0^1 x\\,dx$$

```python
print("never read this")
```

| Frist | Tage |
| --- | --- |
| kurz | 30 |
"""
SENTENCES = [
    "Kündigung",
    "Die Kündigungsfrist beträgt dreißig Tage ab dem ersten des Monats.",
    "Das gilt für alle, wenn formula größer ist.",
    "Formula.",
    "Code: Python.",
    "Frist, Tage",
    "kurz, 30",
]


def test_question_is_dictated(portal: Portal, new_page: Callable[..., Page], cast: Cast) -> None:
    page = portal.page
    page.add_init_script(DOUBLES)
    portal.open()
    assert page.evaluate("document.featurePolicy.allowsFeature('microphone')"), "by the page's own header"
    assert not page.evaluate("document.featurePolicy.allowsFeature('camera')")
    button = page.get_by_role("button", name="Dictate")
    portal.box.fill("What is ?")
    portal.box.evaluate("(el) => el.setSelectionRange(8, 8)")
    button.click()
    notice = page.get_by_role("dialog", name="Dictate your question")
    expect(notice).to_contain_text("Chrome to Google")
    assert page.evaluate("window.heardBy.length") == 0, "nothing is heard before it is said who may hear"
    shot(page, "voice-notice")
    notice.get_by_role("button", name="Cancel").click()
    assert page.evaluate("window.heardBy.length") == 0
    button.click()
    page.keyboard.press("Enter")
    line = page.locator("#heard")
    expect(line).to_be_visible()
    expect(button).to_have_attribute("aria-pressed", "true")
    expect(portal.box).to_be_focused()
    by = "[window.heardBy.at(-1).lang, window.heardBy.at(-1).interimResults, window.heardBy.at(-1).calls]"
    assert page.evaluate(by) == ["en-US", True, ["start"]]
    page.evaluate("hear(['the notice', false])")
    expect(line).to_contain_text("the notice")
    expect(portal.box).to_have_value("What is ?")
    page.evaluate("hear(['the notice period', true], [' for', false])")
    expect(portal.box).to_have_value("What is the notice period?")
    expect(line).to_have_text(re.compile(r"Listening\s+for\s*$"))
    shot(page, "voice-listening")
    page.keyboard.press("Escape")
    expect(line).to_be_hidden()
    expect(portal.box).to_have_value("What is the notice period for?")
    assert page.evaluate("window.heardBy.at(-1).calls") == ["start", "abort"]
    page.reload()  # the words are a draft, and it is said once who may hear
    expect(portal.box).to_have_value("What is the notice period for?")
    button.click()
    expect(line).to_be_visible()
    page.evaluate("fail('not-allowed')")
    expect(line).to_be_hidden()
    expect(page.locator("#composer-error")).to_contain_text("does not allow the microphone")
    expect(portal.box).to_have_value("What is the notice period for?")
    shot(page, "voice-denied")

    portal.box.fill("")
    portal.ask("Tell me everything", HELD)
    button.click()
    expect(line).to_be_visible()
    portal.box.press("Escape")  # the voice first, the answer under way by the next one
    expect(line).to_be_hidden()
    expect(page.locator("#turns [data-live]")).to_have_count(1)
    button.click()
    page.evaluate("hear(['And then', true], ['what nobody', false])")
    portal.box.press("Enter")
    expect(page.locator(".qitem")).to_contain_text("And then")
    expect(line).to_be_hidden()
    expect(portal.box).to_have_value("")

    without = new_page()
    without.add_init_script("delete window.SpeechRecognition; delete window.webkitSpeechRecognition;")
    sign_in(without, cast.user("member").email)
    without.goto(f"/t/{portal.slug}/chat/")
    expect(without.get_by_label("Message")).to_be_visible()
    expect(without.get_by_role("button", name="Dictate")).to_have_count(0)


def cited_in_german(body: dict[str, Any]) -> str | list[dict[str, Any]]:
    found = re.findall(r"\bc\d+\b", json.dumps([m for m in body["messages"] if m["role"] == "tool"]))
    if not found:
        return [{"name": "search_documents", "arguments": {"query": "Kündigungsfrist"}}]
    return ANSWER.replace("{marker}", found[0])


def test_answer_is_read_aloud(portal: Portal, site: Site, cast: Cast) -> None:
    page = portal.page
    text = "# Kündigung\n\nDie Kündigungsfrist beträgt dreißig Tage ab dem ersten des Monats.\n"
    document_ready(cast, "Verträge", "vertrag.md", text.encode())
    page.add_init_script(DOUBLES)
    portal.open()
    site.model_server.replies[SAID] = cited_in_german
    portal.ask("Wie lang ist die Kündigungsfrist?", SAID)
    portal.wait_end()
    expect(portal.answer.locator("button.cite")).to_have_count(1)
    button = portal.turns.last.get_by_role("button", name="Read aloud")
    tall = portal.turns.last.bounding_box()
    button.click()
    said = "window.spoken.map((s) => [s.text, s.lang, s.voice?.lang])"
    for at in range(len(SENTENCES)):
        expect(button).to_have_attribute("aria-pressed", "true")  # the script comes with the first click
        assert page.evaluate(said) == [[s, "de", "de_DE"] for s in SENTENCES[: at + 1]], "one after the other"
        if not at:
            shot(page, "voice-reading")
        page.evaluate("window.spoken.at(-1).dispatchEvent(new Event('end'))")
    expect(button).to_have_attribute("aria-pressed", "false")
    assert portal.turns.last.bounding_box() == tall

    for stop in (button.click, lambda: page.keyboard.press("Escape")):
        button.click()
        expect(button).to_have_attribute("aria-pressed", "true")
        stop()
        expect(button).to_have_attribute("aria-pressed", "false")
        page.evaluate("window.spoken.at(-1).dispatchEvent(new Event('end'))")
        assert page.evaluate("window.spoken.at(-1).text") == SENTENCES[0], "nothing more after the stop"
    button.click()
    page.evaluate(
        "(e) => window.spoken.at(-1).dispatchEvent(Object.assign(new Event('error'), {error: e}))", "x"
    )
    expect(page.locator("#toast")).to_contain_text("could not read this aloud")
    button.click()
    before = page.evaluate("window.cancelled")
    page.evaluate("dispatchEvent(new Event('pagehide'))")
    assert page.evaluate("window.cancelled") > before, "no voice goes on when the page is left"
    site.model_server.replies.clear()
