"""What a workspace asks of sessions: its provider, a second factor, a new sign-in; and the owner for emergencies."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from allauth.mfa.totp.internal.auth import (
    TOTP,
    generate_totp_secret,
    hotp_value,
    yield_hotp_counters_from_time,
)
from django.test import Client
from django.utils import timezone

from basics.errors import Conflict, Invalid
from sso import services
from sso.models import SsoConnection, SsoSignIn
from sso.roles import provisioned_groups
from tenancy.models import Membership, User
from tenancy.scope import platform_scope
from tenancy.services import member_remove, member_role_change
from tenancy.sign_in_rules import SignInRules
from tests.cast import Cast
from tests.factories import actor_of, make_member
from tests.sso.conftest import BACKEND, Door
from tests.sso.provider import DOMAIN

pytestmark = pytest.mark.django_db


def code_of(secret: str) -> str:
    return f"{hotp_value(secret, next(iter(yield_hotp_counters_from_time()))):06d}"


class Person:
    """Somebody with a password, and a second factor if they have one."""

    def __init__(self, user: User, *, factor: bool = False) -> None:
        self.user, self.secret = user, ""
        self.browser = Client(raise_request_exception=False)
        if factor:
            self.secret = generate_totp_secret()
            TOTP.activate(user, self.secret)

    def sign_in(self) -> None:
        self.browser.post("/accounts/login/", {"login": self.user.email, "password": "secret-password"})
        if self.secret:
            self.browser.post("/accounts/2fa/authenticate/", {"code": code_of(self.secret)})
        assert "_auth_user_id" in self.browser.session


def rules(door_or_cast: Any, **more: Any) -> SignInRules:
    cast: Cast = getattr(door_or_cast, "cast", door_or_cast)
    values: dict[str, Any] = {
        "requires_sso": False, "requires_second_factor": False, "session_hours": None, "break_glass": None,
        "default_role": "member", **more,
    }  # fmt: skip
    return services.rules_set(tenant=cast.tenant, actor=cast.actor("owner"), **values)


@pytest.fixture
def required(door: Door) -> Person:
    """Company sign-in is required; the owner is the one for emergencies."""
    boss = Person(door.cast.user("owner"), factor=True)
    door.sign_in()
    rules(door, requires_sso=True, break_glass=door.cast.owner.pk)
    return boss


def page(door: Door) -> str:
    return f"/t/{door.cast.tenant.slug}/settings/connections/"


def test_password_opens_nothing_where_the_company_signs_in(door: Door, required: Person):
    member = Person(door.cast.user("member"))
    member.sign_in()
    answer = member.browser.get(page(door))
    assert (answer.status_code, answer["Location"].partition("?")[0]) == (302, f"/sso/{door.tenant.slug}/")
    htmx = member.browser.get(page(door), headers={"HX-Request": "true"})
    assert (htmx.status_code, htmx["HX-Redirect"].partition("?")[0]) == (401, f"/sso/{door.tenant.slug}/")
    assert member.browser.post(page(door), {"connection": "1"}).status_code == 302
    assert member.browser.get("/api/v1/me", headers={"X-Tenant": door.tenant.slug}).status_code == 403
    assert door.is_in()


def test_owner_without_the_provider_gets_no_admin_site(door: Door, required: Person):
    second = Person(make_member(door.tenant, "owner").user)
    second.sign_in()
    assert second.browser.get("/admin/").status_code != 200


def test_break_glass_owner_comes_in_with_password_and_code(door: Door, required: Person):
    required.sign_in()
    assert required.browser.get(page(door)).status_code == 200


def test_break_glass_owner_needs_the_code(door: Door, required: Person):
    required.browser.force_login(required.user, BACKEND)
    answer = required.browser.get(page(door))
    assert answer["Location"].startswith("/accounts/2fa/reauthenticate/")


def test_break_glass_owner_is_kept(door: Door, required: Person):
    second = make_member(door.tenant, "owner")
    who: Any = {"tenant": door.tenant, "actor": actor_of(second), "member_id": door.cast.owner.pk}
    with pytest.raises(Conflict, match="without the identity provider"):
        member_remove(**who)
    with pytest.raises(Conflict, match="without the identity provider"):
        member_role_change(**who, role="viewer")


def test_requiring_needs_a_provider_that_works_and_an_owner_with_a_factor(door: Door):
    owner = door.cast.owner
    with pytest.raises(Invalid, match="owner who can sign in"):
        rules(door, requires_sso=True)
    with pytest.raises(Invalid, match="authenticator app first"):
        rules(door, requires_sso=True, break_glass=owner.pk)
    Person(owner.user, factor=True)
    with pytest.raises(Conflict, match="once before"):
        rules(door, requires_sso=True, break_glass=owner.pk)
    with pytest.raises(Invalid, match="Choose an owner"):
        rules(door, requires_sso=True, break_glass=door.cast.admin.pk)
    door.sign_in()
    assert rules(door, requires_sso=True, break_glass=owner.pk).requires_sso
    with pytest.raises(Conflict, match="once before"):
        services.connection_remove(tenant=door.tenant, actor=door.actor, pk=door.row.pk)
    assert door.is_in()


def test_second_factor_is_asked_of_passwords(cast: Cast):
    rules(cast, requires_second_factor=True)
    here = f"/t/{cast.tenant.slug}/settings/connections/"
    without, with_one = Person(cast.user("member")), Person(cast.user("viewer"), factor=True)
    without.sign_in()
    assert without.browser.get(here)["Location"].startswith("/accounts/2fa/totp/activate/")
    assert without.browser.get("/api/v1/me", headers={"X-Tenant": cast.tenant.slug}).status_code == 403
    with_one.sign_in()
    assert with_one.browser.get(here).status_code == 200


def test_factor_set_up_now_opens_after_its_code(cast: Cast):
    rules(cast, requires_second_factor=True)
    here = f"/t/{cast.tenant.slug}/settings/connections/"
    person = Person(cast.user("member"))
    person.sign_in()
    person.secret = generate_totp_secret()
    TOTP.activate(person.user, person.secret)
    assert person.browser.get(here)["Location"].startswith("/accounts/2fa/reauthenticate/")
    person.browser.post("/accounts/2fa/reauthenticate/", {"code": code_of(person.secret)})
    assert person.browser.get(here).status_code == 200


def test_second_factor_of_the_company_is_the_providers(door: Door):
    rules(door, requires_second_factor=True)
    door.sign_in()
    assert door.is_in()


def test_old_password_sign_in_is_asked_again(cast: Cast, monkeypatch: pytest.MonkeyPatch):
    rules(cast, session_hours=1)
    here = f"/t/{cast.tenant.slug}/settings/connections/"
    person = Person(cast.user("member"))
    person.sign_in()
    assert person.browser.get(here).status_code == 200
    session = person.browser.session
    session["account_authentication_methods"] = [
        {**one, "at": one["at"] - 3601} for one in session["account_authentication_methods"]
    ]
    session.save()
    assert person.browser.get(here)["Location"].startswith("/accounts/reauthenticate/")
    person.browser.post("/accounts/reauthenticate/", {"password": "secret-password"})
    assert person.browser.get(here).status_code == 200


def test_old_company_sign_in_is_asked_again(door: Door):
    rules(door, session_hours=1)
    door.sign_in()
    assert door.is_in()
    with platform_scope():
        SsoSignIn.objects.update(at=timezone.now() - timedelta(minutes=61))
    assert door.browser.get(door.home)["Location"].startswith(f"/sso/{door.tenant.slug}/")
    door.sign_in()
    assert door.is_in()


def test_company_sign_in_ends_by_itself(door: Door):
    door.sign_in()
    with platform_scope():
        SsoSignIn.objects.update(expires_at=timezone.now() - timedelta(seconds=1))
    # Who came by the provider may have no password at all: they are sent there once more.
    assert door.browser.get(door.home)["Location"].startswith(f"/sso/{door.tenant.slug}/")


@pytest.mark.parametrize(
    ("hours", "role"), [(0, "member"), (2161, "member"), (None, "owner"), (None, "boss")]
)
def test_bad_rules_are_refused(hours: int | None, role: str, cast: Cast):
    with pytest.raises(Invalid):
        rules(cast, session_hours=hours, default_role=role)


def test_group_of_the_token_gives_a_role_and_takes_it(door: Door):
    services.group_role_set(tenant=door.tenant, actor=door.actor, group="Eng", role="admin")

    def role() -> str:
        with platform_scope():
            return Membership.objects.get(tenant=door.tenant, user__email=f"ada@{DOMAIN}").role

    door.provider.person["groups"] = ["Everyone", "Eng"]
    door.sign_in()
    assert role() == "admin"
    door.provider.person["groups"] = "Everyone"
    door.sign_in()
    assert role() == "member"
    with platform_scope():
        assert provisioned_groups(door.tenant, User.objects.get(email=f"ada@{DOMAIN}")) == set()


def test_without_a_role_of_a_group_nobody_comes_in(door: Door):
    rules(door, default_role="")
    assert door.sign_in().status_code == 403
    services.group_role_set(tenant=door.tenant, actor=door.actor, group="Eng", role="viewer")
    door.provider.person["groups"] = ["Eng"]
    assert door.sign_in().status_code == 302
    door.provider.person["groups"] = []
    assert door.sign_in(Client()).status_code == 403
    assert not door.is_in()


def test_address_at_work_leads_to_the_workspace(door: Door):
    browser = Client()
    answer = browser.post("/sso/", {"email": f"anybody@{DOMAIN.upper()}"})
    assert answer["Location"] == f"/sso/{door.tenant.slug}/"
    shown = browser.get(answer["Location"]).content.decode()
    assert "Continue with Acme ID" in shown
    assert browser.post("/sso/", {"email": "a@unknown.example"}).status_code == 422
    assert browser.get("/sso/no-such-workspace/").status_code == 404


def test_owner_sets_all_of_it_on_one_page(cast: Cast, settings: Any):
    browser = Client()
    browser.force_login(cast.user("owner"), BACKEND)
    here = f"/t/{cast.tenant.slug}/settings/sign-in/"
    form = {
        "connection-name": "Okta", "connection-issuer": "https://acme.okta.example", "connection-client_id": "id",
        "connection-secret": "hush-hush-secret", "connection-groups_claim": "groups", "connection-is_enabled": "on",
    }  # fmt: skip
    assert browser.post(here, {"action": "connection", **form}).status_code == 302
    assert browser.post(here, {"action": "domain", "domain-domain": "new.example"}).status_code == 302
    assert (
        browser.post(here, {"action": "group", "group-group": "Eng", "group-role": "admin"}).status_code
        == 302
    )
    assert browser.post(here, {"action": "rules", "rules-default_role": "viewer"}).status_code == 302
    token = browser.post(here, {"action": "token", "token-name": "Okta"}).content.decode()
    assert "gws_" in token
    shown = browser.get(here).content.decode()
    assert "gws_" not in shown
    assert "hush-hush-secret" not in shown
    assert "_groundwork.new.example" in shown
    row = SsoConnection.objects
    with platform_scope():
        pk = row.get(tenant=cast.tenant).pk
    changed = {name.replace("connection-", f"c{pk}-"): value for name, value in form.items()}
    changed[f"c{pk}-secret"], changed[f"c{pk}-name"] = "", "Okta 2"
    assert browser.post(here, {"action": "connection", "connection": pk, **changed}).status_code == 302
    with platform_scope():
        kept = row.select_related("tenant").get(pk=pk)
    assert (kept.name, services.connection_secret(kept).reveal()) == ("Okta 2", "hush-hush-secret")
    bad = {"action": "rules", "rules-requires_sso": "on", "rules-default_role": "viewer"}
    assert browser.post(here, bad).status_code == 422
    for action, field in (("group_remove", {"group": "Eng"}), ("connection_remove", {"connection": pk})):
        assert browser.post(here, {"action": action, **field}).status_code == 302
    assert browser.post(here, {"action": "domain_remove", "domain": "0"}).status_code == 404
    assert browser.post(here, {"action": "token_revoke", "token": "0"}).status_code == 404
    assert browser.post(here, {"action": "else"}).status_code == 400
