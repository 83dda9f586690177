"""Settings, Webhooks: a secret is shown once, the log tells what came of each event, failures switch a webhook off."""

from __future__ import annotations

import re
from typing import Any

import pytest
from django.test import Client
from django.urls import reverse

from jobs.models import Job
from tenancy.models import AuditEvent
from tenancy.scope import tenant_scope
from tests.cast import Cast
from tests.markup import flat
from webhooks.models import DeliveryStatus, Webhook, WebhookDelivery
from webhooks.services import MAX_FAILURES, delivery_failed, delivery_succeeded, webhook_ping

HOOK: dict[str, Any] = {"url": "https://93.184.216.34/hook", "events": ["run.finished", "approval.needed"]}


@pytest.fixture
def client(cast: Cast) -> Client:
    client = Client()
    client.force_login(cast.user("admin"), "django.contrib.auth.backends.ModelBackend")
    return client


def list_url(cast: Cast) -> str:
    return reverse("web:settings-webhooks", args=[cast.tenant.slug])


def one_url(cast: Cast, pk: int) -> str:
    return reverse("web:settings-webhook", args=[cast.tenant.slug, pk])


def made(cast: Cast, client: Client) -> Webhook:
    assert client.post(list_url(cast), HOOK).status_code == 200
    with tenant_scope(cast.tenant.pk):
        row: Webhook = Webhook.objects.get()
        return row


def test_secret_is_shown_once(cast: Cast, client: Client) -> None:
    page = client.post(list_url(cast), HOOK)
    secret = re.search(r'id="hook-secret">([^<]+)<', page.content.decode())
    assert secret is not None
    assert "no-store" in page["Cache-Control"]
    with tenant_scope(cast.tenant.pk):
        pk = Webhook.objects.get().pk
    for url in (list_url(cast), one_url(cast, pk)):
        again = client.get(url).content.decode()
        assert HOOK["url"] in again
        assert secret[1] not in again


def test_new_secret_is_shown_once_and_says_how_long_the_old_one_signs(cast: Cast, client: Client) -> None:
    row = made(cast, client)
    page = client.post(one_url(cast, row.pk), {"action": "rotate"})
    secret = re.search(r'id="hook-secret">(whsec_[^<]+)<', page.content.decode())
    assert secret is not None
    assert "no-store" in page["Cache-Control"]
    assert "still signs as well for 24 hours" in flat(page.content.decode())
    assert secret[1] not in client.get(one_url(cast, row.pk)).content.decode()
    with tenant_scope(cast.tenant.pk):
        assert AuditEvent.objects.filter(action="webhook.rotate").count() == 1


@pytest.mark.parametrize(
    "wrong",
    [
        {"url": "http://169.254.169.254/"},
        {"url": "file:///etc/passwd"},
        {"events": ["nothing"]},
        {"events": []},
    ],
    ids=str,
)
def test_address_or_event_that_cannot_be_used_is_refused_at_its_field(
    cast: Cast, client: Client, wrong: dict[str, Any]
) -> None:
    page = client.post(list_url(cast), HOOK | wrong)
    assert page.status_code == 422
    assert "errorlist" in page.content.decode()
    with tenant_scope(cast.tenant.pk):
        assert not Webhook.objects.exists()


def test_test_event_is_logged_and_sent_again(cast: Cast, client: Client) -> None:
    row = made(cast, client)
    url = one_url(cast, row.pk)
    assert client.post(url, {"action": "test"}).status_code == 302
    with tenant_scope(cast.tenant.pk):
        first = WebhookDelivery.objects.get()
        assert first.event == "ping"
    again = client.post(url, {"action": "redeliver", "delivery": first.pk}, follow=True)
    assert "still being sent" in again.content.decode()
    with tenant_scope(cast.tenant.pk):
        WebhookDelivery.objects.update(status="failed", response_status=500, error="It said 500.")
    assert "It said 500." in client.get(url).content.decode()
    client.post(url, {"action": "redeliver", "delivery": first.pk})
    with tenant_scope(cast.tenant.pk):
        second = WebhookDelivery.objects.exclude(pk=first.pk).get()
        assert second.event_id == first.event_id
        assert Job.objects.filter(kind="webhooks.deliver").count() == 2


def test_webhook_is_changed_switched_and_removed(cast: Cast, client: Client) -> None:
    row = made(cast, client)
    url = one_url(cast, row.pk)
    client.post(url, {"action": "save", **HOOK, "events": ["ingestion.failed"], "description": "x"})
    client.post(url, {"action": "disable"})
    with tenant_scope(cast.tenant.pk):
        row.refresh_from_db()
    assert (row.events, row.description, row.is_enabled) == (["ingestion.failed"], "x", False)
    assert client.post(url, {"action": "nothing"}).status_code == 400
    assert client.post(url, {"action": "remove"}).status_code == 302
    assert client.get(url).status_code == 404


def test_webhook_is_switched_off_after_failures_in_a_row_and_says_so(cast: Cast, client: Client) -> None:
    row = made(cast, client)
    who: Any = {"tenant": cast.tenant, "actor": cast.actor("admin")}

    def fail() -> None:
        delivery = webhook_ping(**who, pk=row.pk)
        with tenant_scope(cast.tenant.pk):
            delivery_failed(tenant_id=cast.tenant.pk, delivery_pk=delivery.pk)
            delivery_failed(tenant_id=cast.tenant.pk, delivery_pk=delivery.pk)  # told twice
            delivery.refresh_from_db()
            assert delivery.status == DeliveryStatus.FAILED
            row.refresh_from_db()

    for _ in range(MAX_FAILURES - 1):
        fail()
    assert (row.is_enabled, row.failures) == (True, MAX_FAILURES - 1)
    with tenant_scope(cast.tenant.pk):
        taken = WebhookDelivery.objects.first()
        assert taken is not None
        delivery_succeeded(taken)  # one that is taken begins the count anew
    for _ in range(MAX_FAILURES - 1):
        fail()
    assert row.is_enabled is True
    fail()
    states = (row.is_enabled, row.failures)
    assert states == (False, MAX_FAILURES)
    page = client.get(one_url(cast, row.pk)).content.decode()
    assert f"because {MAX_FAILURES} events in a row" in flat(page)
    assert "off after failures" in client.get(list_url(cast)).content.decode()
    with tenant_scope(cast.tenant.pk):
        assert AuditEvent.objects.filter(action="webhook.disable").count() == 1
    client.post(one_url(cast, row.pk), {"action": "enable"})
    with tenant_scope(cast.tenant.pk):
        row.refresh_from_db()
    assert (row.is_enabled, row.failures, row.disabled_at) == (True, 0, None)


def test_webhooks_of_another_workspace_do_not_exist(cast: Cast, client: Client) -> None:
    row = made(cast, client)
    stranger = Client()
    stranger.force_login(cast.user("outsider"), "django.contrib.auth.backends.ModelBackend")
    url = reverse("web:settings-webhook", args=[cast.other_tenant.slug, row.pk])
    for action in ("test", "remove", "disable"):
        assert stranger.post(url, {"action": action}).status_code == 404
