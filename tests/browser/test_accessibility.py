"""Every main page, light and dark, wide and narrow: axe finds nothing, nothing is wider than the window.

With SCREENSHOT_FOLDER=<folder> each page is also kept as a picture there, for a person to look at.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from apps.collections.collection.services import collection_create
from apps.conversations.assistants.options import VersionSpec
from apps.conversations.assistants.services import assistant_create, version_create, version_publish
from apps.conversations.models import Assistant
from tenancy.scope import tenant_scope
from tests.browser.conftest import sign_in
from tests.browser.portal import Portal, paper
from tests.cast import Cast
from tests.nightly import NIGHTLY
from tests.notices.test_walls import imported, put

AXE = Path(__file__).parent / "vendor" / "axe-core" / "axe.min.js"
AXE_SHA256 = "29348999450cdf2849a8e70b7912fc2da85a849da39c0d0d5394f51d4a9ed95c"  # axe-core 4.14.1
HOW = {  # no selectors and no preloading: less work
    "runOnly": {
        "type": "tag",
        "values": ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"],
    },
    "resultTypes": ["violations"],
    "selectors": False,
    "preload": False,
}
RUN_AXE = """async ([without, how]) => (await axe.run({exclude: without}, how)).violations.map((v) =>
  [v.id, v.nodes.slice(0, 3).map((n) => n.html.slice(0, 160) + " :: " + (n.any[0] ?? n.all[0] ?? n.none[0])?.message)])"""
# A colour on its way from one scheme to the other is nobody's colour.
READY = """() => {
  document.getAnimations().forEach((a) => a instanceof CSSTransition && a.finish());
  const has_axe = window.axe !== undefined;
  const over = document.documentElement.scrollWidth - innerWidth;
  if (over <= 0) return [has_axe, null];
  const wide = [...document.querySelectorAll("body *")].filter((e) => {
    const box = e.getBoundingClientRect();
    return box.width && box.right > innerWidth + 1 && getComputedStyle(e).position !== "fixed";
  });
  return [has_axe, [over, wide.slice(-3).map((e) => e.outerHTML.slice(0, 140))]];
}"""
WIDE, NARROW = {"width": 1440, "height": 900}, {"width": 390, "height": 844}
ALL_LOOKS: dict[str, dict[str, Any]] = {
    "light-1440": {"viewport": WIDE, "color_scheme": "light"},
    "dark-390": {"viewport": NARROW, "color_scheme": "dark", "has_touch": True},
    "dark-1440": {"viewport": WIDE, "color_scheme": "dark"},
    "light-390": {"viewport": NARROW, "color_scheme": "light", "has_touch": True},
}
LOOKS = list(ALL_LOOKS) if NIGHTLY or os.environ.get("SCREENSHOT_FOLDER") else ["light-1440", "dark-390"]
"""By day two that share nothing: no style hangs on a size and a scheme together."""
PARAGRAPHS = [
    f"Section {n}. An importer keeps the proof of origin of lot {n} for {n + 3} years after the entry. "
    f"The officer at port {n} may ask for it at any time during that period, in writing."
    for n in range(1, 9)
]


def two_versions(cast: Cast) -> Assistant:
    """Return an assistant whose first version is published and whose second is a draft."""
    who: dict[str, Any] = {"tenant": cast.tenant, "actor": cast.actor("member")}
    first = VersionSpec(
        prompt="Answer as a clerk of entries.\nBe brief.", starters=["How long is a proof of origin kept?"]
    )
    clerk = assistant_create(**who, name="Entry clerk", description="Knows the rules of entry.", spec=first)
    version_publish(**who, assistant=clerk, number=1)
    second = VersionSpec(
        mode="planned", prompt="Answer as a clerk of entries.\nName the port.", options={"max_steps": 6}
    )
    version_create(**who, assistant=clerk, spec=second, note="Plans first")
    return clerk


@pytest.fixture
def pages(portal: Portal, cast: Cast) -> dict[str, str]:
    """A workspace with a document, an answer and an empty collection; path by name."""
    with tenant_scope(cast.tenant.pk):
        empty = collection_create(
            tenant=cast.tenant, actor=cast.actor("member"), name="Letters", description="Not yet."
        )
        clerk = two_versions(cast)
    portal.create_collection("Entry rules")
    content = paper(title="Rules of entry", paragraphs=PARAGRAPHS)
    portal.upload(
        {"name": "rules.pdf", "mimeType": "application/pdf", "buffer": content},
        {"name": "broken.pdf", "mimeType": "application/pdf", "buffer": b"%PDF-1.7 and nothing more"},
    )
    portal.expect_ready("rules.pdf")
    expect(portal.row("broken.pdf").get_by_text("Failed", exact=True)).to_be_visible()
    path = portal.page.url.split(f"/t/{portal.slug}/")[1]
    portal.open(path + "search/?q=proof+of+origin+of+lot+7")
    hit = portal.page.locator(".chunk a").first.get_attribute("href") or ""
    portal.open()
    portal.ask("How long is the proof of origin of lot 7 kept?", "extractive")
    portal.wait_end()
    chat = portal.page.url.split(f"/t/{portal.slug}/")[1]
    inside = {
        "collections": "collections/",
        "collection": path,
        "collection-empty": f"collections/{empty.pk}/",
        "collection-new": "collections/new/",
        "collection-chunks": path + "chunks/",
        "collection-search": path + "search/?q=proof+of+origin+of+lot+7",
        "collection-settings": path + "settings/",
        "chat-new": "chat/",
        "chat": chat,
        "chat-assistant": f"chat/?assistant={clerk.slug}",
        "prompts": "chat/prompts/",
        "prompt-new": "chat/prompts/new/",
        "assistants": "assistants/",
        "assistant": f"assistants/{clerk.pk}/",
        "assistant-version": f"assistants/{clerk.pk}/versions/2/",
        "assistant-new": "assistants/new/?mode=planned",
        "tools": "tools/",
        "tool": "tools/catalog/search_documents/",
        "missing": "collections/999999999/",
    }
    return {name: f"/t/{portal.slug}/{tail}" for name, tail in inside.items()} | {
        "viewer": hit,
        "viewer-text": hit + "&view=text",
        "profile": "/profile/",
    }


def examine(
    page: Page, name: str, look: str, problems: list[str], without: Sequence[Sequence[str]] = ()
) -> None:
    """Add what is wrong with the page that is open, but for the elements of these selectors."""
    page.wait_for_load_state()
    has_axe, wider = page.evaluate(READY)
    if folder := os.environ.get("SCREENSHOT_FOLDER"):
        page.wait_for_timeout(300)
        page.screenshot(path=Path(folder) / f"{name}-{look}.png")
    if wider:
        problems.append(f"{name} {look}: wider than the window: {wider}")
    if not has_axe:
        source = AXE.read_text()
        # The pages to come have it: sending it with each takes 40 ms of the processor.
        page.add_init_script(source)
        page.evaluate(source + ";0")
    problems += [f"{name} {look}: {v}" for v in page.evaluate(RUN_AXE, [without, HOW])]


class Looking:
    """A page of the browser, looked at in each of ``LOOKS``.

    What it opens is loaded once and turned from look to look; the next comes in the look that was the last.
    """

    def __init__(self, page: Page, problems: list[str]) -> None:
        self.page, self.problems = page, problems
        self._looks, self._look = list(LOOKS), ""
        self._session = page.context.new_cdp_session(page)  # what it emulates ends with it

    def at(self, paths: dict[str, str]) -> None:
        """Open each path, and add to the problems what is wrong in any look."""
        for name, path in paths.items():
            self.turn(self._looks[0])
            self.page.goto(path)
            self.here(name)

    def here(self, name: str, without: Sequence[Sequence[str]] = ()) -> None:
        """Add what is wrong with the page that is open, but for the elements of these selectors."""
        for look in self._looks:
            self.turn(look)
            examine(self.page, name, look, self.problems, without)
        self._looks.reverse()

    def turn(self, look: str) -> None:
        """Change size, colours and pointer to those of a look."""
        if look == self._look:  # each change draws the page again
            return
        self._look, options = look, ALL_LOOKS[look]
        touch = options.get("has_touch", False)
        self.page.set_viewport_size(options["viewport"])
        self.page.emulate_media(color_scheme=options["color_scheme"])
        self._session.send("Emulation.setTouchEmulationEnabled", {"enabled": touch})
        assert self.page.evaluate("matchMedia('(pointer: coarse)').matches") is touch


def test_axe_is_the_pinned_one() -> None:
    assert hashlib.sha256(AXE.read_bytes()).hexdigest() == AXE_SHA256


def test_pages_pass_axe_and_fit_the_window(
    new_page: Callable[..., Page], pages: dict[str, str], cast: Cast
) -> None:
    problems: list[str] = []
    # Without the policy, because axe is injected; every other test runs under it.
    looking = Looking(new_page(bypass_csp=True), problems)
    looking.at({"sign-in": "/accounts/login/", "sign-up": "/accounts/signup/"})
    sign_in(looking.page, cast.user("member").email)
    looking.at(pages)
    assert problems == []


def test_drawer_and_dialogs_pass_axe_when_they_are_open(new_page: Callable[..., Page], cast: Cast) -> None:
    problems: list[str] = []
    page = new_page(bypass_csp=True, viewport=NARROW, has_touch=True)
    sign_in(page, cast.user("member").email)
    with tenant_scope(cast.tenant.pk):
        put(cast, imported(cast, "Manuals").pk)
    page.goto("/")
    page.locator("#bell").click()
    expect(page.get_by_role("region", name="Notifications")).to_contain_text("Manuals")
    examine(page, "bell", "light-390", problems)
    page.keyboard.press("Escape")
    page.get_by_role("button", name="Open navigation").click()
    expect(page.locator("#drawer")).to_be_visible()
    examine(page, "drawer", "light-390", problems)
    page.keyboard.press("Escape")
    expect(page.locator("#drawer")).to_be_hidden()
    page.keyboard.press("Control+k")
    expect(page.locator("#palette [role=option]").first).to_be_visible()
    examine(page, "palette", "light-390", problems)
    page.keyboard.press("Escape")
    page.get_by_label("Message").press("/")
    expect(page.get_by_role("listbox", name="Suggestions")).to_be_visible()
    examine(page, "suggestions", "light-390", problems)
    assert problems == []
