"""A workspace with a provider that runs, and a browser that signs in through it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any
from urllib.parse import urlsplit

import pytest
from django.core.cache import cache
from django.test import Client
from django.urls import reverse

from sso import domains, services
from sso.models import SsoConnection
from tenancy.models import Tenant
from tests.cast import Cast
from tests.sso.provider import CLIENT, DOMAIN, SECRET, Provider
from tests.sso.scim_client import Scim
from web.models import AttemptWindow

BACKEND = "django.contrib.auth.backends.ModelBackend"


@pytest.fixture(autouse=True)
def fresh_rates(db: None) -> None:
    """Forget how often this address has called."""
    cache.clear()
    AttemptWindow.objects.all().delete()


@pytest.fixture
def provider(settings: Any) -> Iterator[Provider]:
    settings.FETCH_NETWORKS = ["127.0.0.0/8"]
    found = Provider()
    found.person = {"sub": "00u1", "email": f"ada@{DOMAIN}", "email_verified": True}
    yield found
    found.close()


@pytest.fixture
def door(cast: Cast, provider: Provider) -> Door:
    return Door(cast, provider)


def domain_have(tenant: Tenant, actor: Any, domain: str = DOMAIN) -> None:
    """Verify a domain as its owner does, with a DNS that has the record."""
    row = domains.domain_add(tenant=tenant, actor=actor, domain=domain)
    domains.domain_verify(
        tenant=tenant, actor=actor, pk=row.pk, records=lambda name: [f"{domains.PREFIX}{row.token}"]
    )


class Door:
    """A workspace's connection to a provider, and one browser in front of it."""

    def __init__(self, cast: Cast, provider: Provider, *, tenant: Tenant | None = None) -> None:
        self.cast, self.provider = cast, provider
        self.tenant = tenant or cast.tenant
        self.actor = cast.actor("owner" if self.tenant == cast.tenant else "outsider")
        self.row: SsoConnection = services.connection_set(
            tenant=self.tenant,
            actor=self.actor,
            name="Acme ID",
            issuer=provider.issuer,
            client_id=CLIENT,
            secret=SECRET,
        )
        if self.tenant == cast.tenant:
            domain_have(self.tenant, self.actor)
        self.browser = Client(raise_request_exception=False)

    @property
    def home(self) -> str:
        return f"/t/{self.tenant.slug}/settings/connections/"

    def begin(self, browser: Client | None = None, **query: str) -> str:
        """Open the way to the provider; returns where the browser is sent."""
        path = reverse("sso:start", args=[self.tenant.slug, self.row.pk])
        response = (browser or self.browser).get(path, query)
        assert response.status_code == 302, response.content
        return str(response["Location"])

    def end(self, address: str, browser: Client | None = None) -> Any:
        """Open the address that the provider sends back to."""
        parts = urlsplit(address)
        return (browser or self.browser).get(f"{parts.path}?{parts.query}")

    def sign_in(self, browser: Client | None = None, **query: str) -> Any:
        return self.end(self.provider.authorize(self.begin(browser, **query)), browser)

    def is_in(self, browser: Client | None = None) -> bool:
        """Tell whether the browser can open a page of the workspace."""
        return (browser or self.browser).get(self.home).status_code == 200


@pytest.fixture
def scim(cast: Cast) -> Scim:
    """A provisioning client of the workspace's provider."""
    domain_have(cast.tenant, cast.actor("owner"))
    return Scim(cast)
