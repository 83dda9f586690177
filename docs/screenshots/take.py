"""Take the pictures of the README: the demo's own documents, the built-in extractive model, a real Chromium.

Run: python docs/screenshots/take.py. Makes a database of its own, as the benchmarks do.
"""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parents[1] / "benchmarks"))

from _stack import database, product  # noqa: E402

EARLIER = "Which subheadings cover automobile parts?"
QUESTION = "Which steel and aluminum derivative products did the notice add, and from when?"


def main() -> None:
    """Write chat.png and collections.png beside this file."""
    os.environ["DJANGO_ALLOW_ASYNC_UNSAFE"] = "1"  # Playwright keeps a loop in this thread
    with database(), product("fake-words20") as (stack, _):
        email, password = seed()
        take(stack.url, email, password)


def seed() -> tuple[str, str]:
    """Make the demo's workspaces; return how its person signs in."""
    from django.conf import settings

    from config.demo import EMAIL, demo_password, demo_seed

    demo_seed(data_dir=settings.DATA_DIR, say=print)
    return EMAIL, demo_password(settings.DATA_DIR)


def take(url: str, email: str, password: str) -> None:
    """Sign in, wait until the documents are ready, ask, and take the pictures."""
    from playwright.sync_api import expect, sync_playwright

    from tests.browser.portal import Portal

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=shutil.which("chromium") or shutil.which("chromium-browser"),
            args=["--no-sandbox", "--disable-gpu"],
        )
        page = browser.new_context(
            base_url=url, viewport={"width": 1440, "height": 900}, color_scheme="light"
        ).new_page()
        page.goto("/accounts/login/")
        page.get_by_label("Email").fill(email)
        page.get_by_label("Password", exact=True).fill(password)
        page.get_by_role("button", name="Sign in").click()
        page.wait_for_url("**/chat/")
        portal = Portal(page, "trade-desk")
        portal.open("collections/")
        page.locator(".ccard").first.click()
        for row in page.locator("#documents tr").all():
            expect(row.get_by_text("Ready", exact=True)).to_be_visible(timeout=120_000)
        for question in (EARLIER, QUESTION):  # the first one finds the worker's model cold
            portal.open()
            portal.ask(question, "extractive")
            portal.wait_end()
        portal.answer.locator("button.cite").first.click()
        expect(page.locator("details.src[open] .leaf mark")).to_be_visible()
        page.wait_for_load_state("networkidle", timeout=10_000)
        page.mouse.move(700, 700)
        page.screenshot(path=HERE / "chat.png")
        portal.open("collections/")
        page.locator(".ccard").first.click()
        expect(page.locator("#documents tr").first).to_be_visible()
        page.screenshot(path=HERE / "collections.png")
        browser.close()


if __name__ == "__main__":
    main()
