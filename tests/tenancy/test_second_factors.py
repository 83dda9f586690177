"""Second factors: what they rest on is encrypted, rotates with the other secrets, and no admin page shows it."""

from __future__ import annotations

from io import StringIO
from typing import Any

import pytest
from allauth.mfa.models import Authenticator
from allauth.mfa.recovery_codes.internal.auth import RecoveryCodes
from allauth.mfa.totp.internal.auth import TOTP
from allauth.mfa.utils import decrypt
from cryptography.fernet import Fernet
from django.contrib import admin
from django.core.management import CommandError, call_command
from django.test import Client
from django.urls import reverse

from tenancy.models import User
from tests.factories import make_user

SECRET = "JBSWY3DPEHPK3PXPJBSWY3DPEHPK3PXP"


@pytest.fixture
def factors(db: None) -> tuple[TOTP, RecoveryCodes]:
    person = make_user()
    return TOTP.activate(person, SECRET), RecoveryCodes.activate(person)


def secret_of(factor: Authenticator) -> str:
    """Return what codes are checked with."""
    factor.refresh_from_db()
    return str(decrypt(factor.data["secret"]))


def test_secrets_are_stored_encrypted_and_their_codes_hold(factors: tuple[TOTP, RecoveryCodes]):
    totp, recovery = factors
    kept = str(list(Authenticator.objects.values_list("data", flat=True)))
    assert SECRET not in kept
    assert kept.count("gAAAA") == 2
    assert secret_of(totp.instance) == SECRET
    codes = recovery.generate_codes()
    assert RecoveryCodes(Authenticator.objects.get(pk=recovery.instance.pk)).generate_codes() == codes


def test_factor_that_no_key_fits_lets_nobody_in(factors: tuple[TOTP, RecoveryCodes], settings: Any):
    settings.SECRET_KEY = "another-secret-key-another-secret-key-another"
    totp, recovery = factors
    found = {secret_of(totp.instance) for _ in range(3)}
    assert len(found) == 3, "a new one each time: not one that somebody could have codes of"
    assert not {SECRET, ""} & found
    assert recovery.generate_codes() != recovery.generate_codes()


def test_factors_rotate_and_those_of_before_are_encrypted(factors: tuple[TOTP, RecoveryCodes], settings: Any):
    old, new = Fernet.generate_key().decode(), Fernet.generate_key().decode()
    plain = Authenticator.objects.create(user=make_user(), type="totp", data={"secret": SECRET})
    assert secret_of(plain) == SECRET
    settings.CREDENTIAL_KEYS = [old]
    for anew, kept in ((3, 0), (0, 3)):
        out = StringIO()
        call_command("credentials_rotate", stdout=out)
        assert f"mfa.Authenticator: {anew} encrypted again, {kept} left, 0 unreadable" in out.getvalue()
    plain.refresh_from_db()
    assert SECRET not in str(plain.data)
    settings.CREDENTIAL_KEYS = [new]
    with pytest.raises(CommandError, match="3 value"):
        call_command("credentials_rotate", stdout=StringIO(), stderr=StringIO())
    settings.CREDENTIAL_KEYS = [new, old]
    call_command("credentials_rotate", stdout=StringIO())
    settings.CREDENTIAL_KEYS = [new]
    assert secret_of(plain) == SECRET


def test_operator_sees_and_removes_a_factor_but_never_its_secret(db: None):
    row = Authenticator.objects.create(user=make_user(), type="totp", data={"secret": SECRET})
    client = Client()
    root = User.objects.create_superuser("root@example.org", "secret-password")
    client.force_login(root, "django.contrib.auth.backends.ModelBackend")
    for page in ("changelist", "change", "delete", "history"):
        args = [] if page == "changelist" else [row.pk]
        shown = client.get(reverse(f"admin:mfa_authenticator_{page}", args=args))
        assert shown.status_code == 200
        assert SECRET not in shown.content.decode()
    searched = client.get(reverse("admin:mfa_authenticator_changelist"), {"data__secret": SECRET})
    assert searched.status_code == 400
    change = reverse("admin:mfa_authenticator_change", args=[row.pk])
    assert client.post(change, {"data": "{}"}).status_code == 403
    assert client.get(reverse("admin:mfa_authenticator_add")).status_code == 403
    client.post(reverse("admin:mfa_authenticator_delete", args=[row.pk]), {"post": "yes"})
    assert not Authenticator.objects.exists()


def test_admin_offers_no_page_that_runs_functions_or_gives_rights_by_group():
    labels = {model._meta.label for model in admin.site._registry}
    assert not {label for label in labels if label.startswith("django_q.")}
    assert "auth.Group" not in labels
