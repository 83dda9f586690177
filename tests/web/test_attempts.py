"""Wrong passwords: 429 that a person and a program understand, and no way to keep the owner of an account out."""

from __future__ import annotations

from typing import Any

import pytest
from allauth.mfa.models import Authenticator
from allauth.mfa.recovery_codes.internal.auth import RecoveryCodes
from allauth.mfa.totp.internal.auth import TOTP, generate_totp_secret
from django.contrib.auth.hashers import MD5PasswordHasher
from django.db import connection, transaction
from django.test import Client
from django.urls import reverse

from tenancy.database.base import as_login_role
from tenancy.models import User
from web import attempts
from web.models import AttemptWindow

EMAIL, PASSWORD = "owner@example.org", "a right password 4711"

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def _owner() -> None:
    User.objects.create_user(EMAIL, PASSWORD)


def enter(
    client: Client,
    password: str = "wrong",
    email: str = EMAIL,
    address: str = "198.51.100.7",
    **more: Any,
) -> Any:
    body = {"login": email, "password": password}
    return client.post(reverse("account_login"), body, REMOTE_ADDR=address, **more)


def is_in(client: Client) -> bool:
    return "_auth_user_id" in client.session


def test_lock_answers_429_with_a_page_and_a_time() -> None:
    client = Client()
    assert [enter(client).status_code for _ in range(attempts.PER_ACCOUNT)] == [200] * 5
    refused = enter(client, PASSWORD)  # the right one as well: or it could be guessed on
    assert refused.status_code == 429
    assert 0 < int(refused["Retry-After"]) <= attempts.WINDOW_S
    html = refused.content.decode()
    assert "Too many attempts" in html
    assert "Wait 5 minutes" in html
    assert not is_in(client)
    as_json = enter(client, headers={"Accept": "application/json"})
    assert as_json.status_code == 429
    assert as_json.json()["code"] == "too_many_attempts"
    assert as_json["Retry-After"]


def test_unknown_address_is_locked_in_the_same_way() -> None:
    for email in (EMAIL, "nobody@example.org"):
        answers = [enter(Client(), email=email, address="198.51.100.8") for _ in range(7)]
        assert [a.status_code for a in answers] == [200] * 5 + [429] * 2
        assert email in answers[0].content.decode()
    assert EMAIL not in answers[-1].content.decode()


def test_attacker_elsewhere_does_not_keep_the_owner_out() -> None:
    for _ in range(20):
        enter(Client())
    owner = Client()
    assert enter(owner, PASSWORD, address="203.0.113.5").status_code == 302
    assert is_in(owner)


def test_browser_that_was_signed_in_before_gets_in_from_the_attackers_own_address() -> None:
    owner = Client()
    enter(owner, PASSWORD)
    owner.post(reverse("account_logout"))
    assert not is_in(owner)
    assert [enter(Client()).status_code for _ in range(6)][-1] == 429
    for number in range(60):  # and over all accounts
        enter(Client(), email=f"u{number}@example.org")
    assert enter(owner, PASSWORD).status_code == 302
    assert is_in(owner)


def test_known_browser_does_not_guess_for_ever_nor_for_others() -> None:
    thief = Client()
    enter(thief, PASSWORD)
    thief.post(reverse("account_logout"))
    assert [enter(thief).status_code for _ in range(attempts.PER_BROWSER + 1)][-1] == 429
    statuses = [enter(thief, email="victim@example.org").status_code for _ in range(6)]
    assert statuses == [200] * 5 + [429]


@pytest.mark.parametrize("change", ["x", "", "a:b:c"])
def test_forged_cookie_is_no_known_browser(change: str) -> None:
    client = Client()
    client.cookies["groundwork_browser"] = change
    assert [enter(client).status_code for _ in range(6)][-1] == 429


