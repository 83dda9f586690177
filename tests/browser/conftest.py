"""A real Chromium against a real web server, worker, database and model server."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, sync_playwright

from tests.cast import Cast, make_cast
from tests.fake_provider import FakeProvider, running
from tests.servers import Stack

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
FLAGS = [
    *("--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"),
    *("--disable-background-networking", "--disable-component-update", "--disable-sync"),
]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """One process runs all browser tests: they share the servers."""
    here = Path(__file__).parent
    for item in items:
        if here in item.path.parents:
            item.add_marker(pytest.mark.browser)
            item.add_marker(pytest.mark.servers)
            item.add_marker(pytest.mark.xdist_group("browser"))


@dataclass(frozen=True)
class Site:
    """The running product: where it is, and the model server behind it."""

    stack: Stack
    model_server: FakeProvider

    @property
    def url(self) -> str:
        return self.stack.url


@pytest.fixture(scope="session")
def site(
    django_db_setup: None, django_db_blocker: Any, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Site]:
    logs = tmp_path_factory.mktemp("servers")
    with running() as (model_url, model_server), django_db_blocker.unblock():
        stack = Stack(
            logs,
            GROUNDWORK_COMPATIBLE_BASE_URL=model_url,
            GROUNDWORK_COMPATIBLE_MODELS="fake-search,fake-search-words80-gap40,fake-fail500",
        )
        try:
            stack.start_web()
            stack.start_worker()
            yield Site(stack, model_server)
        finally:
            stack.stop()
            for log in logs.iterdir():
                print(f"--- {log.name}\n{log.read_text(errors='replace')[-4000:]}")  # noqa: T201


@pytest.fixture(scope="session")
def chromium() -> Iterator[Browser]:
    if CHROMIUM is None:
        message = "Chromium is not installed (Debian: apt-get install chromium)"
        if os.environ.get("GROUNDWORK_REQUIRE_BROWSER") == "1":
            pytest.fail(message)
        pytest.skip(message)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        yield browser
        browser.close()


@pytest.fixture
def cast(transactional_db: None) -> Cast:
    return make_cast()


@pytest.fixture
def page(site: Site, chromium: Browser, cast: Cast) -> Iterator[Page]:
    """A page signed in as the member; a content-security violation or script error fails the test."""
    context = chromium.new_context(base_url=site.url, viewport={"width": 1440, "height": 900})
    page = context.new_page()
    problems: list[str] = []
    page.on("pageerror", lambda error: problems.append(f"script error: {error}"))
    page.on(
        "console",
        lambda m: problems.append(m.text) if "Content Security Policy" in m.text else None,
    )
    sign_in(page, cast.user("member").email)
    yield page
    context.close()
    assert problems == []


def sign_in(page: Page, email: str) -> None:
    """Sign in by the form, as a person does."""
    page.goto("/accounts/login/")
    page.get_by_label("Email").fill(email)
    page.get_by_label("Password", exact=True).fill("secret-password")
    page.get_by_role("button", name="Sign in").click()
    page.wait_for_url(lambda url: "/accounts/login" not in url)
