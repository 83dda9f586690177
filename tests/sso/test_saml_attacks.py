"""SAML sign-in, attacked: none of these opens a page of the workspace."""

from __future__ import annotations

import re

import pytest
from django.db import transaction
from django.test import Client
from django.urls import reverse
from lxml import etree

from sso.fetching import ProviderFailed
from sso.models import SamlAnswer
from sso.saml.responses import MAX_RESPONSE, Said
from sso.saml.services import answer_keep, answer_take, saml_connection_set
from tenancy.models import AuditEvent, User
from tenancy.scope import platform_scope
from tests.cast import Cast
from tests.factories import make_member, make_user
from tests.sso.conftest import domain_have
from tests.sso.saml_door import SamlDoor
from tests.sso.saml_forgeries import ADA, FORGERIES
from tests.sso.saml_forging import BOSS, put, unsigned
from tests.sso.saml_provider import (
    EMAIL,
    KEY,
    OTHER_KEY,
    Asked,
    SamlKey,
    SamlProvider,
    encoded,
)
from web.models import AttemptWindow

pytestmark = pytest.mark.django_db


@pytest.fixture
def door(cast: Cast) -> SamlDoor:
    found = SamlDoor(cast)
    make_member(cast.tenant, "owner", make_user(BOSS))
    return found


def test_forged_answers_let_nobody_in(door: SamlDoor):
    """All in one: each case costs a sign-in, and no workspace of its own."""
    seen: dict[str, int] = {}
    for name, forge in FORGERIES.items():
        AttemptWindow.objects.all().delete()
        asked = door.begin()
        door.provider = SamlProvider(attributes={"email": [ADA]})
        forged = forge(door.provider, asked)
        seen[name] = door.fetch(door.post(forged, asked.state)).status_code
    assert {name: status for name, status in seen.items() if status not in {400, 403}} == {}
    assert not door.is_in()
    assert "_auth_user_id" not in door.browser.session
    assert not User.objects.filter(email=ADA).exists()
    door.provider = SamlProvider(attributes={"email": [ADA]})
    assert door.sign_in().status_code == 302, "the honest one gets in through the same door"


def reason(door: SamlDoor) -> str:
    with platform_scope():
        event = AuditEvent.objects.filter(tenant=door.tenant, action="sso.refuse").latest("pk")
    return str(event.data["reason"])


REASONS = {
    "XSW3": "2 assertions",
    "XSW8": "two of its elements|2 assertions|where none belongs",
    "unsigned": "neither",
    "address changed after signing": "Digest mismatch",
    "signed by another key": "signature of the Assertion is wrong",
    "SHA-1 signature": "RSA_SHA1 forbidden",
    "SHA-1 digest": "SHA1 forbidden",
    "comment in the address": "comments",
    "external entity": "document type",
    "billion laughs": "document type",
    "another audience": "another audience",
    "another recipient": "Recipient",
    "another destination": "Destination",
    "expired": "expired",
    "not valid yet": "valid yet",
    "encrypted assertion": "Turn off encryption",
    "began at the provider": "began this sign-in itself",
    "name that changes each time": "name ID format",
}


def test_attacks_fail_for_what_they_are(door: SamlDoor):
    """A test of the test: none is refused because it was made wrongly."""
    for name, expected in REASONS.items():
        AttemptWindow.objects.all().delete()
        asked = door.begin()
        door.provider = SamlProvider(attributes={"email": [ADA]})
        door.post(FORGERIES[name](door.provider, asked), asked.state)
        assert re.search(expected, reason(door)), (name, reason(door))


def test_name_with_a_comment_is_the_whole_name(door: SamlDoor):
    """The comment attack on a name ID that the attacker really has at the provider."""
    door.provider.form, door.provider.attributes = EMAIL, {}
    door.provider.name_id = f"{BOSS}.evil.example"
    asked = door.begin()
    honest = etree.tostring(door.provider.respond(asked)).decode()
    forged = honest.replace(f"{BOSS}.evil.example", f"{BOSS}<!---->.evil.example")
    assert door.fetch(door.post(forged.encode(), asked.state)).status_code == 403
    assert door.fetch(door.post(honest.encode(), asked.state)).status_code == 403
    assert not door.is_in()


