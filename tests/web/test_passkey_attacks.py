"""Answers of passkeys that must let nobody in, and change nothing."""

from __future__ import annotations

import json
from typing import Any

import pytest
from allauth.mfa.models import Authenticator
from cryptography.hazmat.primitives.asymmetric import ec
from django.test import Client
from django.urls import reverse

from tenancy.models import AuditEvent, User
from tenancy.scope import platform_scope
from tests.cast import Cast
from tests.factories import make_user
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
from web import attempts
from web.passkeys import ceremonies

pytestmark = pytest.mark.django_db


def with_passkey(user: User, **options: Any) -> SoftwareKey:
    """Return a new passkey of a person."""
    return add_passkey(at_home(user), SoftwareKey(**options))


@pytest.fixture
def person() -> User:
    return make_user()


@pytest.fixture
def key(person: User) -> SoftwareKey:
    return with_passkey(person)


def test_passkey_lets_its_person_in(person: User, key: SoftwareKey):
    client = browser()
    assert sign_in_with(client, key).status_code == 302
    assert client.session["_auth_user_id"] == str(person.pk)


@pytest.mark.parametrize(
    "lies",
    [
        {"origin": "https://localhost.example.com"},
        {"origin": "https://sub.localhost"},
        {"origin": "http://localhost"},
        {"origin": "https://localhost:8443"},
        {"origin": "null"},
        {"rp_id": "example.com"},
        {"challenge": bytes(32)},
        {"verified": False},
        {"present": False},
        {"type": "webauthn.create"},
        {"cross_origin": True},
        {"signed_by": ec.generate_private_key(ec.SECP256R1())},
        {"handle": None},
        {"handle": b""},
        {"handle": b"999999999"},
        {"handle": b"-1"},
        {"handle": "١".encode()},
        {"handle": b"9" * 60},
        {"counter": 1},
        {"counter": 0},
    ],
    ids=lambda lies: "-".join(f"{k}={str(v)[:25]}" for k, v in lies.items()),
)
def test_lie_lets_nobody_in(key: SoftwareKey, lies: dict[str, Any]):
    client = browser()
    assert sign_in_with(client, key, **lies)["Location"] == reverse("account_login")
    assert not is_in(client)


@pytest.mark.parametrize(
    "answer",
    [
        "",
        "null",
        "[]",
        "{}",
        "[" * 30_000,
        "x" * 40_000,
        '{"rawId": 1, "response": {"clientDataJSON": []}}',
        "\x00",
    ],
)
def test_rubbish_lets_nobody_in(key: SoftwareKey, answer: str):
    client = browser()
    challenge_of(client, "login")
    assert client.post(reverse("mfa_login_webauthn"), {"credential": answer}).status_code == 302
    assert not is_in(client)


@pytest.mark.parametrize("part", ["clientDataJSON", "authenticatorData", "signature"])
def test_each_damaged_part_lets_nobody_in(key: SoftwareKey, part: str):
    client = browser()
    for value in ("", "AA", "!", None, "A" * 5000):
        said = json.loads(key.get(challenge_of(client, "login")))
        said["response"][part] = value
        client.post(reverse("mfa_login_webauthn"), {"credential": json.dumps(said)})
        assert not is_in(client)


def test_answer_works_once(key: SoftwareKey):
    client = browser()
    answer = key.get(challenge_of(client, "login"))
    client.post(reverse("mfa_login_webauthn"), {"credential": answer})
    assert is_in(client)
    client.post(reverse("account_logout"))
    client.post(reverse("mfa_login_webauthn"), {"credential": answer})
    assert not is_in(client)


def test_challenge_is_spent_by_a_wrong_answer(key: SoftwareKey):
    client = browser()
    options = challenge_of(client, "login")
    client.post(reverse("mfa_login_webauthn"), {"credential": key.get(options, origin="https://example.com")})
    client.post(reverse("mfa_login_webauthn"), {"credential": key.get(options)})
    assert not is_in(client)


def test_two_requests_that_read_one_session_take_its_challenge_once(key: SoftwareKey):
    """Without a counter, as synced passkeys are, nothing else would tell the second one."""
    key.counts = False
    row = Authenticator.objects.get(type="webauthn")
    row.data["sign_count"] = 0
    row.save()
    key.counter = 0
    client = browser()
    answer = key.get(challenge_of(client, "login"))
    before = client.session[ceremonies.SESSION_KEY]
    client.post(reverse("mfa_login_webauthn"), {"credential": answer})
    assert is_in(client)
    client.post(reverse("account_logout"))
    session = client.session
    session[ceremonies.SESSION_KEY] = before
    session.save()
    client.post(reverse("mfa_login_webauthn"), {"credential": answer})
    assert not is_in(client)