def test_distributed_guesses_are_slowed_and_the_owner_still_gets_in(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(attempts, "MANY", 20)
    guesses = 0
    for number in range(attempts.MANY):
        for _ in range(attempts.PER_ACCOUNT + 1):
            answer = enter(Client(), address=f"2001:db8:{number:x}::1")
            guesses += answer.status_code == 200
    # Five from each address until there were many, then one from each.
    assert guesses < attempts.MANY + attempts.MANY + attempts.PER_ACCOUNT
    owner = Client()
    assert enter(owner, PASSWORD, address="203.0.113.77").status_code == 302
    assert is_in(owner)


def test_one_address_alone_never_makes_it_many_for_the_others() -> None:
    for number in range(12):  # each five minutes of an hour
        if number:
            with connection.cursor() as cursor:
                cursor.execute(
                    "UPDATE web_attemptwindow SET taken = "
                    "ARRAY(SELECT t - make_interval(secs => %s) FROM unnest(taken) AS t ORDER BY t)",
                    [attempts.WINDOW_S],
                )
        statuses = [enter(Client()).status_code for _ in range(attempts.PER_ACCOUNT + 1)]
        assert statuses == [200] * attempts.PER_ACCOUNT + [429]
    assert max(len(one.taken) for one in AttemptWindow.objects.all()) == 12 * attempts.PER_ACCOUNT
    elsewhere = [enter(Client(), address="203.0.113.5").status_code for _ in range(attempts.PER_ACCOUNT)]
    assert elsewhere == [200] * attempts.PER_ACCOUNT


def test_addresses_of_one_ipv6_customer_are_one() -> None:
    statuses = [enter(Client(), address=f"2001:db8:1:2::{n}").status_code for n in range(1, 8)]
    assert statuses == [200] * 5 + [429] * 2


def test_right_password_counts_for_nothing() -> None:
    for _ in range(20):
        client = Client()
        assert enter(client, PASSWORD).status_code == 302
    assert enter(Client()).status_code == 200


def test_proxy_that_is_trusted_names_the_address(settings: Any) -> None:
    settings.TRUST_PROXY = True
    for _ in range(6):
        enter(Client(), address="10.0.0.1", headers={"X-Forwarded-For": "198.51.100.9"})
    owner = Client()
    forwarded = {"X-Forwarded-For": "198.51.100.9, 203.0.113.8"}  # what the proxy itself appended counts
    assert enter(owner, PASSWORD, address="10.0.0.1", headers=forwarded).status_code == 302


@pytest.mark.parametrize(
    "forms",
    [
        ["198.51.100.9:{}", "198.51.100.9"],
        ["[2001:db8::9]:{}", "2001:db8::9"],
        ["unknown-{}", "_hidden{}", ""],
    ],
)
def test_another_port_or_none_address_is_no_other_caller(forms: list[str], settings: Any) -> None:
    settings.TRUST_PROXY = True
    statuses = []
    for number in range(attempts.PER_ACCOUNT + 2):
        said = forms[number % len(forms)].format(4000 + number)
        statuses.append(enter(Client(), address="", headers={"X-Forwarded-For": said}).status_code)
    assert statuses == [200] * attempts.PER_ACCOUNT + [429] * 2


def test_known_and_unknown_address_cost_the_same_hashes(monkeypatch: pytest.MonkeyPatch) -> None:
    counts: dict[str, int] = {}
    real = MD5PasswordHasher.encode

    for email in (EMAIL, "nobody@example.org"):
        made: list[str] = []

        def counted(self: Any, password: str, salt: str, made: list[str] = made) -> str:
            made.append(salt)
            return str(real(self, password, salt))

        monkeypatch.setattr(MD5PasswordHasher, "encode", counted)
        enter(Client(), email=email)
        counts[email] = len(made)
    assert counts[EMAIL] == counts["nobody@example.org"] > 0


def test_count_that_cannot_be_made_lets_nobody_in() -> None:
    with as_login_role(), connection.cursor() as cursor:
        cursor.execute("DROP FUNCTION attempts_take(text[], integer[], integer[])")
    client = Client(raise_request_exception=False)
    with transaction.atomic():
        assert enter(client, PASSWORD).status_code == 500
        transaction.set_rollback(True)
    assert not client.cookies.get("sessionid")


def test_codes_of_a_second_factor_cannot_be_tried_through() -> None:
    """Whoever is asked for one knows the password: without a limit a million codes are an hour's work."""
    person = User.objects.get(email=EMAIL)
    TOTP.activate(person, generate_totp_secret())
    RecoveryCodes.activate(person)
    thief = Client()
    assert enter(thief, PASSWORD)["Location"] == reverse("mfa_authenticate")
    tried = [
        thief.post(reverse("mfa_authenticate"), {"code": "000 00"}) for _ in range(attempts.PER_CODE + 1)
    ]
    assert [answer.status_code for answer in tried] == [200] * attempts.PER_CODE + [429]
    assert "Too many wrong codes" in tried[-1].content.decode()
    code = RecoveryCodes(Authenticator.objects.get(user=person, type="recovery_codes")).get_unused_codes()[0]
    again = Client()  # a new session is no new count
    enter(again, PASSWORD, address="203.0.113.9")
    assert again.post(reverse("mfa_authenticate"), {"code": code}).status_code == 429
    AttemptWindow.objects.all().delete()
    for _ in range(attempts.PER_CODE + 1):  # right codes count for nothing
        owner = Client()
        enter(owner, PASSWORD, address="203.0.113.10")
        wrong = owner.post(reverse("mfa_authenticate"), {"code": code})
        assert wrong.status_code == 302
        assert is_in(owner)
        code = RecoveryCodes(
            Authenticator.objects.get(user=person, type="recovery_codes")
        ).get_unused_codes()[0]
