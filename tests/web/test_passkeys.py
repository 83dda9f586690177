"""Passkeys on the account page: adding, naming, removing, signing in, what is told and who else may remove them."""

from __future__ import annotations

from typing import Any

import pytest
from allauth.mfa.models import Authenticator
from allauth.mfa.totp.internal.auth import TOTP, generate_totp_secret
from django.test import Client
from django.urls import reverse

from basics.errors import Conflict
from erasure.persons import person_rows_erase
from erasure.reports import Report
from tenancy.models import AuditEvent, User
from tenancy.scope import platform_scope
from tenancy.services import member_remove
from tests.cast import Cast
from tests.factories import make_user
from tests.sso.test_rules import rules
from tests.web.software_key import (
    BACKEND,
    HOST,
    SoftwareKey,
    add_passkey,
    at_home,
    browser,
    challenge_of,
    is_in,
    prove_again,
    sign_in_with,
)
from web.passkeys import services

pytestmark = pytest.mark.django_db


def events() -> list[tuple[str, int]]:
    with platform_scope():
        return list(
            AuditEvent.objects.filter(action__startswith="passkey.")
            .order_by("pk")
            .values_list("action", "tenant_id")
        )


def profile(client: Client) -> str:
    return client.get(reverse("web:profile")).content.decode()


def test_person_adds_names_uses_and_removes_a_passkey(cast: Cast):
    user = cast.user("member")
    client = at_home(user)
    assert "No passkeys yet" in profile(client)
    assert "Add a passkey" in client.get(reverse("mfa_add_webauthn")).content.decode()
    key = add_passkey(client, name="  Work   laptop ")
    assert "Work laptop" in profile(client)
    assert Authenticator.objects.filter(user=user, type="recovery_codes").exists()
    row = Authenticator.objects.get(user=user, type="webauthn")
    part = client.post(
        reverse("mfa_edit_webauthn", args=[row.pk]), {"name": "Phone"}, headers={"HX-Request": "true"}
    )
    assert part.status_code == 200
    assert part.content.decode().lstrip().startswith("<section")
    assert "Phone" in profile(client)
    other = browser()
    assert sign_in_with(other, key).status_code == 302
    assert is_in(other)
    assert client.post(reverse("mfa_remove_webauthn", args=[row.pk])).status_code == 302
    assert not Authenticator.objects.filter(user=user).exists(), "recovery codes go with the last factor"
    again = browser()
    sign_in_with(again, key)
    assert not is_in(again)
    here = cast.tenant.pk
    assert events() == [("passkey.add", here), ("passkey.sign_in", here), ("passkey.remove", here)]
    with platform_scope():
        told = str(list(AuditEvent.objects.filter(action__startswith="passkey.").values()))
    assert "laptop" not in told
    assert "Phone" not in told


def test_each_workspace_of_the_person_reads_it_and_no_other(cast: Cast):
    add_passkey(at_home(cast.user("outsider")))
    assert events() == [("passkey.add", cast.other_tenant.pk)]


def test_page_stays_where_it_was_when_the_sign_in_leads_somewhere(cast: Cast):
    key = add_passkey(at_home(cast.user("member")))
    client = browser()
    wanted = f"/t/{cast.tenant.slug}/collections/"
    body = {"credential": key.get(challenge_of(client, "login")), "next": wanted}
    assert client.post(reverse("mfa_login_webauthn"), body)["Location"] == wanted


def test_password_is_followed_by_the_passkey(cast: Cast):
    user = cast.user("member")
    key = add_passkey(at_home(user))
    client = browser()
    client.post(reverse("account_login"), {"login": user.email, "password": "secret-password"})
    assert not is_in(client)
    page = client.get(reverse("mfa_authenticate")).content.decode()
    assert "Use a passkey" in page
    options = challenge_of(client, "second")
    assert len(options["allowCredentials"]) == 1
    client.post(reverse("mfa_authenticate"), {"credential": key.get(options, verified=False)})
    assert is_in(client)


def test_passkey_proves_again_who_is_there(cast: Cast):
    user = cast.user("member")
    key = add_passkey(at_home(user))
    client = browser()
    sign_in_with(client, key)
    add = reverse("mfa_add_webauthn")
    assert client.get(add).status_code == 302
    again = reverse("mfa_reauthenticate_webauthn")
    assert "Use a passkey" in client.get(again).content.decode()
    answer = key.get(challenge_of(client, "reauthenticate"))
    assert client.post(again, {"credential": answer, "next": add}).status_code == 302
    assert client.get(add).status_code == 200


def test_removal_that_had_to_wait_for_the_password_goes_on_after_it(cast: Cast):
    user = cast.user("member")
    add_passkey(at_home(user))
    row = Authenticator.objects.get(type="webauthn")
    client = browser()
    client.force_login(user, BACKEND)
    path = reverse("mfa_remove_webauthn", args=[row.pk])
    asked = client.post(path)
    client.post(asked["Location"], {"password": "secret-password", "next": path})
    assert not Authenticator.objects.filter(pk=row.pk).exists()


