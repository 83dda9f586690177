"""What a workspace's rules make of passkeys: which one is two factors, and that none replaces the company's sign-in."""

from __future__ import annotations

from typing import Any

import pytest
from allauth.mfa.models import Authenticator
from django.test import Client
from django.urls import reverse

from tenancy.entrances import COMPANY_ONLY, _has_proven, _shows_second_factor
from tenancy.models import User
from tests.cast import Cast
from tests.sso.conftest import Door
from tests.sso.test_rules import Person, page, rules
from tests.web.software_key import (
    BACKEND,
    SoftwareKey,
    add_passkey,
    at_home,
    browser,
    challenge_of,
    is_in,
    prove_again,
    sign_in_with,
)

pytestmark = pytest.mark.django_db


def key_of(user: User) -> SoftwareKey:
    return add_passkey(at_home(user))


def here(cast: Cast) -> str:
    return f"/t/{cast.tenant.slug}/settings/connections/"


def test_verified_passkey_alone_is_two_factors(cast: Cast):
    key = key_of(cast.user("member"))
    rules(cast, requires_second_factor=True)
    client = browser()
    sign_in_with(client, key)
    assert client.get(here(cast)).status_code == 200


def test_unverified_passkey_alone_is_none(cast: Cast):
    key = key_of(cast.user("member"))
    rules(cast, requires_second_factor=True)
    client = browser()
    sign_in_with(client, key, verified=False)
    assert not is_in(client)


@pytest.mark.parametrize("verified", [True, False])
def test_passkey_after_the_password_is_the_second_factor(cast: Cast, verified: bool):
    user = cast.user("member")
    key = key_of(user)
    rules(cast, requires_second_factor=True)
    client = browser()
    client.post(reverse("account_login"), {"login": user.email, "password": "secret-password"})
    client.post(
        reverse("mfa_authenticate"),
        {"credential": key.get(challenge_of(client, "second"), verified=verified)},
    )
    assert client.get(here(cast)).status_code == 200


@pytest.mark.parametrize(("verified", "status"), [(True, 200), (False, 302)])
def test_session_without_password_needs_a_verified_one(cast: Cast, verified: bool, status: int):
    user = cast.user("member")
    key = key_of(user)
    rules(cast, requires_second_factor=True)
    client = browser()
    client.force_login(user, BACKEND)
    again = reverse("mfa_reauthenticate_webauthn")
    assert client.get(here(cast))["Location"].startswith(again)
    client.post(again, {"credential": key.get(challenge_of(client, "reauthenticate"), verified=verified)})
    assert client.get(here(cast)).status_code == status


def test_passkey_opens_nothing_where_the_company_signs_in(door: Door):
    boss = Person(door.cast.user("owner"), factor=True)
    door.sign_in()
    key = key_of(door.cast.user("member"))
    rules(door, requires_sso=True, break_glass=door.cast.owner.pk)
    client = browser()
    sign_in_with(client, key)
    assert client.get(page(door))["Location"].startswith(f"/sso/{door.tenant.slug}/")
    assert boss.secret


def test_break_glass_owner_comes_in_with_a_passkey(door: Door):
    key = key_of(door.cast.user("owner"))
    door.sign_in()
    rules(door, requires_sso=True, break_glass=door.cast.owner.pk)
    client = browser()
    sign_in_with(client, key)
    assert client.get(page(door)).status_code == 200
    row = Authenticator.objects.get(user=door.cast.owner.user, type="webauthn")
    prove_again(client)
    client.post(reverse("mfa_remove_webauthn", args=[row.pk]))
    assert Authenticator.objects.filter(pk=row.pk).exists(), "the last way in stays"


def company_session(user: User) -> Client:
    """Return a session as a company's provider begins one."""
    client = browser()
    client.force_login(user, BACKEND)
    session = client.session
    session[COMPANY_ONLY] = True
    session.save()
    return client


def test_company_session_adds_no_passkey_and_grows_by_a_verified_one(cast: Cast):
    user = cast.user("member")
    key = key_of(user)
    client = company_session(user)
    for path in (reverse("mfa_add_webauthn"), reverse("passkey_challenge", args=["add"])):
        assert client.post(path).status_code == 403
    row = Authenticator.objects.get(type="webauthn")
    assert client.post(reverse("mfa_remove_webauthn", args=[row.pk])).status_code == 403
    assert client.post(reverse("mfa_edit_webauthn", args=[row.pk]), {"name": "x"}).status_code == 403
    assert "Laptop" not in client.get(reverse("web:profile")).content.decode()
    again = reverse("mfa_reauthenticate_webauthn")
    client.post(again, {"credential": key.get(challenge_of(client, "reauthenticate"), verified=False)})
    assert client.get(here(cast)).status_code == 302
    client.post(again, {"credential": key.get(challenge_of(client, "reauthenticate"))})
    assert client.get(here(cast)).status_code == 200
    assert client.get(reverse("mfa_add_webauthn")).status_code == 200


class _Session:
    """A request with records of what its person has shown."""

    def __init__(self, user: User, *records: dict[str, Any]) -> None:
        self.user = user
        self.session = {
            "account_authentication_methods": list(records),
            "account_authentication_methods_user": str(user.pk),
        }


PASSWORD = {"method": "password", "at": 1.0}
CODE = {"method": "mfa", "type": "totp", "at": 1.0}
VERIFIED = {"method": "mfa", "type": "webauthn", "verified": True, "at": 1.0}
PRESENT = {"method": "mfa", "type": "webauthn", "verified": False, "at": 1.0}
OLDER = {"method": "mfa", "type": "webauthn", "at": 1.0}  # nothing says that it was verified


@pytest.mark.parametrize(
    ("records", "proven", "second"),
    [
        ([], False, False),
        ([PASSWORD], False, False),
        ([PASSWORD, CODE], True, True),
        ([CODE], False, True),
        ([VERIFIED], True, True),
        ([PRESENT], False, False),
        ([OLDER], False, False),
        ([PASSWORD, PRESENT], True, True),
        ([PRESENT, CODE], False, True),
    ],
)
def test_records_are_counted(cast: Cast, records: list[dict[str, Any]], proven: bool, second: bool):
    user = cast.user("member")
    key_of(user)
    assert _has_proven(_Session(user, *records)) is proven
    assert _shows_second_factor(records) is second
