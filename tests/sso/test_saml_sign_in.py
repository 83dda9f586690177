"""Sign-in through a SAML provider, as people and owners do it."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any

import pytest
from django.test import Client
from django.urls import reverse
from django.utils import timezone
from lxml import etree

from basics.errors import Conflict, Invalid, Missing
from sso import services
from sso.models import SamlAnswer, SsoConnection, SsoIdentity
from sso.saml.services import answers_expire, ends_soon, saml_connection_set
from sso.selectors import door_list
from tenancy.models import AuditEvent, Membership, User
from tenancy.scope import platform_scope
from tests.cast import Cast
from tests.sso.conftest import BACKEND
from tests.sso.provider import DOMAIN
from tests.sso.saml_door import SamlDoor
from tests.sso.saml_provider import EMAIL, ISSUER, KEY, OTHER_KEY, SSO, SamlKey, SamlProvider
from tests.sso.test_rules import Person, rules

pytestmark = pytest.mark.django_db


@pytest.fixture
def door(cast: Cast) -> SamlDoor:
    return SamlDoor(cast)


def role(door: SamlDoor) -> str:
    with platform_scope():
        return Membership.objects.get(tenant=door.tenant, user__email=f"ada@{DOMAIN}").role


@pytest.mark.parametrize("signs", ["assertion", "response", "both"])
def test_signed_answer_lets_in(signs: str, door: SamlDoor):
    door.provider.signs = signs
    answer = door.sign_in(next=door.home)
    assert (answer.status_code, answer["Location"]) == (302, door.home)
    assert door.is_in()
    with platform_scope():
        assert SsoIdentity.objects.get(connection=door.row).subject == "00u1"
        kept = SamlAnswer.objects.get(connection=door.row)
        assert (kept.claims, kept.taken_at is not None) == ({}, True)
        assert SsoConnection.objects.get(pk=door.row.pk).tested_at is not None


def test_elliptic_key_lets_in(door: SamlDoor):
    key = SamlKey(curve=True)
    door.set(certificates=key.pem)
    door.provider.key = key
    assert door.sign_in().status_code == 302


def test_groups_give_a_role(door: SamlDoor):
    services.group_role_set(tenant=door.tenant, actor=door.actor, group="Eng", role="admin")
    door.provider.attributes["groups"] = ["Everyone", "Eng"]
    door.sign_in()
    assert role(door) == "admin"
    door.provider.attributes["groups"] = []
    door.sign_in()
    assert role(door) == "member"


def test_address_as_name_lets_in(door: SamlDoor):
    door.provider.form, door.provider.name_id, door.provider.attributes = EMAIL, f"ada@{DOMAIN}", {}
    assert door.sign_in().status_code == 302
    assert User.objects.filter(email=f"ada@{DOMAIN}").exists()


def test_attribute_of_the_address_may_be_named(door: SamlDoor):
    door.set(email_claim="work")
    assert door.sign_in().status_code == 403
    door.provider.attributes = {"work": [f"ada@{DOMAIN}"], "email": ["else@evil.example"]}
    assert door.sign_in().status_code == 302


def test_session_opens_that_workspace_alone(door: SamlDoor):
    door.sign_in()
    assert door.browser.get("/accounts/email/").status_code == 403


def test_old_and_new_certificate_count_while_the_provider_changes_its_key(door: SamlDoor):
    door.set(metadata=door.provider.metadata(KEY, OTHER_KEY))
    assert door.sign_in().status_code == 302
    door.provider.key = OTHER_KEY
    assert door.sign_in().status_code == 302
    door.set(metadata=door.provider.metadata(OTHER_KEY))
    door.provider.key = KEY
    assert door.sign_in(Client()).status_code == 403


def test_company_sign_in_is_required_only_after_a_sign_in(door: SamlDoor):
    owner = door.cast.owner
    Person(owner.user, factor=True)
    with pytest.raises(Conflict, match="once before"):
        rules(door, requires_sso=True, break_glass=owner.pk)
    door.sign_in()
    assert rules(door, requires_sso=True, break_glass=owner.pk).requires_sso
    with pytest.raises(Conflict, match="once before"):
        door.set(is_enabled=False)


def test_provider_without_metadata_gives_its_addresses_and_no_door(cast: Cast):
    owner = cast.actor("owner")
    row = saml_connection_set(tenant=cast.tenant, actor=owner, name="Okta")
    assert door_list(slug=cast.tenant.slug) == []
    browser = Client()
    assert browser.get(reverse("sso:start", args=[cast.tenant.slug, row.pk])).status_code == 404
    with pytest.raises(Invalid, match="no metadata yet"):
        saml_connection_set(tenant=cast.tenant, actor=owner, name="Second")
    shown = browser.get(reverse("sso:metadata", args=[cast.tenant.slug, row.pk]))
    root = etree.fromstring(shown.content)
    assert root.get("entityID", "").endswith(f"/sso/{cast.tenant.slug}/{row.pk}/metadata")
    assert f"/sso/{cast.tenant.slug}/{row.pk}/acs" in shown.content.decode()
    done = saml_connection_set(
        tenant=cast.tenant, actor=owner, name="Okta", metadata=SamlProvider().metadata(), pk=row.pk
    )
    assert (done.issuer, done.sso_url) == (ISSUER, SSO)
    assert [one.pk for one in door_list(slug=cast.tenant.slug)] == [row.pk]
    with pytest.raises(Invalid, match="metadata"):
        saml_connection_set(tenant=cast.tenant, actor=owner, name="Okta", pk=row.pk)


@pytest.fixture
def served(settings: Any) -> Iterator[tuple[str, dict[str, bytes]]]:
    settings.FETCH_NETWORKS = ["127.0.0.0/8"]
    pages: dict[str, bytes] = {}

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            body = pages.get(self.path)
            self.send_response(302 if body is None else 200)
            self.send_header("Location", "/metadata")
            self.end_headers()
            self.wfile.write(body or b"")

        def log_message(self, *args: Any) -> None:
            """Say nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = Thread(target=server.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{server.server_address[1]}", pages
    server.shutdown()
    server.server_close()
    thread.join()


def test_metadata_is_fetched_through_the_guard(cast: Cast, served: Any):
    address, pages = served
    pages["/metadata"] = SamlProvider().metadata().encode()
    who: Any = {"tenant": cast.tenant, "actor": cast.actor("owner"), "name": "Okta"}
    row = saml_connection_set(**who, metadata=f"{address}/metadata")
    assert row.issuer == ISSUER
    pages["/large"] = b"<x>" + b"y" * 600_000
    for bad in ("/large", "/moved"):
        with pytest.raises(Invalid) as refused:
            saml_connection_set(**who, metadata=f"{address}{bad}")
        assert refused.value.data["field"] == "metadata"
    with pytest.raises(Invalid, match="Metadata"):
        saml_connection_set(**who, metadata="http://169.254.169.254/latest/meta-data")


METADATA = SamlProvider().metadata()
BAD_METADATA = {
    "not XML": "hello",
    "another document": "<html/>",
    "document type": "<!DOCTYPE x [<!ENTITY a 'b'>]>" + METADATA.partition("?>")[2],
    "no signing certificate": METADATA.replace('use="signing"', 'use="encryption"'),
    "no redirect binding": METADATA.replace("HTTP-Redirect", "SOAP"),
    "no entity ID": METADATA.replace(ISSUER, ""),
    "plain http": METADATA.replace(f'"{SSO}"', '"http://idp.acme.example/sso"'),
    "script": METADATA.replace(f'"{SSO}"', '"javascript:alert(1)"'),
    "inside": METADATA.replace(f'"{SSO}"', '"https://10.0.0.1/sso"'),
    "broken certificate": METADATA.replace(KEY.bare, KEY.bare[:200]),
    "weak key": SamlProvider().metadata(SamlKey(bits=1024)),
    "expired": SamlProvider().metadata(SamlKey(days=-1)),
    "two providers": METADATA.replace("</md:EntityDescriptor>", "")
    + METADATA[METADATA.index("<md:IDPSSO") : METADATA.index("</md:Entity")]
    + "</md:EntityDescriptor>",
}


def test_bad_metadata_is_refused(cast: Cast):
    seen = {}
    for name, metadata in BAD_METADATA.items():
        with pytest.raises(Invalid) as refused:
            saml_connection_set(tenant=cast.tenant, actor=cast.actor("owner"), name="x", metadata=metadata)
        seen[name] = refused.value.message
    assert len(seen) == len(BAD_METADATA)
    assert not door_list(slug=cast.tenant.slug)


def test_protocol_of_a_provider_stays(door: SamlDoor):
    who: Any = {"tenant": door.tenant, "actor": door.actor, "pk": door.row.pk, "name": "x"}
    with pytest.raises(Missing):
        services.connection_set(**who, issuer="https://login.example.com", client_id="x")
    other = services.connection_set(
        tenant=door.tenant, actor=door.actor, name="x", issuer="https://login.example.com", client_id="x"
    )
    with pytest.raises(Missing):
        saml_connection_set(**{**who, "pk": other.pk}, metadata=METADATA)


def test_another_entity_ends_sign_ins_of_the_first(door: SamlDoor):
    door.sign_in()
    door.set(issuer="https://other.example")
    assert not door.is_in()


def test_old_answers_are_forgotten(door: SamlDoor):
    door.sign_in()
    assert answers_expire() == 0
    with platform_scope():
        SamlAnswer.objects.update(expires_at=timezone.now() - timedelta(seconds=1))
    assert answers_expire() == 1


def test_certificate_that_ends_soon_is_shown(door: SamlDoor):
    assert not ends_soon(door.row)
    door.set(certificates=SamlKey(days=20).pem)
    assert ends_soon(door.row)
    assert "ends soon" in door.settings_page()


def test_owner_sets_it_on_the_page(cast: Cast):
    browser = Client()
    browser.force_login(cast.user("owner"), BACKEND)
    here = f"/t/{cast.tenant.slug}/settings/sign-in/"
    form = {"saml-name": "Okta SAML", "saml-groups_claim": "groups", "saml-is_enabled": "on"}
    assert browser.post(here, {"action": "saml", **form}).status_code == 302
    with platform_scope():
        pk = SsoConnection.objects.get(tenant=cast.tenant).pk
    shown = browser.get(here).content.decode()
    assert f"/sso/{cast.tenant.slug}/{pk}/acs" in shown
    assert f"/sso/{cast.tenant.slug}/{pk}/metadata" in shown
    assert "needs its metadata" in shown
    bad = {f"c{pk}-name": "Okta", f"c{pk}-groups_claim": "groups", f"c{pk}-metadata": "<x>"}
    answer = browser.post(here, {"action": "connection", "connection": pk, **bad})
    assert answer.status_code == 422
    assert "well-formed" in answer.content.decode()
    good = {**bad, f"c{pk}-metadata": METADATA, f"c{pk}-is_enabled": "on"}
    assert browser.post(here, {"action": "connection", "connection": pk, **good}).status_code == 302
    shown = browser.get(here).content.decode()
    assert ISSUER in shown
    assert "never used" in shown
    with platform_scope():
        event = AuditEvent.objects.filter(tenant=cast.tenant, action="sso.connection_set").latest("pk")
    assert event.data["protocol"] == "saml"
