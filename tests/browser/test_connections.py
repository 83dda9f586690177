"""A member connects an application in a real browser, under the policy, and disconnects it again."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Any
from urllib.parse import urlencode

import pytest
from playwright.sync_api import Page, expect

from tests.browser.conftest import sign_in
from tests.browser.test_accessibility import Looking
from tests.cast import Cast
from web.oauth.clients import client_register


class _Landing(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "text/html")
        self.end_headers()
        self.wfile.write(b"<!doctype html><title>app</title><h1>Back in the application</h1>")

    def log_message(self, *args: Any) -> None:
        """Stay quiet."""


@pytest.fixture
def landing() -> Iterator[str]:
    """An application on the person's machine that waits for its answer; returns its address."""
    server = HTTPServer(("127.0.0.1", 0), _Landing)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}/callback"
    server.shutdown()
    server.server_close()


def test_member_connects_an_application_and_disconnects_it(
    new_page: Callable[..., Page], cast: Cast, landing: str
) -> None:
    slug = cast.tenant.slug
    said = {"redirect_uris": [landing], "client_name": "Claude Code"}
    asked = {
        "response_type": "code",
        "client_id": client_register(slug, said).client_id,
        "redirect_uri": landing,
        "code_challenge": "c" * 43,
        "code_challenge_method": "S256",
        "state": "x",
    }
    question = f"/t/{slug}/oauth/authorize?{urlencode(asked)}"
    settings = f"/t/{slug}/settings/connections/"
    page = new_page()
    sign_in(page, cast.user("member").email)
    page.goto(question)
    expect(page.get_by_role("heading", level=1)).to_contain_text("Connect “Claude Code”")
    expect(page.get_by_label("Add and change documents and files")).not_to_be_checked()
    page.get_by_role("button", name="Allow").click()
    expect(page.get_by_role("heading", name="Back in the application")).to_be_visible()
    assert "code=gwo_" in page.url
    page.goto(settings)
    row = page.get_by_role("row", name="Claude Code")
    expect(row).to_contain_text("connected")
    expect(row).to_contain_text("Run the tools you can run")

    problems: list[str] = []
    looking = Looking(new_page(bypass_csp=True), problems)
    sign_in(looking.page, cast.user("member").email)
    looking.at(
        {
            "consent": question,
            "consent-refused": question + "&state=y",
            "connections": settings,
            "profile": "/profile/",
        }
    )
    assert not problems, "\n".join(problems)

    row.get_by_role("button", name="Disconnect").click()
    expect(page.get_by_role("row", name="Claude Code")).to_contain_text("disconnected")
