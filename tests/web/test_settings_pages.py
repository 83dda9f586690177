"""Settings: what is shown once is shown once, secrets are never shown, refusals are said."""

from __future__ import annotations

import re
from decimal import Decimal
from typing import Any

import pytest
from django.test import Client
from django.urls import reverse

from apps.conversations.assistants.options import VersionSpec
from apps.conversations.assistants.services import assistant_archive, assistant_create
from basics.errors import Missing
from budgets.services import budget_set
from tenancy.models import ApiKey, AuditEvent
from tenancy.scope import tenant_scope
from tenancy.selectors import api_key_authenticate
from tests.cast import Cast

SECRET = "sk-a-real-looking-key-0123456789"


@pytest.fixture
def client(cast: Cast) -> Client:
    client = Client()
    client.force_login(cast.user("owner"), "django.contrib.auth.backends.ModelBackend")
    return client


def address(cast: Cast, name: str) -> str:
    return reverse(f"web:{name}", args=[cast.tenant.slug])


def test_new_key_is_shown_once_and_works(cast: Cast, client: Client):
    data = {"action": "create", "name": "ci", "scopes": ["search.run"], "expires": "30"}
    made = client.post(address(cast, "settings-keys"), data)
    key = re.search(r'id="new-key">([^<]+)<', made.content.decode())
    assert key is not None
    assert api_key_authenticate(key=key[1]) is not None
    assert "no-store" in made["Cache-Control"]
    assert key[1] not in client.get(address(cast, "settings-keys")).content.decode()


def test_invitation_link_is_shown_once(cast: Cast, client: Client):
    data = {"email": "x@example.org", "role": "viewer"}
    page = client.post(address(cast, "settings-invites"), data).content.decode()
    link = re.search(r'id="invite-link">([^<]+)<', page)
    assert link is not None
    assert link[1].startswith("http://testserver/invite/")
    again = client.get(address(cast, "settings-members")).content.decode()
    assert "x@example.org" in again
    assert link[1] not in again


def test_provider_key_never_comes_back(cast: Cast, client: Client):
    url = address(cast, "settings-models")
    data = {"action": "save", "provider": "openai", "secret": SECRET}
    assert client.post(url, data).status_code == 302
    refused = client.post(url, {**data, "base_url": "http://127.0.0.1/"})
    assert refused.status_code == 422
    for page in (client.get(url), refused, client.get(address(cast, "settings-audit"))):
        body = page.content.decode()
        assert SECRET not in body
        assert SECRET[:-4] not in body
    assert f"…{SECRET[-4:]}" in client.get(url).content.decode()


def test_refusal_of_a_service_stands_at_its_field(cast: Cast, client: Client):
    data = {"email": cast.user("viewer").email, "role": "viewer"}
    response = client.post(address(cast, "settings-invites"), data)
    assert response.status_code == 422
    assert "already a member of this workspace" in response.content.decode()


def test_last_owner_is_told_why(cast: Cast, client: Client):
    data = {"action": "remove", "membership": cast.owner.pk}
    response = client.post(address(cast, "settings-members"), data, follow=True)
    assert "only owner" in response.content.decode()


@pytest.mark.parametrize("value", ["", "x", "-1", "9" * 30, "1.5", "٣"])
def test_nonsense_id_does_not_exist(cast: Cast, client: Client, value: str):
    data = {"action": "revoke", "key": value}
    assert client.post(address(cast, "settings-keys"), data).status_code == 404


@pytest.mark.parametrize("name", ["settings-members", "settings-keys", "settings-models"])
def test_unknown_action_is_refused(cast: Cast, client: Client, name: str):
    assert client.post(address(cast, name), {"action": "nonsense"}).status_code == 400


def test_audit_row_has_the_request_and_its_address(cast: Cast, client: Client):
    data = {"action": "create", "name": "ci", "scopes": ["search.run"], "expires": ""}
    response = client.post(address(cast, "settings-keys"), data, REMOTE_ADDR="203.0.113.9")
    with tenant_scope(cast.tenant.pk):
        event = AuditEvent.objects.get(action="key.create")
        assert ApiKey.objects.get().expires_at is None
    assert event.ip == "203.0.113.9"
    assert event.request_id == response["X-Request-ID"]