@pytest.mark.parametrize("name", ["", "   ", "x" * 61, "a\x07b"])
def test_name_that_is_none_is_refused(cast: Cast, name: str):
    client = at_home(cast.user("member"))
    add_passkey(client)
    row = Authenticator.objects.get(type="webauthn")
    assert client.post(reverse("mfa_edit_webauthn", args=[row.pk]), {"name": name}).status_code == 400
    row.refresh_from_db()
    assert row.data["name"] == "Laptop"


def test_there_is_an_end_to_passkeys(cast: Cast, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(services, "MAX_PASSKEYS", 1)
    client = at_home(cast.user("member"))
    add_passkey(client)
    credential = SoftwareKey().create(challenge_of(client, "add"))
    refused = client.post(reverse("mfa_add_webauthn"), {"name": "x", "credential": credential})
    assert "already have 1 passkeys" in refused.content.decode()
    assert Authenticator.objects.filter(type="webauthn").count() == 1


def test_last_factor_stays_where_a_workspace_asks_for_one(cast: Cast):
    user = cast.user("member")
    client = at_home(user)
    add_passkey(client)
    rules(cast, requires_second_factor=True)
    row = Authenticator.objects.get(type="webauthn")
    with pytest.raises(Conflict, match="your only one"):
        services.passkey_remove(user=user, pk=row.pk)
    client.post(reverse("mfa_remove_webauthn", args=[row.pk]))
    assert "your only one" in profile(client)
    assert Authenticator.objects.filter(pk=row.pk).exists()
    totp = TOTP.activate(user, generate_totp_secret())
    services.passkey_remove(user=user, pk=row.pk)
    client.post(reverse("mfa_deactivate_totp"))
    assert Authenticator.objects.filter(pk=totp.instance.pk).exists(), "the same of an app's codes"
    member_remove(tenant=cast.tenant, actor=cast.actor("owner"), member_id=cast.member.pk)
    client.post(reverse("mfa_deactivate_totp"))
    assert not Authenticator.objects.filter(user=user).exists()


def test_person_who_left_gets_in_nowhere_with_a_passkey(cast: Cast):
    user = cast.user("member")
    key = add_passkey(at_home(user))
    member_remove(tenant=cast.tenant, actor=cast.actor("owner"), member_id=cast.member.pk)
    client = browser()
    sign_in_with(client, key)
    assert client.get(f"/t/{cast.tenant.slug}/chat/").status_code == 404


def test_passkey_goes_with_its_person(cast: Cast):
    user = make_user()
    add_passkey(at_home(user))
    report = Report()
    person_rows_erase(user, report)
    assert not Authenticator.objects.exists()
    assert ("mfa.Authenticator", 2) in {(line.where, line.count) for line in report.lines}, (
        "with its recovery codes"
    )


def test_operator_sees_the_name_and_removes_it(cast: Cast):
    user = cast.user("member")
    key = add_passkey(at_home(user), name="Key of the member")
    row = Authenticator.objects.get(type="webauthn")
    root = Client()
    root.force_login(User.objects.create_superuser("root@example.org", "secret-password"), BACKEND)
    shown = root.get(reverse("admin:mfa_authenticator_change", args=[row.pk])).content.decode()
    assert "Key of the member" in shown
    assert row.data["credential"]["id"] not in shown
    root.post(reverse("admin:mfa_authenticator_delete", args=[row.pk]), {"post": "yes"})
    assert not Authenticator.objects.filter(user=user).exists()
    client = browser()
    sign_in_with(client, key)
    assert not is_in(client)


def test_origin_is_that_of_the_proxy(cast: Cast, settings: Any):
    settings.ALLOWED_HOSTS = ["ask.example.com"]
    settings.SECURE_PROXY_SSL_HEADER = ("HTTP_X_FORWARDED_PROTO", "https")
    settings.CSRF_TRUSTED_ORIGINS = [
        "https://ask.example.com:8443",
        "https://other.example.com",
        "https://*.example.com",
    ]
    proxied: dict[str, Any] = {"HTTP_HOST": "ask.example.com", "HTTP_X_FORWARDED_PROTO": "https"}
    client = Client(**proxied)
    client.force_login(cast.user("member"), BACKEND)
    prove_again(client)
    key = add_passkey(client, origin="https://ask.example.com")
    for origin, lets_in in {
        "https://ask.example.com": True,
        "https://ask.example.com:443": True,
        "https://ask.example.com:8443": True,
        "http://ask.example.com": False,
        "https://other.example.com": False,
        "https://evil.ask.example.com": False,
        "https://ask.example.com.": False,
        "https://ask.example.com/x": False,
    }.items():
        other = Client(**proxied)
        sign_in_with(other, key, origin=origin)
        assert is_in(other) is lets_in, origin
    plain = Client(HTTP_HOST="ask.example.com")  # the proxy says nothing of TLS
    sign_in_with(plain, key, origin="http://ask.example.com")
    assert not is_in(plain)


def test_sign_in_page_offers_it_without_inline_script(client: Client):
    html = client.get(reverse("account_login"), SERVER_NAME=HOST).content.decode()
    assert "Sign in with a passkey" in html
    assert "bundles/passkeys." in html
    assert "<script>" not in html
    assert 'type="application/json"' not in html
