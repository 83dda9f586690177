"""What a person does on the portal, and what a test may ask about the page."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from difflib import unified_diff
from pathlib import Path
from typing import Any

from playwright.sync_api import ConsoleMessage, Locator, Page, Response, expect

from apps.collections.collection.services import collection_create
from tenancy.models import Membership, Role
from tenancy.scope import platform_scope, tenant_scope
from tests.factories import actor_of
from tests.patience import PATIENCE_S

READY_MS = ANSWER_MS = PATIENCE_S * 1000

# What a conversation shows, without what belongs to this tab alone: streams, opened cards, the pinned source.
SHOWN = """() => {
  const out = (el, depth) => {
    if (el.nodeType === Node.TEXT_NODE) {
      const text = el.textContent.replace(/\\s+/g, " ").trim();
      return text ? [text] : [];
    }
    if (el.nodeType !== Node.ELEMENT_NODE || el.hasAttribute("hx-sse:connect")) return [];
    const own = ["open", "data-active", "aria-expanded", "data-htmx-powered", "data-done", "style"];
    const attrs = [...el.attributes].filter((a) => !own.includes(a.name))
      .map((a) => [a.name, a.name === "class" ? [...el.classList].filter((c) => !c.startsWith("htmx-")).join(" ") : a.value])
      .filter(([name, value]) => name !== "class" || value)
      .map(([name, value]) => `${name}=${value}`).sort();
    const inside = el.classList.contains("src-body") ? [] : [...el.childNodes].flatMap((c) => out(c));
    return [[el.tagName.toLowerCase(), attrs.join(" "), ...inside]];
  };
  return ["turns", "refs-list"].map((id) => out(document.getElementById(id)));
}"""

# Runs before the page's own scripts. Text of an answer may only grow, except when the server drops an unfinished step;
# an element id is there once.
WATCH = """
window.watched = {shrunk: [], doubled: [], longest: {}, frames: 0, grown: 0};
new MutationObserver(() => {
  const w = window.watched;
  w.frames++;
  for (const el of document.querySelectorAll(".blocks")) {
    const length = el.textContent.replace(/\\s+/g, "").length, before = w.longest[el.id] ?? 0;
    if (length < before) w.shrunk.push([el.id, before, length]);
    if (length > before && el.closest("[data-live]")) w.grown++;
    w.longest[el.id] = length;
  }
  const ids = [...document.querySelectorAll("[id]")].map((e) => e.id);
  if (new Set(ids).size !== ids.length) w.doubled.push(ids.find((id, n) => ids.indexOf(id) !== n));
}).observe(document, {subtree: true, childList: true, characterData: true});
"""


def watch_console(page: Page, problems: list[str]) -> None:
    """Collect script errors, content-security violations and missing files."""

    def heard(message: ConsoleMessage) -> None:
        if "Content Security Policy" in message.text:
            problems.append(message.text)

    def answered(response: Response) -> None:
        if response.status == 404 and "/static/" in response.url:
            problems.append(f"missing file: {response.url}")

    page.on("response", answered)
    page.on("pageerror", lambda error: problems.append(f"script error: {error}"))
    page.on("console", heard)


class Portal:
    """A signed-in person's page in one workspace. Who asks before anything is open asks in a new conversation."""

    def __init__(self, page: Page, slug: str) -> None:
        self.page, self.slug = page, slug

    def open(self, path: str = "chat/") -> None:
        """Open a page of the workspace."""
        self.page.goto(f"/t/{self.slug}/{path}")

    def _open_first(self) -> None:
        if self.page.url == "about:blank":
            self.open()

    def create_collection(self, name: str) -> None:
        """Make a collection of the member's and open its page; its form is filled in by ``create_by_form``."""
        with platform_scope():
            who = Membership.objects.select_related("tenant", "user").get(
                tenant__slug=self.slug, role=Role.MEMBER
            )
        with tenant_scope(who.tenant_id):
            made = collection_create(tenant=who.tenant, actor=actor_of(who), name=name)
        self.open(f"collections/{made.pk}/")
        expect(self.page.get_by_text("Add your first documents")).to_be_visible()

    def create_by_form(self, name: str) -> None:
        """Make a collection as a person does; its page is open afterwards."""
        self.open("collections/")
        self.page.get_by_role("link", name=re.compile("New collection|Create the first")).last.click()
        self.page.get_by_label("Name").fill(name)
        self.page.get_by_role("button", name="Create collection").click()
        expect(self.page.get_by_text("Add your first documents")).to_be_visible()
        self.page.wait_for_load_state()  # a click does not wait for the scripts, a person does

    def upload(self, *files: Path | dict[str, Any]) -> None:
        """Choose files on a collection's page."""
        chosen: Any = list(files)
        self.page.get_by_label("Files to upload").set_input_files(chosen)

    def row(self, name: str) -> Locator:
        """Return a document's row."""
        return self.page.locator("#documents tr").filter(has_text=name)

    def expect_ready(self, *names: str) -> None:
        """Wait until the rows show documents as ready, without a reload."""
        for name in names:
            expect(self.row(name).get_by_text("Ready", exact=True)).to_be_visible(timeout=READY_MS)

    @property
    def box(self) -> Locator:
        """The message box."""
        self._open_first()
        return self.page.get_by_label("Message")

    def choose_model(self, model: str) -> None:
        """Choose what answers, by the id of a model."""
        self._open_first()
        self.page.get_by_label("Model", exact=True).select_option(model)

    def ask(self, text: str, model: str = "") -> None:
        """Write a question and press Enter; a new conversation's own page is open afterwards."""
        self._open_first()
        if model:
            self.choose_model(model if "/" in model or model == "extractive" else f"compatible/{model}")
        is_new = "/chat/" in self.page.url and not re.search(r"/chat/\d+/", self.page.url)
        self.box.fill(text)
        self.box.press("Enter")
        if is_new:
            self.page.wait_for_url(re.compile(r"/chat/\d+/"))
            self.page.wait_for_load_state()
        expect(self.page.locator(".turn .user").last).to_have_text(text)

    @property
    def turns(self) -> Locator:
        """All turns."""
        return self.page.locator("#turns > .turn")

    @property
    def answer(self) -> Locator:
        """The text of the last answer."""
        return self.turns.last.locator(".blocks")

    def wait_words(self, count: int) -> None:
        """Wait until the last answer has so many words."""
        expect(self.answer).to_have_text(re.compile(rf"(\S+\s+){{{count}}}"), timeout=ANSWER_MS)

    def wait_end(self) -> None:
        """Wait until no question is on its way and no answer under way."""
        expect(self.page.locator("#turns .pending")).to_have_count(0, timeout=ANSWER_MS)
        expect(self.page.locator("#turns [data-live]")).to_have_count(0, timeout=ANSWER_MS)

    def shown(self) -> Any:
        """Return what the conversation shows, as plain values."""
        return self.page.evaluate(SHOWN)

    def watch(self) -> None:
        """Watch each page from its first moment; call before it is opened."""
        self.page.add_init_script(WATCH)

    def watched(self) -> dict[str, Any]:
        """Return what the watcher has seen on this page."""
        found: dict[str, Any] = self.page.evaluate("window.watched")
        return found


