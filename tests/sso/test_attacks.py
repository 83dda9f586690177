"""Sign-in through an identity provider, attacked: none of these opens a page of the workspace."""

from __future__ import annotations

import base64
import hmac
import json
import time
from collections.abc import Callable
from typing import Any
from urllib.parse import parse_qs, urlencode, urlsplit

import jwt
import pytest
from allauth.account.models import EmailAddress
from cryptography.hazmat.primitives import serialization
from django.contrib.sessions.backends.db import SessionStore
from django.test import Client, RequestFactory
from django.urls import reverse

from basics.errors import Conflict, DomainError, Invalid
from sso import domains, services
from sso.models import SsoConnection, SsoDomain
from sso.views import ASKED, _asked_take
from tenancy.models import AuditEvent, Membership, User
from tenancy.scope import platform_scope, tenant_scope
from tenancy.services import member_remove
from tests.cast import Cast
from tests.factories import make_member, make_user
from tests.sso.conftest import BACKEND, Door, domain_have
from tests.sso.provider import CLIENT, DOMAIN, KEY, OTHER_KEY, Key, Provider
from web.models import AttemptWindow

pytestmark = pytest.mark.django_db


def b64(value: Any) -> str:
    data = value if isinstance(value, bytes) else json.dumps(value).encode()
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def unsigned(claims: dict[str, Any]) -> str:
    return f"{b64({'alg': 'none', 'typ': 'JWT'})}.{b64(claims)}."


def by_hmac(secret: bytes) -> Callable[[dict[str, Any]], str]:
    """Sign with what everybody knows (a public key) as if it were a shared secret."""

    def sign(claims: dict[str, Any]) -> str:
        head = f"{b64({'alg': 'HS256', 'kid': 'one'})}.{b64(claims)}"
        return f"{head}.{b64(hmac.new(secret, head.encode(), 'sha256').digest())}"

    return sign


PEM = KEY.private.public_key().public_bytes(
    serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
)


def changed(**more: Any) -> Callable[[dict[str, Any]], str]:
    def sign(claims: dict[str, Any]) -> str:
        return KEY.sign({k: v for k, v in {**claims, **more}.items() if v is not ...})

    return sign


def later(name: str, seconds: int) -> Callable[[dict[str, Any]], str]:
    return lambda claims: KEY.sign({**claims, name: int(time.time()) + seconds})


def tampered(claims: dict[str, Any]) -> str:
    head, _, signature = KEY.sign({**claims, "sub": "someone"}).split(".")
    return f"{head}.{b64(claims)}.{signature}"


def own_key(**header: Any) -> Callable[[dict[str, Any]], str]:
    return lambda claims: OTHER_KEY.sign(claims, **header)


TOKENS: dict[str, Callable[[dict[str, Any]], Any]] = {
    "alg none": unsigned,
    "alg None, other case": lambda c: f"{b64({'alg': 'nOnE'})}.{b64(c)}.",
    "HS256 with the public key as PEM": by_hmac(PEM),
    "HS256 with the public key as JWK": by_hmac(json.dumps(KEY.public).encode()),
    "HS256 with nothing": by_hmac(b""),
    "signed by another key": own_key(),
    "another key under the known id": own_key(kid="one"),
    "its own key in the header": own_key(jwk=OTHER_KEY.public),
    "its own key at an address": own_key(jku="http://127.0.0.1:1/jwks", kid="one"),
    "critical extension": lambda c: KEY.sign(c, crit=["b64"], b64=True),
    "claims changed after signing": tampered,
    "signature cut off": lambda c: KEY.sign(c).rpartition(".")[0] + ".",
    "another audience": changed(aud="somebody-else"),
    "no audience": changed(aud=...),
    "several audiences, no party": changed(aud=[CLIENT, "somebody-else"]),
    "for another party": changed(aud=[CLIENT, "somebody-else"], azp="somebody-else"),
    "another issuer": changed(iss="https://login.example.com"),
    "issuer with a slash more": lambda c: KEY.sign({**c, "iss": c["iss"] + "/"}),
    "no issuer": changed(iss=...),
    "another nonce": changed(nonce="n" * 43),
    "no nonce": changed(nonce=...),
    "nonce is a number": changed(nonce=1),
    "expired": later("exp", -120),
    "no expiry": changed(exp=...),
    "expiry is text": changed(exp="tomorrow"),
    "made long ago": later("iat", -3600),
    "made in the future": later("iat", 3600),
    "not valid yet": later("nbf", 3600),
    "no subject": changed(sub=...),
    "subject is a list": changed(sub=["00u1"]),
    "empty subject": changed(sub=""),
    "subject with a NUL": changed(sub="00u1\x00"),
    "no token at all": lambda c: None,
    "token of 100 kB": changed(more="x" * 100_000),
    "not a token": lambda c: "a.b.c",
    "email unverified": changed(email_verified=False),
    "email unverified, as text": changed(email_verified="false"),
    "email said to be verified as text": changed(email_verified="true"),
    "email not stated as verified": changed(email_verified=...),
    "no email": changed(email=...),
    "email of another domain": changed(email="ada@evil.example"),
    "email of a domain below": changed(email=f"ada@sub.{DOMAIN}"),
    "email that only ends so": changed(email=f"ada@evil{DOMAIN}"),
    "two ats": changed(email=f"ada@evil.example@{DOMAIN}"),
    "email with a line break": changed(email=f"ada@evil.example\n@{DOMAIN}"),
    "email with a look-alike": changed(email=f"ad\u0430@{DOMAIN}"),
    "email is a list": changed(email=[f"ada@{DOMAIN}"]),
}