def test_assertion_counts_once(door: SamlDoor):
    asked = door.begin()
    response = door.provider.respond(asked)
    posted = door.post(response, asked.state)
    assert door.fetch(posted).status_code == 302
    assert door.fetch(posted).status_code == 400, "the same way back again"
    again = door.begin(Client())
    assert door.post(response, again.state).status_code == 403
    assert reason(door) == "This assertion was used before."
    assert door.answers() == 1


def test_assertion_counts_once_over_connections_of_the_database(door: SamlDoor):
    """As another process sees it: what makes it unique is the table, not a memory."""
    one = Said({"sub": "x"}, "_a", "_r")
    answer_keep(connection=door.row, said=one)
    with pytest.raises(ProviderFailed, match="used before"), transaction.atomic():
        answer_keep(connection=door.row, said=one)


def test_claims_are_taken_once(door: SamlDoor):
    token = answer_keep(connection=door.row, said=Said({"sub": "x"}, "_a", "_r"))
    assert answer_take(connection=door.row, token=token, request_id="_r") == {"sub": "x"}
    for request_id in ("_r", "_s", ""):
        with pytest.raises(Exception, match="a sign-in in this browser"):
            answer_take(connection=door.row, token=token, request_id=request_id)


def test_answer_of_another_browser_lets_nobody_in(door: SamlDoor):
    """Login CSRF: an attacker has their answer posted by somebody else's browser."""
    mine = Client()
    asked = door.begin(mine)
    victim = Client()
    door.begin(victim)
    assert door.fetch(door.post(door.provider.respond(asked), asked.state), victim).status_code == 400
    assert not door.is_in(victim)


def test_answer_to_one_request_under_the_state_of_another_lets_nobody_in(door: SamlDoor):
    """A stolen assertion, under the state of the thief's own request."""
    stolen = door.provider.respond(door.begin(Client()))
    own = door.begin()
    assert door.fetch(door.post(stolen, own.state)).status_code == 400
    assert not door.is_in()


@pytest.mark.parametrize("state", ["", "x" * 43, "x" * 81, "https://evil.example/", "a\nb"])
def test_made_up_state_lets_nobody_in(state: str, door: SamlDoor):
    asked = door.begin()
    answer = door.fetch(door.post(door.provider.respond(asked), state))
    assert answer.status_code == 400
    assert not door.is_in()


def test_made_up_token_lets_nobody_in(door: SamlDoor):
    asked = door.begin()
    path = reverse("sso:answer", args=[door.tenant.slug, door.row.pk])
    for token in ("", "x" * 43):
        assert door.browser.get(path, {"state": asked.state, "answer": token}).status_code == 400


def test_answer_of_one_workspaces_provider_opens_no_other(door: SamlDoor, cast: Cast):
    """Mix-up: B trusts the same provider; its own assertion for A is posted at B, and the other way round."""
    evil = SamlDoor(cast, tenant=cast.other_tenant)
    domain_have(cast.other_tenant, evil.actor, "other.example")
    for own, other in ((door, evil), (evil, door)):
        browser = Client()
        asked, meant = own.begin(browser), other.begin(browser)
        response = own.provider.respond(asked)
        assert own.post(response, meant.state, to=other.acs).status_code == 403
        assert not other.is_in(browser)
        moved = SamlProvider(attributes={"email": [ADA]}).respond(
            Asked(asked.id, asked.audience, meant.address, meant.state)
        )
        assert other.post(moved, meant.state).status_code == 403, "addressed there, but for another audience"


