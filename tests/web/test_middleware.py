"""Every page answers HEAD as it answers GET, and says which devices it may use."""

from __future__ import annotations

from django.test import Client
from django.urls import reverse

from apps.conversations.models import QueuedQuestion, Turn
from apps.conversations.turns.conversations import conversation_create
from tenancy.models import Invite
from tenancy.scope import tenant_scope
from tests.cast import Cast
from web.middleware import PERMISSIONS_POLICY


def test_head_is_answered_as_get_and_writes_nothing(cast: Cast) -> None:
    client, slug = Client(), cast.tenant.slug
    client.force_login(cast.user("owner"), "django.contrib.auth.backends.ModelBackend")
    with tenant_scope(cast.tenant.pk):
        row = conversation_create(tenant=cast.tenant, actor=cast.actor("owner"), title="Leases")
    pages = [
        "/healthz",  # asked before anyone is known
        f"/t/{slug}/chat/",
        f"/t/{slug}/chat/all/",
        reverse("conversations:detail", args=[slug, row.pk]),
        reverse("web:settings-members", args=[slug]),  # writes with any method but GET
        reverse("tools:settings-limits", args=[slug]),  # as well
        "/api/v1/me",
    ]
    for page in pages:
        headers = {"X-Tenant": slug}
        got, told = client.get(page, headers=headers), client.head(page, headers=headers)
        assert (told.status_code, told.content) == (200, b""), page
        assert told["Content-Type"] == got["Content-Type"], page
        assert told["Permissions-Policy"] == PERMISSIONS_POLICY, page
    assert client.head(reverse("conversations:create", args=[slug])).status_code == 405
    with tenant_scope(cast.tenant.pk):
        assert not any(model.objects.exists() for model in (Turn, QueuedQuestion, Invite))
    assert "microphone=(self)" in PERMISSIONS_POLICY
