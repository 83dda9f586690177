"""A real Chromium against a real web server, worker, database and model server.

Where it is installed, Chromium's headless shell draws the pages: the same engine without windows, tabs and menus of its
own, which costs less than half of the processor time. Pages ask for reduced motion: a spinner that turns while a test
waits takes a fifth of a processor. `make test-nightly` uses the whole browser, with all motion.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Literal, NoReturn

import pytest
from django.conf import settings
from django.core.management import call_command
from django.db import connections
from django.test import Client
from playwright.sync_api import Browser, BrowserContext, Page, expect, sync_playwright

from tenancy.models import User
from tests.browser.portal import Portal, watch_console
from tests.cast import Cast, make_cast
from tests.fake_provider import FakeProvider, running
from tests.nightly import NIGHTLY
from tests.patience import PATIENCE_S
from tests.servers import Stack

# What comes at all comes soon; on a machine that runs other tests beside, "soon" is longer than playwright's 5 s.
expect.set_options(timeout=PATIENCE_S * 1000)

SHELL = "chromium-headless-shell"
CHROMIUM = next(
    filter(None, map(shutil.which, [*([] if NIGHTLY else [SHELL]), "chromium", "chromium-browser"])), None
)
MOTION: Literal["no-preference", "reduce"] = "no-preference" if NIGHTLY else "reduce"
FLAGS = [
    *("--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"),
    *("--disable-background-networking", "--disable-component-update", "--disable-sync"),
]
MODELS = (
    "fake-search-words40-gap15",
    "fake-search-words90-gap40",
    "fake-search-words90-gap40-held",
    "fake-words400-gap50-held",
    "fake-fail500",
    "fake-search-words60-gap10-cut",
    "fake-words600-gap10",
    "fake-words120-gap50",
    "fake-said",  # says what a test tells it to (FakeProvider.replies)
)


@dataclass(frozen=True)
class Site:
    """The running product: where it is, and the model server behind it."""

    stack: Stack
    model_server: FakeProvider

    @property
    def url(self) -> str:
        return self.stack.url


@pytest.fixture(scope="package")
def transactional_db(django_db_setup: None, django_db_blocker: Any) -> Iterator[None]:
    """Database access for the whole package: each test has tenants of its own, and the last one sweeps.

    It has the name of pytest-django's fixture because that makes it set up the database. Playwright keeps an event loop
    in this thread, which Django takes for asynchronous code.
    """
    with pytest.MonkeyPatch.context() as patch, django_db_blocker.unblock():
        patch.setenv("DJANGO_ALLOW_ASYNC_UNSAFE", "1")
        yield
        call_command("flush", interactive=False, verbosity=0)


@pytest.fixture(scope="package")
def site(transactional_db: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    logs = tmp_path_factory.mktemp("servers")
    with running() as (model_url, model_server):
        stack = Stack(
            logs, GROUNDWORK_COMPATIBLE_BASE_URL=model_url, GROUNDWORK_COMPATIBLE_MODELS=",".join(MODELS)
        )
        try:
            stack.start()
            yield Site(stack, model_server)
        finally:
            stack.stop()
            for log in logs.iterdir():
                print(f"--- {log.name}\n{log.read_text(errors='replace')[-4000:]}")  # noqa: T201


def browser_missing(packages: str) -> NoReturn:
    """Leave a test out for want of a browser; it fails where browsers are required, as in CI."""
    message = f"Chromium is not installed (Debian: apt-get install {packages})"
    if os.environ.get("GROUNDWORK_REQUIRE_BROWSER") == "1":
        pytest.fail(message)
    pytest.skip(message)


@pytest.fixture(scope="package")
def chromium() -> Iterator[Browser]:
    if CHROMIUM is None:
        browser_missing(f"{SHELL} chromium")
    with sync_playwright() as playwright:
        # In its event loop Django has connections of their own, perhaps of browser tests before: a test in between may
        # have cut them.
        connections.close_all()
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        yield browser
        browser.close()


@pytest.fixture
def cast(transactional_db: None) -> Cast:
    return make_cast()


@pytest.fixture
def new_page(site: Site, chromium: Browser) -> Iterator[Callable[..., Page]]:
    """Make pages, each in a browser profile of its own; a content-security violation or script error fails the test."""
    site.model_server.hold()
    contexts: list[BrowserContext] = []
    problems: list[str] = []

    def make(**options: Any) -> Page:
        size = {"width": 1440, "height": 900}
        # The worker of an installed portal would stand between a page and what a test does to its requests.
        usual = {"base_url": site.url, "viewport": size, "reduced_motion": MOTION, "service_workers": "block"}
        context = chromium.new_context(**usual | options)
        context.set_default_timeout(PATIENCE_S * 1000)
        contexts.append(context)
        context.on("page", lambda page: watch_console(page, problems))
        return context.new_page()

    yield make
    for context in contexts:
        context.close()
    assert problems == []


@pytest.fixture
def page(new_page: Callable[..., Page], cast: Cast) -> Page:
    """A page signed in as the member; nothing is open."""
    page = new_page()
    sign_in(page, cast.user("member").email)
    return page


@pytest.fixture
def portal(page: Page, cast: Cast) -> Portal:
    """The member's page with the things a person does on it."""
    return Portal(page, cast.tenant.slug)


def sign_in(page: Page, email: str) -> None:
    """Sign in without the form, which is what test_sign_in.py fills in; opens nothing."""
    client, name = Client(), settings.SESSION_COOKIE_NAME
    client.force_login(User.objects.get(email=email), "django.contrib.auth.backends.ModelBackend")
    session = client.cookies[name].value
    page.context.add_cookies(
        [{"name": name, "value": session, "domain": "127.0.0.1", "path": "/", "httpOnly": True}]
    )


def sign_in_by_form(page: Page, email: str) -> None:
    """Sign in as a person does."""
    page.goto("/accounts/login/")
    page.get_by_label("Email").fill(email)
    page.get_by_label("Password", exact=True).fill("secret-password")
    page.get_by_role("button", name="Sign in").click()
    page.wait_for_url(lambda url: "/accounts/login" not in url)