def test_challenge_of_another_session_counts_for_nothing(key: SoftwareKey):
    victim, thief = browser(), browser()
    answer = key.get(challenge_of(victim, "login"))
    thief.post(reverse("mfa_login_webauthn"), {"credential": answer})
    challenge_of(thief, "login")
    thief.post(reverse("mfa_login_webauthn"), {"credential": answer})
    assert not is_in(thief)


def test_challenge_expires(key: SoftwareKey):
    client = browser()
    answer = key.get(challenge_of(client, "login"))
    session = client.session
    made = session[ceremonies.SESSION_KEY]
    made["login"]["at"] -= ceremonies.LIFETIME_S
    session[ceremonies.SESSION_KEY] = made
    session.save()
    client.post(reverse("mfa_login_webauthn"), {"credential": answer})
    assert not is_in(client)


def test_challenge_for_another_purpose_skips_no_verification(person: User, key: SoftwareKey):
    """A stolen key without its PIN, and a session in which the thief has begun a sign-in of their own."""
    thief_user = make_user()
    with_passkey(thief_user)
    thief = browser()
    thief.post(reverse("account_login"), {"login": thief_user.email, "password": "secret-password"})
    options = challenge_of(thief, "second")
    assert options["userVerification"] == "preferred"
    thief.post(reverse("mfa_login_webauthn"), {"credential": key.get(options, verified=False)})
    thief.post(reverse("mfa_login_webauthn"), {"credential": key.get(options)})
    assert not is_in(thief)


def test_passkey_of_another_person_is_no_second_factor(person: User, key: SoftwareKey):
    thiefs = with_passkey(make_user())
    client = browser()
    client.post(reverse("account_login"), {"login": person.email, "password": "secret-password"})
    lies: dict[str, Any]
    for lies in ({}, {"handle": key.handle}, {"handle": None}):
        answer = thiefs.get(challenge_of(client, "second"), **lies)
        assert client.post(reverse("mfa_authenticate"), {"credential": answer}).status_code == 200
        assert not is_in(client)
    with_id_of_victim = SoftwareKey(handle=key.handle, ident=key.ident)
    answer = with_id_of_victim.get(challenge_of(client, "second"), counter=99)
    client.post(reverse("mfa_authenticate"), {"credential": answer})
    assert not is_in(client)
    client.post(reverse("mfa_authenticate"), {"credential": key.get(challenge_of(client, "second"))})
    assert client.session["_auth_user_id"] == str(person.pk)


def test_own_passkey_opens_nobody_elses_account(person: User, key: SoftwareKey):
    thiefs = with_passkey(make_user())
    client = browser()
    sign_in_with(client, thiefs, handle=str(person.pk).encode())
    assert not is_in(client)


def test_removed_passkey_lets_nobody_in(person: User, key: SoftwareKey):
    client = browser()
    answer = key.get(challenge_of(client, "login"))
    Authenticator.objects.filter(type="webauthn").delete()
    client.post(reverse("mfa_login_webauthn"), {"credential": answer})
    assert not is_in(client)


def test_closed_account_stays_closed(person: User, key: SoftwareKey):
    User.objects.filter(pk=person.pk).update(is_active=False)
    client = browser()
    sign_in_with(client, key)
    assert not is_in(client)


def test_copied_key_is_refused_and_told(cast: Cast):
    user = cast.user("member")
    key = with_passkey(user)
    owner, copy = browser(), browser()
    sign_in_with(owner, key, counter=7)
    for counter in (7, 6, 0):
        sign_in_with(copy, key, counter=counter)
        assert not is_in(copy)
    sign_in_with(copy, key, counter=8)
    assert is_in(copy)
    with platform_scope():
        rows = list(
            AuditEvent.objects.filter(action="passkey.refuse").values_list("tenant_id", "user_id", "data")
        )
    assert rows == [(cast.tenant.pk, user.pk, {"reason": "counter"})] * 3


def test_synced_passkey_without_counter_goes_on_working(person: User):
    key = with_passkey(person, counts=False)
    for _ in range(2):
        client = browser()
        sign_in_with(client, key)
        assert is_in(client)


@pytest.mark.parametrize(
    "lies",
    [
        {"origin": "https://example.com"},
        {"rp_id": "example.com"},
        {"challenge": bytes(32)},
        {"type": "webauthn.get"},
        {"present": False},
        {"cross_origin": True},
    ],
)
def test_lie_adds_nothing(person: User, lies: dict[str, Any]):
    client = browser()
    client.force_login(person, BACKEND)
    prove_again(client)
    answer = SoftwareKey().create(challenge_of(client, "add"), **lies)
    refused = client.post(reverse("mfa_add_webauthn"), {"name": "x", "credential": answer})
    assert refused.status_code == 422
    assert not Authenticator.objects.exists()