def test_bad_tokens_let_nobody_in(door: Door):
    """All in one: each case costs a sign-in, and no workspace of its own."""
    seen: dict[str, int] = {}
    for name, token in TOKENS.items():
        AttemptWindow.objects.all().delete()
        door.provider.token = token
        response = door.sign_in()
        assert b"sso_unreachable" not in response.content, name
        seen[name] = response.status_code
    assert seen == dict.fromkeys(TOKENS, 403)
    assert not door.is_in()
    assert not User.objects.filter(email__endswith=f"@{DOMAIN}").exists()
    door.provider.token = KEY.sign
    assert door.sign_in().status_code == 302, "the honest one gets in through the same door"


def test_honest_token_lets_in(door: Door):
    assert door.sign_in().status_code == 302
    assert door.is_in()


def test_key_too_short_lets_nobody_in(door: Door):
    weak = Key("weak", bits=1024)
    door.provider.keys, door.provider.token = [weak], weak.sign
    assert door.sign_in().status_code == 403
    assert not door.is_in()


def test_key_that_encrypts_signs_nothing(door: Door):
    door.provider.answers_jwks = json.dumps({"keys": [{**KEY.public, "use": "enc"}]}).encode()
    assert door.sign_in().status_code == 403


def test_symmetric_key_of_the_provider_signs_nothing(door: Door):
    secret = {"kty": "oct", "k": b64(b"k" * 32), "kid": "one"}
    door.provider.answers_jwks = json.dumps({"keys": [secret]}).encode()
    door.provider.token = by_hmac(b"k" * 32)
    assert door.sign_in().status_code == 403


def test_withdrawn_key_lets_nobody_in(door: Door):
    assert door.sign_in().status_code == 302
    door.provider.keys = [OTHER_KEY]
    assert door.sign_in(Client()).status_code == 403


DISCOVERIES: list[dict[str, Any]] = [
    {"issuer": "https://login.example.com"},
    {"issuer": None},
    {"token_endpoint": "http://10.0.0.1/token"},
    {"jwks_uri": "http://169.254.169.254/latest"},
    {"jwks_uri": "file:///etc/passwd"},
    {"jwks_uri": "http://login.example.com/jwks"},
    {"token_endpoint": None},
    {"id_token_signing_alg_values_supported": ["HS256", "none"]},
]


def test_bad_discovery_leads_nowhere(door: Door):
    path = reverse("sso:start", args=[door.tenant.slug, door.row.pk])
    for changes in DISCOVERIES:
        door.provider.discovery = changes
        assert door.browser.get(path).status_code == 403, changes
    assert "/token" not in door.provider.calls


def test_redirected_keys_are_not_followed(door: Door):
    door.provider.discovery = {"jwks_uri": f"{door.provider.issuer}/moved"}
    assert door.sign_in().status_code == 403
    assert "/jwks" not in door.provider.calls


def test_issuer_inside_or_odd_is_refused(cast: Cast):
    for issuer in [
        "http://login.example.com",
        "http://10.0.0.8",
        "https://user:pass@login.example.com",
        "https://login.example.com/?x=1",
        "https://login.example.com/#x",
        "file:///etc",
        "https://169.254.169.254",
        "",
    ]:
        with pytest.raises(Invalid):
            services.connection_set(
                tenant=cast.tenant, actor=cast.actor("owner"), name="x", issuer=issuer, client_id="x"
            )


def test_answer_works_once(door: Door):
    address = door.provider.authorize(door.begin())
    assert door.end(address).status_code == 302
    assert door.end(address).status_code == 400
    calls = door.provider.calls.count("/token")
    assert calls == 1, "the second answer asks nothing of the provider"