def test_forwarded_address_counts_only_from_a_trusted_proxy(cast: Cast, client: Client, settings):
    sent = {"X-Forwarded-For": "198.51.100.7, 203.0.113.50"}
    data = {"action": "create", "name": "ci", "scopes": ["search.run"], "expires": ""}
    for is_trusted in (False, True):
        settings.TRUST_PROXY = is_trusted
        client.post(address(cast, "settings-keys"), data, REMOTE_ADDR="10.0.0.1", headers=sent)
    with tenant_scope(cast.tenant.pk):
        events = AuditEvent.objects.filter(action="key.create").order_by("pk")
        assert [e.ip for e in events] == ["10.0.0.1", "203.0.113.50"]


def test_palette_finds_own_things_and_places(cast: Cast, client: Client):
    from tests.factories import make_collection

    make_collection(cast.tenant, "Customs papers")
    make_collection(cast.other_tenant, "Customs of others")
    body = client.get(address(cast, "palette"), {"q": "customs"}).content.decode()
    assert "Customs papers" in body
    assert "others" not in body
    assert "API keys" in client.get(address(cast, "palette"), {"q": "api"}).content.decode()
    assert client.get(address(cast, "palette"), {"q": "%_\0'\""}).status_code == 200


def test_palette_offers_a_viewer_only_what_they_may_open(cast: Cast):
    viewer = Client()
    viewer.force_login(cast.user("viewer"), "django.contrib.auth.backends.ModelBackend")
    body = viewer.get(address(cast, "palette")).content.decode()
    assert "New conversation" in body
    for hidden in ("API keys", "Audit log", "Models", "New collection"):
        assert hidden not in body


@pytest.mark.parametrize(
    ("role", "shown"),
    [("viewer", set()), ("member", {"members"}), ("admin", {"members", "models", "keys", "audit"})],
)
def test_navigation_leads_only_where_the_role_may_go(cast: Cast, role: str, shown: set[str]):
    client = Client()
    client.force_login(cast.user(role), "django.contrib.auth.backends.ModelBackend")
    start = address(cast, "settings-members" if shown else "tenant-home")
    page = client.get(start, follow=True).content.decode()
    for name in ("members", "models", "keys", "audit"):
        link = f'href="{address(cast, f"settings-{name}")}"'
        assert (link in page) == (name in shown), name


def test_budget_of_an_assistant_is_chosen_and_shown_by_its_name(cast: Cast, client: Client):
    made = {}
    for tenant, role in ((cast.tenant, "owner"), (cast.other_tenant, "outsider")):
        with tenant_scope(tenant.pk):
            who: Any = {"tenant": tenant, "actor": cast.actor(role)}
            made[role] = assistant_create(**who, name="Tariff clerk", spec=VersionSpec())
    url = address(cast, "settings-budgets")
    choice = f'<option value="assistant:{made["owner"].pk}">the assistant “Tariff clerk”</option>'
    assert choice in client.get(url).content.decode()
    data = {"action": "set", "amount_usd": "5", "period": "month"}
    foreign = client.post(url, {**data, "whose": f"assistant:{made['outsider'].pk}"})
    assert foreign.status_code == 422
    assert client.post(url, {**data, "whose": f"assistant:{made['owner'].pk}"}).status_code == 302
    with tenant_scope(cast.tenant.pk):
        assistant_archive(tenant=cast.tenant, actor=cast.actor("owner"), assistant=made["owner"])
        with pytest.raises(Missing):
            budget_set(
                tenant=cast.tenant,
                actor=cast.actor("owner"),
                kind="assistant",
                subject_id=made["outsider"].pk,
                amount_usd=Decimal(5),
            )
    page = client.get(url).content.decode()
    assert "The assistant “Tariff clerk”" in page
    assert choice not in page