def test_answer_of_another_provider_of_the_workspace_is_refused(door: SamlDoor):
    second = saml_connection_set(
        tenant=door.tenant, actor=door.actor, name="B",
        metadata=SamlProvider(issuer="https://b.example", key=OTHER_KEY).metadata(),
    )  # fmt: skip
    path = reverse("sso:acs", args=[door.tenant.slug, second.pk])
    asked = door.begin()
    assert door.post(door.provider.respond(asked), asked.state, to=path).status_code == 403
    with platform_scope():
        assert not SamlAnswer.objects.exists()


def test_owner_of_one_workspace_cannot_speak_for_another_domain(door: SamlDoor, cast: Cast):
    evil = SamlDoor(cast, tenant=cast.other_tenant)
    evil.provider.attributes = {"email": [BOSS]}
    assert evil.sign_in().status_code == 403
    assert not evil.is_in()


def test_certificate_that_expired_signs_nothing(door: SamlDoor):
    old = SamlKey(days=-1)
    door.set(certificates=KEY.pem + old.pem)
    door.provider.key = old
    assert door.sign_in().status_code == 403
    assert "expired" in reason(door).lower() or "signature" in reason(door)


def test_huge_answers_are_refused_unread(door: SamlDoor):
    asked = door.begin()
    assert door.post("A" * (MAX_RESPONSE + 4), asked.state).status_code == 403
    assert "too large" in reason(door)
    assert door.post("A" * 6_000_000, asked.state).status_code in {400, 413}


@pytest.mark.parametrize("data", ["%%%", "AAA", "<xml/>", "é"])
def test_what_is_not_base64_is_refused(data: str, door: SamlDoor):
    asked = door.begin()
    assert door.post(data, asked.state).status_code == 403


def test_fields_that_are_missing_or_doubled_are_refused(door: SamlDoor):
    asked = door.begin()
    response = encoded(door.provider.respond(asked))
    for form in (
        {}, {"RelayState": asked.state}, {"SAMLResponse": response},
        {"SAMLResponse": [response, response], "RelayState": asked.state},
        {"SAMLResponse": response, "RelayState": [asked.state, "x"]},
    ):  # fmt: skip
        assert Client().post(door.acs, form).status_code == 403


def test_answer_by_get_is_refused(door: SamlDoor):
    assert Client().get(door.acs).status_code == 405


def test_openid_provider_takes_no_assertion(door: SamlDoor, cast: Cast):
    with platform_scope():
        door.row.__class__.objects.filter(pk=door.row.pk).update(protocol="oidc")
    answer = Client(raise_request_exception=False).post(door.acs, {"SAMLResponse": "x", "RelayState": "x"})
    assert answer.status_code == 404


def test_switched_off_provider_takes_nothing(door: SamlDoor):
    asked = door.begin()
    response = door.provider.respond(asked)
    door.set(is_enabled=False)
    assert door.post(response, asked.state).status_code == 404


def test_session_of_before_is_not_kept(door: SamlDoor):
    door.begin()
    before = door.browser.cookies["sessionid"].value
    door.sign_in()
    stale = Client()
    stale.cookies["sessionid"] = before
    assert not door.is_in(stale)


def test_too_many_answers_are_slowed(door: SamlDoor):
    answers = [Client().post(door.acs, {}).status_code for _ in range(31)]
    assert answers.count(403) == 30
    assert answers[-1] == 429


def test_reasons_are_told_to_owners_alone(door: SamlDoor):
    asked = door.begin()
    page = door.post(unsigned(door.provider, asked), asked.state).content.decode()
    assert "neither" not in page
    assert "sso_signature" in page
    assert "neither" in reason(door)


def test_forged_xml_never_reaches_the_log_whole(door: SamlDoor):
    """What a stranger posts isn't stored: reasons are cut short."""
    asked = door.begin()
    door.provider.change = put(".", "Destination", "x" * 5000)
    door.post(door.provider.respond(asked), asked.state)
    assert len(reason(door)) <= 300