def test_answer_counts_once_for_two_servers_that_read_the_session_at_once(door: Door):
    state = parse_qs(urlsplit(door.begin()).query)["state"][0]
    requests = [RequestFactory().get("/", {"state": state}) for _ in range(2)]
    for request in requests:
        request.session = SessionStore(door.browser.session.session_key)
        assert state in request.session[ASKED], "each has read that the answer is waited for"
    assert _asked_take(requests[0], door.row).connection == door.row.pk
    with pytest.raises(Invalid, match="a sign-in in this browser"):
        _asked_take(requests[1], door.row)


def test_answer_of_another_browser_lets_nobody_in(door: Door):
    """Login CSRF: an attacker has their answer opened by somebody else."""
    address = door.provider.authorize(door.begin(Client()))
    victim = Client()
    assert door.end(address, victim).status_code == 400
    assert not door.is_in(victim)


@pytest.mark.parametrize("state", ["", "x" * 43])
def test_made_up_state_lets_nobody_in(state: str, door: Door):
    address = door.provider.authorize(door.begin())
    query = {k: v[0] for k, v in parse_qs(urlsplit(address).query).items()} | {"state": state}
    assert door.end(f"{urlsplit(address).path}?{urlencode(query)}").status_code == 400
    assert not door.is_in()


def test_doubled_parameter_is_refused(door: Door):
    address = door.provider.authorize(door.begin())
    assert door.end(f"{address}&code=other").status_code == 400


def test_code_of_another_request_fails_its_proof_key(door: Door):
    """Code injection: a stolen code in one's own answer; the verifier is another one."""
    stolen = parse_qs(urlsplit(door.provider.authorize(door.begin(Client()))).query)["code"][0]
    own = door.provider.authorize(door.begin())
    query = {k: v[0] for k, v in parse_qs(urlsplit(own).query).items()} | {"code": stolen}
    assert door.end(f"{urlsplit(own).path}?{urlencode(query)}").status_code == 403
    assert not door.is_in()


def test_answer_that_names_another_issuer_is_refused(door: Door):
    address = door.provider.authorize(door.begin()).replace(
        urlencode({"iss": door.provider.issuer}), urlencode({"iss": "https://login.example.com"})
    )
    assert door.end(address).status_code == 403
    assert "/token" not in door.provider.calls, "no code goes to a provider that it isn't from"


def test_answer_without_its_issuer_is_refused(door: Door):
    door.provider.states_issuer = False
    assert door.sign_in().status_code == 403
    assert "/token" not in door.provider.calls


def test_answer_at_another_providers_address_is_refused(door: Door):
    """Mix-up: each provider has an address of its own."""
    second = Provider()
    try:
        other = services.connection_set(
            tenant=door.tenant, actor=door.actor, name="B", issuer=second.issuer, client_id=CLIENT, secret="x"
        )
        address = door.provider.authorize(door.begin())
        path = reverse("sso:answer", args=[door.tenant.slug, other.pk])
        assert door.browser.get(f"{path}?{urlsplit(address).query}").status_code == 400
        assert second.calls == []
    finally:
        second.close()


def test_provider_of_one_workspace_opens_no_other(door: Door, cast: Cast):
    address = door.provider.authorize(door.begin())
    path = reverse("sso:answer", args=[cast.other_tenant.slug, door.row.pk])
    assert door.browser.get(f"{path}?{urlsplit(address).query}").status_code == 404


ELSEWHERE = (
    "https://evil.example/", "//evil.example/", "/\\evil.example", "/t/other/chat/", "javascript:alert(1)",
    "/t/{slug}/../../accounts/email/", "/t/{slug}/\\evil", "/accounts/logout/",
)  # fmt: skip


def test_nobody_is_sent_elsewhere_afterwards(door: Door):
    for target in ELSEWHERE:
        response = door.sign_in(next=target.format(slug=door.tenant.slug))
        assert response.status_code == 302
        assert response["Location"] == f"/t/{door.tenant.slug}/", target


def test_page_of_the_workspace_opens_afterwards(door: Door):
    assert door.sign_in(next=door.home)["Location"] == door.home


def test_session_of_before_is_not_kept(door: Door, cast: Cast):
    """Session fixation: the cookie of before the sign-in opens nothing, and what was in it is gone."""
    door.begin()
    before = door.browser.cookies["sessionid"].value
    door.sign_in()
    stale = Client()
    stale.cookies["sessionid"] = before
    assert door.browser.cookies["sessionid"].value != before
    assert not door.is_in(stale)