def fresh(portal: Portal) -> Any:
    """Return what the server shows of the conversation in a new tab."""
    tab = portal.page.context.new_page()
    try:
        tab.goto(portal.page.url)
        return Portal(tab, portal.slug).shown()
    finally:
        tab.close()


def assert_like_fresh(portal: Portal) -> None:
    """Compare the live page with a fresh render, and check that no id is there twice."""
    ids: list[str] = portal.page.evaluate("[...document.querySelectorAll('[id]')].map((e) => e.id)")
    assert sorted(set(ids)) == sorted(ids)
    live, drawn = (
        json.dumps(shown, indent=1, ensure_ascii=False).splitlines()
        for shown in (portal.shown(), fresh(portal))
    )
    assert live == drawn, "\n".join(unified_diff(drawn, live, "fresh", "live", lineterm=""))


def words_of(portal: Portal) -> list[str]:
    """Return the words of the last answer, without the marks of citations and of missing sources."""
    text: str = portal.answer.evaluate(
        "(el) => { const c = el.cloneNode(true); for (const b of c.querySelectorAll('.cite, .nosrc-note')) b.remove(); return c.textContent; }"
    )
    return text.split()


def paper(*, title: str, paragraphs: Sequence[str], encrypt: str | None = None) -> bytes:
    """Return a small PDF, two paragraphs a page; ``encrypt`` is the password that opens it."""
    from io import BytesIO

    from reportlab.lib.styles import getSampleStyleSheet
    from reportlab.platypus import PageBreak, Paragraph, SimpleDocTemplate, Spacer

    styles, out = getSampleStyleSheet(), BytesIO()
    story: list[Any] = [Paragraph(title, styles["Title"])]
    for number, text in enumerate(paragraphs):
        story += [PageBreak()] if number and number % 2 == 0 else []
        story += [Paragraph(text, styles["BodyText"]), Spacer(1, 12)]
    SimpleDocTemplate(out, title=title, encrypt=encrypt).build(story)
    return out.getvalue()
