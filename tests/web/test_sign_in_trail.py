"""Sign-ins, sign-outs and refusals of a person: in the audit log of each of their workspaces, and in no other; as OCSF tells them."""

from __future__ import annotations

from typing import Any

import pytest
from allauth.mfa.totp.internal.auth import TOTP, generate_totp_secret
from django.test import Client
from django.urls import reverse

from audit.ocsf import event_ocsf
from tenancy.entrances import COMPANY_ONLY, SIGN_INS
from tenancy.models import AuditEvent, Membership, Role
from tenancy.scope import platform_scope, tenant_scope
from tests.cast import Cast, make_cast
from tests.factories import make_tenant

PASSWORD = "a long enough secret"


@pytest.fixture
def cast(db: None) -> Cast:
    return make_cast()


def events() -> list[AuditEvent]:
    with platform_scope():
        return list(AuditEvent.objects.filter(action__startswith="session.").order_by("pk"))


def told(event: AuditEvent) -> dict[str, Any]:
    return event_ocsf(event, slug="acme")


def sign_in(client: Client, email: str, password: str = PASSWORD) -> Any:
    return client.post(
        reverse("account_login"), {"login": email, "password": password}, REMOTE_ADDR="9.9.9.9"
    )


def test_a_sign_in_a_refusal_and_a_sign_out_are_in_each_workspace_of_the_person_alone(cast: Cast) -> None:
    user = cast.user("member")
    user.set_password(PASSWORD)
    user.save()
    second = make_tenant("second")
    with tenant_scope(second.pk):
        Membership.objects.create(tenant=second, user=user, role=Role.VIEWER)
    client = Client()
    assert sign_in(client, user.email.upper(), "wrong").status_code == 200
    assert sign_in(client, "nobody@example.org").status_code == 200
    assert sign_in(client, user.email).status_code == 302
    client.post(reverse("account_logout"))
    found = events()
    assert {event.tenant_id for event in found} == {cast.tenant.pk, second.pk}
    here = [event for event in found if event.tenant_id == cast.tenant.pk]
    assert [event.action for event in here] == ["session.refuse", "session.sign_in", "session.sign_out"]
    assert [event.user_id for event in here] == [user.pk] * 3
    refused, begun, ended = map(told, here)
    assert (refused["class_uid"], refused["type_uid"], refused["status_id"]) == (3002, 300201, 2)
    assert (refused["status_detail"], refused["src_endpoint"]) == ("password", {"ip": "9.9.9.9"})
    assert (begun["type_uid"], begun["status_id"], begun["is_mfa"]) == (300201, 1, False)
    assert (begun["auth_protocol_id"], begun["auth_protocol"]) == (99, "Password")
    assert (ended["type_uid"], ended["activity_name"]) == (300202, "Logoff")
    assert begun["user"] == {"name": here[1].actor_name, "uid": str(user.pk)}


def test_a_second_factor_is_told_and_so_is_a_wrong_code(cast: Cast) -> None:
    user = cast.user("member")
    user.set_password(PASSWORD)
    user.save()
    TOTP.activate(user, generate_totp_secret())
    client = Client()
    assert sign_in(client, user.email).status_code == 302
    assert events() == []  # nobody is in yet
    client.post(reverse("mfa_authenticate"), {"code": "00000"})  # five digits are never right
    (refused,) = events()
    assert (refused.action, refused.data["reason"]) == ("session.refuse", "second factor")


def test_a_company_session_ends_in_its_own_workspace_alone(cast: Cast) -> None:
    user = cast.user("member")
    second = make_tenant("second")
    with tenant_scope(second.pk):
        Membership.objects.create(tenant=second, user=user, role=Role.VIEWER)
    client = Client()
    client.force_login(user, "django.contrib.auth.backends.ModelBackend")
    session = client.session
    session[COMPANY_ONLY], session[SIGN_INS] = True, {str(second.pk): "token"}
    session.save()
    client.post(reverse("account_logout"))
    assert [(event.action, event.tenant_id) for event in events()] == [("session.sign_out", second.pk)]