def test_person_of_before_is_signed_out(door: Door, cast: Cast):
    door.browser.force_login(cast.user("outsider"), BACKEND)
    door.sign_in()
    assert door.browser.get(f"/t/{cast.other_tenant.slug}/settings/connections/").status_code == 404


def test_owner_of_one_workspace_cannot_speak_for_another_domain(door: Door, cast: Cast):
    """A workspace anybody made, with a provider of their own that says it knows the victim."""
    victim = make_user(f"boss@{DOMAIN}")
    make_member(cast.tenant, "owner", victim)
    evil = Door(cast, door.provider, tenant=cast.other_tenant)
    door.provider.person = {"sub": "x", "email": victim.email, "email_verified": True}
    assert evil.sign_in().status_code == 403
    assert not evil.is_in()


def test_second_workspace_cannot_verify_the_same_domain(door: Door, cast: Cast):
    with pytest.raises(Conflict, match="Another workspace"):
        domain_have(cast.other_tenant, cast.actor("outsider"))


def test_domain_of_everybody_or_nobody_is_refused(cast: Cast):
    for domain in ["gmail.com", "outlook.com", "com", "a b.com", "-a.com", "1.2.3.4", "*.acme.com"]:
        with pytest.raises(Invalid):
            domains.domain_add(tenant=cast.tenant, actor=cast.actor("owner"), domain=domain)


@pytest.mark.parametrize("records", [[], ["groundwork-domain="], ["x"], ["groundwork-domain=" + "x" * 43]])
def test_domain_without_its_record_stays_unverified(records: list[str], cast: Cast):
    row = domains.domain_add(tenant=cast.tenant, actor=cast.actor("owner"), domain="new.example")
    with pytest.raises(Conflict):
        domains.domain_verify(
            tenant=cast.tenant, actor=cast.actor("owner"), pk=row.pk, records=lambda name: records
        )
    assert not domains.domain_is_verified(cast.tenant, "a@new.example")


def test_removed_domain_lets_nobody_in_any_more(door: Door):
    assert door.sign_in().status_code == 302
    with tenant_scope(door.tenant.pk):
        rows = list(SsoDomain.objects.filter(tenant=door.tenant))
    assert rows
    for row in rows:
        domains.domain_remove(tenant=door.tenant, actor=door.actor, pk=row.pk)
    assert door.sign_in(Client()).status_code == 403


def test_company_session_opens_no_other_workspace(door: Door, cast: Cast):
    """The provider answers to its owners: what the person has elsewhere isn't theirs to open."""
    ada = make_user(f"ada@{DOMAIN}")
    make_member(cast.other_tenant, "owner", ada)
    assert door.sign_in().status_code == 302
    assert door.is_in()
    assert cast.other_tenant.name not in door.browser.get("/profile/").content.decode()
    elsewhere = f"/t/{cast.other_tenant.slug}/settings/connections/"
    assert door.browser.get(elsewhere)["Location"].startswith("/accounts/reauthenticate/")
    assert door.browser.get("/")["Location"].startswith(f"/t/{door.tenant.slug}/")
    api = door.browser.get("/api/v1/me", headers={"X-Tenant": cast.other_tenant.slug})
    assert api.status_code == 403
    assert door.browser.get("/api/v1/me", headers={"X-Tenant": door.tenant.slug}).status_code == 200


CLOSED = (
    "/accounts/email/", "/accounts/password/change/", "/accounts/password/set/", "/accounts/2fa/",
    "/accounts/2fa/totp/activate/", "/accounts/2fa/webauthn/add/", "/admin/", "/operate/", "/profile/erasure/", "/workspaces/new/",
)  # fmt: skip


def test_company_session_changes_no_account(door: Door):
    make_user(f"ada@{DOMAIN}", is_staff=True, is_superuser=True)
    assert door.sign_in().status_code == 302
    for path in CLOSED:
        assert door.browser.get(path).status_code == 403, path
        assert door.browser.post(path).status_code == 403, path


def test_password_lifts_the_company_session(door: Door, cast: Cast):
    ada = make_user(f"ada@{DOMAIN}")
    make_member(cast.other_tenant, "owner", ada)
    door.sign_in()
    door.browser.post("/accounts/reauthenticate/", {"password": "secret-password"})
    assert door.browser.get(f"/t/{cast.other_tenant.slug}/settings/connections/").status_code == 200
    assert door.browser.get("/accounts/email/").status_code == 200


