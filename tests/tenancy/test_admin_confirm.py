"""An action of the admin that cannot be taken back asks first."""

from __future__ import annotations

from typing import Any

from django.test import Client
from django.urls import reverse

from tenancy.models import ApiKey
from tenancy.scope import tenant_scope
from tenancy.services import api_key_create
from tests.cast import Cast
from tests.markup import flat


def test_keys_are_revoked_once_it_is_confirmed(cast: Cast):
    who: dict[str, Any] = {"tenant": cast.tenant, "actor": cast.actor("owner")}
    keys = [api_key_create(**who, name=f"<b>{n}</b>", scopes=["run.read"])[0] for n in "ab"]
    client = Client()
    client.force_login(cast.owner.user, "django.contrib.auth.backends.ModelBackend")
    address = reverse("admin:tenancy_apikey_changelist") + "?q=b"
    chosen = {"action": "revoke", "_selected_action": [key.pk for key in keys]}

    asked = client.post(address, {**chosen, "index": "0"})

    page = flat(asked.content.decode())
    assert asked.status_code == 200
    assert "Programs that use them are refused" in page
    assert "2 api keys" in page
    assert "&lt;b&gt;a&lt;/b&gt;" in page
    with tenant_scope(cast.tenant.pk):
        assert not ApiKey.objects.exclude(revoked_at=None).exists()

    done = client.post(address, {**chosen, "post": "yes"})

    assert done.status_code == 302
    with tenant_scope(cast.tenant.pk):
        assert ApiKey.objects.exclude(revoked_at=None).count() == 2