def test_passkey_that_somebody_has_is_not_added_again(person: User, key: SoftwareKey):
    thief = make_user()
    client = browser()
    client.force_login(thief, BACKEND)
    prove_again(client)
    same = SoftwareKey(ident=key.ident)
    refused = client.post(
        reverse("mfa_add_webauthn"), {"name": "x", "credential": same.create(challenge_of(client, "add"))}
    )
    assert "already in use" in refused.content.decode()
    assert not Authenticator.objects.filter(user=thief).exists()


def test_challenge_to_add_is_the_persons_own(person: User):
    first, second = make_user(), make_user()
    client = browser()
    client.force_login(first, BACKEND)
    prove_again(client)
    answer = SoftwareKey().create(challenge_of(client, "add"))
    waiting = client.session[ceremonies.SESSION_KEY]
    client.force_login(second, BACKEND)
    prove_again(client)
    session = client.session
    session[ceremonies.SESSION_KEY] = waiting
    session.save()
    client.post(reverse("mfa_add_webauthn"), {"name": "x", "credential": answer})
    assert not Authenticator.objects.exists()


def test_nothing_is_added_or_removed_without_the_password_of_now(person: User, key: SoftwareKey):
    client = browser()
    client.force_login(person, BACKEND)
    row = Authenticator.objects.get(type="webauthn")
    for answer in (
        client.get(reverse("mfa_add_webauthn")),
        client.post(reverse("mfa_add_webauthn"), {"name": "x", "credential": "{}"}),
        client.post(reverse("passkey_challenge", args=["add"])),
        client.post(reverse("mfa_remove_webauthn", args=[row.pk])),
    ):
        assert answer["Location"].startswith(reverse("account_reauthenticate"))
    assert Authenticator.objects.filter(pk=row.pk).exists()


def test_passkey_of_another_person_is_neither_renamed_nor_removed(person: User, key: SoftwareKey):
    row = Authenticator.objects.get(type="webauthn")
    client = browser()
    client.force_login(make_user(), BACKEND)
    prove_again(client)
    assert client.post(reverse("mfa_edit_webauthn", args=[row.pk]), {"name": "Mine"}).status_code == 404
    assert client.post(reverse("mfa_remove_webauthn", args=[row.pk])).status_code == 404
    row.refresh_from_db()
    assert row.data["name"] == "Laptop"


@pytest.mark.parametrize("purpose", ["add", "second", "reauthenticate"])
def test_stranger_begins_nothing_but_a_sign_in(purpose: str):
    assert browser().post(reverse("passkey_challenge", args=[purpose])).status_code == 403


def test_challenge_without_a_token_of_the_form_is_refused():
    client = Client(enforce_csrf_checks=True)
    assert client.post(reverse("passkey_challenge", args=["login"])).status_code == 403


def test_wrong_passkeys_are_slowed_with_passwords_and_lock_nobody_out(person: User, key: SoftwareKey):
    for number in range(attempts.PER_ADDRESS):
        client = browser(REMOTE_ADDR="198.51.100.7")
        client.post(
            reverse("mfa_login_webauthn"), {"credential": key.get({"rpId": "localhost", "challenge": ""})}
        )
        assert not is_in(client), number
    refused = browser(REMOTE_ADDR="198.51.100.7").post(reverse("mfa_login_webauthn"), {"credential": "{}"})
    assert refused.status_code == 429
    owner = browser(REMOTE_ADDR="203.0.113.5")
    sign_in_with(owner, key)
    assert is_in(owner)


def test_second_factor_is_slowed_as_codes_are(person: User, key: SoftwareKey):
    client = browser()
    client.post(reverse("account_login"), {"login": person.email, "password": "secret-password"})
    statuses = [
        client.post(reverse("mfa_authenticate"), {"credential": "{}"}).status_code
        for _ in range(attempts.PER_CODE + 1)
    ]
    assert statuses == [200] * attempts.PER_CODE + [429]


def test_challenges_of_strangers_are_bounded():
    client = browser()
    statuses = [
        client.post(reverse("passkey_challenge", args=["login"])).status_code
        for _ in range(attempts.PASSKEYS_PER_ADDRESS + 1)
    ]
    assert statuses == [200] * attempts.PASSKEYS_PER_ADDRESS + [429]
