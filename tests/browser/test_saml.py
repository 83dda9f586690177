"""Sign-in through a SAML provider in a real browser: the provider's form is posted from another site, without our session."""

from __future__ import annotations

import html
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest
from playwright.sync_api import Page, Request, expect

from sso.saml.services import saml_connection_set
from tests.browser.conftest import sign_in
from tests.browser.test_accessibility import Looking
from tests.cast import Cast
from tests.sso.conftest import domain_have
from tests.sso.saml_provider import Asked, SamlProvider, encoded

DOMAIN = "saml.example"
FORM = """<!doctype html><title>Provider</title><form method="post" action="{to}">
<input type="hidden" name="SAMLResponse" value="{response}"><input type="hidden" name="RelayState" value="{state}">
<button>Continue to Groundwork</button></form>"""


class _Provider(BaseHTTPRequestHandler):
    """Signs everybody in as Ada, from the name localhost: to a browser another site than 127.0.0.1."""

    def do_GET(self) -> None:
        port = self.connection.getsockname()[1]
        if self.headers["Host"].startswith("127.0.0.1"):
            self.send_response(302)
            self.send_header("Location", f"http://localhost:{port}{self.path}")
            self.end_headers()
            return
        if "SAMLRequest=" not in self.path:  # the browser asks for an icon too
            self.send_error(404)
            return
        asked = Asked.of(f"http://127.0.0.1:{port}{self.path}")
        response = SamlProvider(attributes={"email": [f"ada@{DOMAIN}"]}).respond(asked)
        said = FORM.format(to=html.escape(asked.address), response=encoded(response), state=asked.state)
        self.send_response(200)
        self.send_header("Content-Type", "text/html")
        self.end_headers()
        self.wfile.write(said.encode())

    def log_message(self, *args: Any) -> None:
        """Stay quiet."""


@pytest.fixture
def provider(settings: Any) -> Iterator[str]:
    settings.FETCH_NETWORKS = ["127.0.0.0/8"]  # of this process, which adds the connection
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Provider)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}/sso"
    server.shutdown()
    server.server_close()


def test_person_signs_in_through_a_form_of_another_site(
    new_page: Callable[..., Page], cast: Cast, provider: str
) -> None:
    owner = cast.actor("owner")
    metadata = SamlProvider().metadata().replace("https://idp.acme.example/sso", provider)
    saml_connection_set(tenant=cast.tenant, actor=owner, name="Acme SAML", metadata=metadata)
    domain_have(cast.tenant, owner, DOMAIN)
    page = new_page()
    posted: list[Request] = []
    page.on("request", lambda one: posted.append(one))
    page.goto(f"/sso/{cast.tenant.slug}/")
    page.get_by_role("link", name="Continue with Acme SAML").click()
    page.get_by_role("button", name="Continue to Groundwork").click()
    page.wait_for_url(f"**/t/{cast.tenant.slug}/**")
    acs = next(one for one in posted if one.method == "POST" and one.url.endswith("/acs"))
    assert "cookie" not in acs.all_headers(), "or the test shows nothing of cross-site forms"
    page.goto(f"/t/{cast.tenant.slug}/settings/connections/")
    expect(page.get_by_role("heading", name="Connected applications")).to_be_visible()


def test_owner_adds_a_provider_and_reads_its_addresses(new_page: Callable[..., Page], cast: Cast) -> None:
    page = new_page()
    sign_in(page, cast.user("owner").email)
    page.goto(f"/t/{cast.tenant.slug}/settings/sign-in/")
    page.get_by_text("Add a provider with SAML 2.0").click()
    form = page.locator("form", has=page.locator("input[name=action][value=saml]"))
    form.get_by_label("Name").fill("Okta")
    form.get_by_role("button", name="Add SAML provider").click()
    expect(page.get_by_text("needs its metadata")).to_be_visible()
    expect(page.locator("[id^=answer-]")).to_contain_text("/acs")
    expect(page.locator("[id^=entity-]")).to_contain_text("/metadata")
    page.get_by_label("Provider's metadata").first.fill(SamlProvider().metadata())
    page.get_by_role("button", name="Save", exact=True).first.click()
    expect(page.get_by_text("never used")).to_be_visible()

    problems: list[str] = []
    looking = Looking(new_page(bypass_csp=True), problems)
    sign_in(looking.page, cast.user("owner").email)
    looking.at({"saml": f"/t/{cast.tenant.slug}/settings/sign-in/"})
    assert not problems, "\n".join(problems)
