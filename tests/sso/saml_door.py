"""A workspace's connection to a SAML provider, and one browser in front of it."""

from __future__ import annotations

from typing import Any
from urllib.parse import urlsplit

from django.test import Client
from django.urls import reverse

from sso.models import SsoConnection
from sso.saml.services import saml_connection_set
from tenancy.models import Tenant
from tenancy.scope import tenant_scope
from tests.cast import Cast
from tests.sso.conftest import BACKEND, domain_have
from tests.sso.provider import DOMAIN
from tests.sso.saml_provider import KEY, SSO, Asked, SamlProvider, encoded


class SamlDoor:
    """As ``Door`` for OpenID Connect."""

    def __init__(self, cast: Cast, *, tenant: Tenant | None = None) -> None:
        self.cast, self.tenant = cast, tenant or cast.tenant
        self.actor = cast.actor("owner" if self.tenant == cast.tenant else "outsider")
        self.provider = SamlProvider(attributes={"email": [f"ada@{DOMAIN}"]})
        self.values: dict[str, Any] = {
            "name": "Acme SAML", "issuer": self.provider.issuer, "sso_url": SSO, "certificates": KEY.pem,
        }  # fmt: skip
        self.row: SsoConnection = saml_connection_set(tenant=self.tenant, actor=self.actor, **self.values)
        if self.tenant == cast.tenant:
            domain_have(self.tenant, self.actor)
        self.browser = Client(raise_request_exception=False)

    @property
    def home(self) -> str:
        return f"/t/{self.tenant.slug}/settings/connections/"

    @property
    def acs(self) -> str:
        return reverse("sso:acs", args=[self.tenant.slug, self.row.pk])

    def set(self, **values: Any) -> None:
        """Change the connection as its owner does."""
        self.values |= values
        self.row = saml_connection_set(tenant=self.tenant, actor=self.actor, **self.values, pk=self.row.pk)

    def settings_page(self) -> str:
        browser = Client()
        browser.force_login(self.cast.user("owner"), BACKEND)
        return browser.get(f"/t/{self.tenant.slug}/settings/sign-in/").content.decode()

    def begin(self, browser: Client | None = None, **query: str) -> Asked:
        """Open the way to the provider; returns what it is asked."""
        path = reverse("sso:start", args=[self.tenant.slug, self.row.pk])
        response = (browser or self.browser).get(path, query)
        assert response.status_code == 302, response.content
        return Asked.of(response["Location"])

    def post(self, response: Any | bytes | str, state: str, *, to: str = "") -> Any:
        """Post a form as a browser does from another site: without any cookie."""
        form = {
            "SAMLResponse": response if isinstance(response, str) else encoded(response),
            "RelayState": state,
        }
        return Client(raise_request_exception=False).post(to or self.acs, form)

    def fetch(self, posted: Any, browser: Client | None = None) -> Any:
        """Follow where the form's answer leads, with the browser's session."""
        if posted.status_code != 303:
            return posted
        parts = urlsplit(posted["Location"])
        return (browser or self.browser).get(f"{parts.path}?{parts.query}")

    def sign_in(self, browser: Client | None = None, **query: str) -> Any:
        asked = self.begin(browser, **query)
        return self.fetch(self.post(self.provider.respond(asked), asked.state), browser)

    def is_in(self, browser: Client | None = None) -> bool:
        """Tell whether the browser can open a page of the workspace."""
        return (browser or self.browser).get(self.home).status_code == 200

    def answers(self) -> int:
        """Return how many assertions were believed."""
        with tenant_scope(self.tenant.pk):
            return self.row.answers.count()
