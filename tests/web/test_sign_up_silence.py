"""Who has an account is told to nobody: not by sign-up, sign-in after it, password reset, nor a change of address."""

from __future__ import annotations

import re
from typing import Any

import pytest
from allauth.account.models import EmailAddress
from django.contrib.auth.hashers import MD5PasswordHasher
from django.core import mail
from django.core.cache import cache
from django.test import Client
from django.urls import reverse

from tenancy.models import User
from web import attempts

KNOWN, NEW = "known@example.org", "new@example.org"
PASSWORD, OTHERS = "a-long-enough-passphrase", "what the known one chose"

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def _world(settings: Any) -> None:
    settings.SIGNUP = "open"
    cache.clear()  # allauth counts mails there
    User.objects.create_user(KNOWN, OTHERS)


def sign_up(email: str, client: Client | None = None) -> Any:
    body = {"email": email, "password1": PASSWORD, "password2": PASSWORD}
    return (client or Client()).post(reverse("account_signup"), body, follow=True)


def seen(answer: Any, email: str) -> tuple[Any, ...]:
    """Everything of an answer that a stranger sees, without the address itself and what is random."""
    html = answer.content.decode().replace(email, "ADDRESS")
    html = re.sub(r'(value|nonce|content)="[^"]{20,}"', "", html)
    html = re.sub(r"[0-9a-f]{16,}", "", html)
    return answer.status_code, answer.redirect_chain, html


def test_sign_up_answers_the_same_and_sends_one_mail() -> None:
    found = {}
    for email in (KNOWN, NEW):
        client = Client()
        answer = sign_up(email, client)
        found[email] = (*seen(answer, email), sorted(client.cookies), "_auth_user_id" in client.session)
        assert [m.to for m in mail.outbox] == [[email]]
        mail.outbox.clear()
    assert found[KNOWN] == found[NEW]
    assert found[NEW][-1] is False


def test_sign_up_does_the_same_work(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[str] = []
    real = MD5PasswordHasher.encode

    def counted(self: Any, password: str, salt: str) -> str:
        made.append(salt)
        return str(real(self, password, salt))

    monkeypatch.setattr(MD5PasswordHasher, "encode", counted)
    counts = []
    for email in (KNOWN, NEW):
        made.clear()
        sign_up(email)
        counts.append(len(made))
    assert counts[0] == counts[1] > 0


def test_sign_in_after_a_sign_up_does_not_tell_which_it_was() -> None:
    found = {}
    for number, email in enumerate((KNOWN, NEW)):
        sign_up(email)
        answers = []
        for _ in range(attempts.PER_ACCOUNT + 2):
            client = Client(REMOTE_ADDR=f"198.51.100.{number}")
            body = {"login": email, "password": PASSWORD}
            answers.append(client.post(reverse("account_login"), body, follow=True))
        found[email] = [(one.status_code, one.content.count(b"not confirmed yet")) for one in answers]
    assert found[KNOWN] == found[NEW]


def test_who_confirms_signs_in() -> None:
    client = Client()
    sign_up(NEW, client)
    link = re.search(r"https?://[^/]+(/accounts/confirm-email/\S+)", str(mail.outbox[0].body))
    assert link is not None
    assert client.get(link.group(1)).status_code == 200
    client.post(link.group(1))
    assert EmailAddress.objects.get(email=NEW).verified
    Client().post(reverse("account_login"), {"login": NEW, "password": "wrong"})
    fresh = Client()
    fresh.post(reverse("account_login"), {"login": NEW, "password": PASSWORD})
    assert "_auth_user_id" in fresh.session


def test_who_never_registered_here_needs_no_mail() -> None:
    """Made by a command or an earlier version: nobody is locked out of what worked."""
    client = Client()
    client.post(reverse("account_login"), {"login": KNOWN, "password": OTHERS})
    assert "_auth_user_id" in client.session
    assert mail.outbox == []


def test_password_reset_answers_the_same_and_sends_one_mail() -> None:
    found = {}
    for email in (KNOWN, "nobody@example.org"):
        answer = Client().post(reverse("account_reset_password"), {"email": email}, follow=True)
        found[email] = seen(answer, email)
        assert [m.to for m in mail.outbox] == [[email]]
        mail.outbox.clear()
    assert found[KNOWN] == found["nobody@example.org"]


def test_new_address_of_an_account_answers_the_same() -> None:
    found = {}
    for email in (KNOWN, "free@example.org"):
        client = Client()
        user = User.objects.create_user(f"me-{email}", OTHERS)
        client.force_login(user)
        answer = client.post(reverse("account_email"), {"action_add": "", "email": email}, follow=True)
        found[email] = (answer.status_code, answer.redirect_chain, answer.content.count(b"error"))
        assert email not in str(answer.context.get("form", "") and answer.context["form"].errors)
        assert [m.to for m in mail.outbox] == [[email]]
        mail.outbox.clear()
    assert found[KNOWN] == found["free@example.org"]


@pytest.mark.parametrize("name", ["account_signup", "account_reset_password"])
def test_too_many_are_told_so_with_a_time(name: str) -> None:
    statuses = set()
    for number in range(25):
        email = f"u{number}@example.org"
        body = {"email": email, "password1": "x", "password2": "y"}
        answer = Client(REMOTE_ADDR="203.0.113.99").post(reverse(name), body)
        statuses.add(answer.status_code)
    assert 429 in statuses
    assert answer["Retry-After"] == "60"
    assert "Too many attempts" in answer.content.decode()
