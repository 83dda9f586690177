"""Pages from right to left, with Arabic letters for every marked text: laid out from the other side, and no wider than a phone."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import polib
import pytest
from django.test import Client
from playwright.sync_api import Browser, BrowserContext, Page, Route

from config.catalogs import LOCALE
from tenancy.models import User
from tests.browser.conftest import MOTION
from tests.browser.shots import shot
from tests.cast import Cast
from tests.catalogs import catalog_write, languages_in

ORIGIN = "http://testserver"
KEPT = re.compile(r"%\(\w+\)s|<[^>]*>|&\w+;|%")
WIDTHS = "[document.documentElement.scrollWidth, document.documentElement.clientWidth, scrollX]"
LETTERS = str.maketrans("abcdefghijklmnopqrstuvwxyz", "ابتثجحخدذرزسشصضطظعغفقكلمنه")
PAGES = {
    "profile": "/profile/",
    "chat": "WORKSPACE/chat/",
    "collections": "WORKSPACE/collections/",
    "tools": "WORKSPACE/tools/",
    "usage": "WORKSPACE/usage/",
    "members": "WORKSPACE/settings/members/",
    "audit": "WORKSPACE/settings/audit/",
}


def arabic(text: str) -> str:
    """Write a text in Arabic letters, all but what isn't text in it."""
    kept = KEPT.findall(text)
    written = [part.lower().translate(LETTERS) for part in KEPT.split(text)]
    return "".join(part + end for part, end in zip(written, [*kept, ""], strict=True))


def texts(domain: str) -> dict[str, str]:
    catalog = polib.pofile(str(LOCALE / "ar" / "LC_MESSAGES" / f"{domain}.po"))
    return {e.msgid: arabic(e.msgid) for e in catalog if not e.msgid_plural and not e.msgctxt}


@pytest.fixture
def shown(
    tmp_path: Path, chromium: Browser, cast: Cast, transactional_db: None
) -> Iterator[tuple[Page, Cast]]:
    """A page in Arabic whose requests this process answers: the languages are those of the test."""
    catalog_write(tmp_path, "ar", texts("django"), texts("djangojs"))
    user = cast.user("owner")
    User.objects.filter(pk=user.pk).update(language="ar")
    client = Client()
    problems: list[str] = []

    def answer(route: Route) -> None:
        address = urlsplit(route.request.url)
        got: Any = client.get(
            f"{address.path}?{address.query}",
            headers={"HX-Request": "true"} if "hx-request" in route.request.headers else {},
        )
        if got.streaming:
            return route.abort()
        return route.fulfill(status=got.status_code, headers=dict(got.items()), body=got.content)

    with languages_in(tmp_path):
        context: BrowserContext = chromium.new_context(
            base_url=ORIGIN, viewport={"width": 390, "height": 844}, reduced_motion=MOTION
        )
        context.route("**/*", answer)
        page = context.new_page()
        page.on("pageerror", lambda error: problems.append(str(error)))
        client.force_login(user, "django.contrib.auth.backends.ModelBackend")
        yield page, cast
        context.close()
    assert problems == []


def test_pages_are_laid_out_from_right_to_left_and_no_wider_than_a_phone(shown: tuple[Page, Cast]) -> None:
    page, cast = shown
    for name, path in PAGES.items():
        page.set_viewport_size({"width": 390, "height": 844})
        page.goto(path.replace("WORKSPACE", f"/t/{cast.tenant.slug}"))
        root = page.locator("html")
        assert (root.get_attribute("lang"), root.get_attribute("dir")) == ("ar", "rtl"), name
        assert re.search("[\u0600-\u06ff]", page.locator("main").inner_text()), name
        wide, window, scrolled = page.evaluate(WIDTHS)
        assert wide <= window, name
        assert scrolled == 0, name
        page.set_viewport_size({"width": 1440, "height": 900})
        side, main = page.locator(".side").first.bounding_box(), page.locator("main").bounding_box()
        assert side, name
        assert main, name
        assert side["x"] >= main["x"] + main["width"] - 1, name  # the navigation is where reading begins
        shot(page, f"rtl-{name}")
