"""Where links of mails lead is the settings' word: no Host header that a wildcard lets in turns up in anybody's mail."""

from __future__ import annotations

from typing import Any

import pytest
from django.core import mail
from django.core.cache import cache
from django.test import Client
from django.urls import reverse

from config.doctor import check_mail_links
from tests.cast import Cast
from tests.conversations.chat.test_views import client_of

pytestmark = pytest.mark.django_db(transaction=True)
FORGED = "evil.example"


@pytest.mark.parametrize(
    ("hosts", "origins", "host", "address"),
    [
        (["*"], [], FORGED, ""),
        ([".example"], ["https://*.example"], FORGED, ""),
        (["*"], ["https://desk.example.org:8443"], FORGED, "https://desk.example.org:8443"),
        (["*", "desk.example.org"], [], FORGED, "https://desk.example.org"),
        (["first.example.org", "desk.example.org"], [], "desk.example.org", "http://desk.example.org"),
    ],
)
def test_mails_link_to_an_address_of_the_settings_or_are_not_sent(
    cast: Cast, settings: Any, hosts: list[str], origins: list[str], host: str, address: str
) -> None:
    cache.clear()  # allauth counts mails there
    settings.ALLOWED_HOSTS, settings.CSRF_TRUSTED_ORIGINS, settings.SIGNUP = hosts, origins, "open"
    settings.EMAIL_BACKEND = "django.core.mail.backends.locmem.EmailBackend"
    stranger = Client(headers={"host": host})
    stranger.post(reverse("account_reset_password"), {"email": cast.user("member").email})
    words = "a-long-enough-passphrase"
    new = {"email": "new@example.org", "password1": words, "password2": words}
    stranger.post(reverse("account_signup"), new)
    inviter = client_of(cast, "owner")
    invite = {"email": "guest@example.org", "role": "member"}
    page = inviter.post(
        reverse("web:settings-invites", args=[cast.tenant.slug]), invite, headers={"host": host}
    ).content.decode()
    assert f"{address or f'http://{FORGED}'}/invite" in page, "the inviter's own browser has the link"
    said = [f"{message.subject}\n{message.body}" for message in mail.outbox]
    assert len(said) == (3 if address else 0)
    assert all(f"{address}/" in text and FORGED not in text for text in said)
    check = check_mail_links()
    assert (check.ok, "GROUNDWORK_TRUSTED_ORIGINS" in check.fix) == (bool(address), not address)