def test_account_that_a_stranger_registered_first_is_taken_from_them(door: Door):
    """Pre-hijacking: the first sign-in of its person must not bring the stranger's password to life."""
    planted = make_user(f"ada@{DOMAIN}")
    EmailAddress.objects.create(user=planted, email=planted.email, primary=True, verified=False)
    assert door.sign_in().status_code == 302
    stranger = Client()
    stranger.post("/accounts/login/", {"login": planted.email, "password": "secret-password"})
    assert "_auth_user_id" not in stranger.session


def test_address_that_went_to_another_person_opens_nothing(door: Door):
    """The provider gave the address to somebody new: another subject."""
    assert door.sign_in().status_code == 302
    door.provider.person["sub"] = "00u2"
    browser = Client()
    assert door.sign_in(browser).status_code == 403
    assert not door.is_in(browser)


def test_address_may_change_at_the_provider(door: Door):
    door.sign_in()
    door.provider.person["email"] = f"ada.married@{DOMAIN}"
    browser = Client()
    assert door.sign_in(browser).status_code == 302
    assert User.objects.filter(email__endswith=DOMAIN).count() == 1


def test_deactivated_account_stays_out(door: Door):
    make_user(f"ada@{DOMAIN}", is_active=False)
    assert door.sign_in().status_code == 403


def test_removed_member_is_out_at_once(door: Door, cast: Cast):
    door.sign_in()
    with tenant_scope(door.tenant.pk):
        member = Membership.objects.get(tenant=door.tenant, user__email=f"ada@{DOMAIN}")
    member_remove(tenant=door.tenant, actor=door.actor, member_id=member.pk)
    assert door.browser.get(door.home).status_code == 404


def test_switched_off_provider_ends_its_sessions(door: Door):
    door.sign_in()
    with platform_scope():
        SsoConnection.objects.filter(pk=door.row.pk).update(is_enabled=False)
    assert not door.is_in()


def test_strangers_stay_out_where_people_are_invited(door: Door):
    with platform_scope():
        SsoConnection.objects.filter(pk=door.row.pk).update(creates_members=False)
    assert door.sign_in().status_code == 403
    assert not User.objects.filter(email=f"ada@{DOMAIN}").exists()


def test_stored_secret_does_not_follow_to_another_issuer(door: Door):
    row = services.connection_set(
        tenant=door.tenant,
        actor=door.actor,
        name="B",
        issuer="https://evil.example",
        client_id=CLIENT,
        pk=door.row.pk,
    )
    assert services.connection_secret(row).reveal() == ""


def test_userinfo_of_another_person_is_refused(door: Door):
    door.provider.token = changed(email=..., email_verified=...)
    door.provider.userinfo = {"sub": "someone", "email": f"ada@{DOMAIN}", "email_verified": True}
    assert door.sign_in().status_code == 403
    door.provider.userinfo["sub"] = "00u1"
    assert door.sign_in().status_code == 302


def test_reasons_are_told_to_owners_alone(door: Door):
    door.provider.token = unsigned
    page = door.sign_in().content.decode()
    assert "none" not in page.partition("<main")[2].partition("</main>")[0]
    with platform_scope():
        event = AuditEvent.objects.get(tenant=door.tenant, action="sso.refuse")
    assert "signed with none" in event.data["reason"]


def test_refusal_is_told_in_the_persons_language_and_logged_in_english(
    door: Door, monkeypatch: pytest.MonkeyPatch
):
    with platform_scope():
        SsoConnection.objects.filter(pk=door.row.pk).update(creates_members=False)
    monkeypatch.setattr("sso.people.gettext", lambda text: f"¡{text}")
    page = door.sign_in().content.decode()
    assert f"¡Nobody has invited ada@{DOMAIN} to {door.tenant.name} yet." in page
    with platform_scope():
        event = AuditEvent.objects.get(tenant=door.tenant, action="sso.refuse")
    assert event.data["reason"] == f"Nobody has invited ada@{DOMAIN} to {door.tenant.name} yet."


def test_too_many_sign_ins_are_slowed(door: Door):
    path = reverse("sso:start", args=[door.tenant.slug, door.row.pk])
    answers = [door.browser.get(path).status_code for _ in range(31)]
    assert answers.count(302) == 30
    assert answers[-1] == 429


def test_others_see_no_settings(cast: Cast):
    for role in ("admin", "member", "viewer"):
        with pytest.raises(DomainError):
            services.scim_token_create(tenant=cast.tenant, actor=cast.actor(role), name="x")


def test_token_library_is_what_we_think():
    """PyJWT refuses a public key as a shared secret by itself: our list of algorithms is the second lock."""
    with pytest.raises(jwt.InvalidKeyError):
        jwt.encode({}, PEM, "HS256")
