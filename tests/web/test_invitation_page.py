"""An invitation's link works for people who are signed in, signed out, and not registered yet."""

from __future__ import annotations

import pytest
from django.test import Client
from django.urls import reverse

from tenancy.models import Membership, User
from tenancy.scope import tenant_scope
from tenancy.services import invite_create, invite_revoke
from tests.cast import Cast
from tests.factories import make_user

EMAIL = "new@example.org"
PASSWORD = "a-long-enough-passphrase"


@pytest.fixture(autouse=True)
def _by_invitation_only(settings):
    settings.SIGNUP = "invite"


@pytest.fixture
def link(cast: Cast) -> str:
    return invite_create(
        tenant=cast.tenant,
        actor=cast.actor("owner"),
        email=EMAIL,
        role="member",
        link_for=lambda token: reverse("web:invite-accept", args=[token]),
    )[1]


def sign_up(client: Client, email: str = EMAIL):
    return client.post(
        reverse("account_signup"), {"email": email, "password1": PASSWORD, "password2": PASSWORD}
    )


def is_member(cast: Cast, email: str = EMAIL) -> bool:
    with tenant_scope(cast.tenant.pk):
        return Membership.objects.filter(user__email=email).exists()


def test_new_person_signs_up_and_joins(cast: Cast, link: str):
    client = Client()
    page = client.get(link)
    assert page.status_code == 200
    assert cast.tenant.name in page.content.decode()
    assert EMAIL in client.get(reverse("account_signup")).content.decode()
    assert sign_up(client)["Location"] == link
    assert not is_member(cast), "joining takes a click"
    joined = client.post(link)
    assert joined["Location"] == reverse("web:tenant-home", args=[cast.tenant.slug])
    assert is_member(cast)


def test_sign_up_is_closed_without_an_open_invitation(cast: Cast, link: str):
    assert sign_up(Client()).status_code == 200
    assert "by invitation" in Client().get(reverse("account_signup")).content.decode()
    assert reverse("account_signup") not in Client().get(reverse("account_login")).content.decode()
    client = Client()
    client.get(link)
    with tenant_scope(cast.tenant.pk):
        from tenancy.models import Invite

        ident = Invite.objects.get().pk
    invite_revoke(tenant=cast.tenant, actor=cast.actor("owner"), invite_id=ident)
    sign_up(client)
    assert not User.objects.filter(email=EMAIL).exists()


def test_invited_person_cannot_register_another_address(link: str):
    client = Client()
    client.get(link)
    response = sign_up(client, "somebody@example.org")
    assert response.status_code == 200
    assert "invitation was sent to" in response.content.decode()
    assert not User.objects.filter(email="somebody@example.org").exists()


def test_signed_out_person_signs_in_and_comes_back(cast: Cast, link: str):
    make_user(EMAIL)
    client = Client()
    client.get(link)
    response = client.post(reverse("account_login"), {"login": EMAIL, "password": "secret-password"})
    assert response["Location"] == link
    client.post(link)
    assert is_member(cast)


def test_other_person_is_told_and_not_let_in(cast: Cast, link: str):
    client = Client()
    client.force_login(cast.user("outsider"), "django.contrib.auth.backends.ModelBackend")
    assert client.get(link).status_code == 403
    assert client.post(link).status_code == 403
    assert not is_member(cast, cast.user("outsider").email)


def test_used_link_says_so(cast: Cast, link: str):
    client = Client()
    client.force_login(make_user(EMAIL), "django.contrib.auth.backends.ModelBackend")
    assert client.post(link).status_code == 302
    again = client.get(link)
    assert again.status_code == 410
    assert "already been used" in again.content.decode()
