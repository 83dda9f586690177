"""The permission rows of a workspace itself: its home, settings, webhooks, budgets and usage."""

from __future__ import annotations

from datetime import timedelta

from django.utils import timezone

from erasure.models import Erasure, LegalHold
from tenancy.scope import platform_scope
from tests.permissions.rows.common import Row, pk_of, send
from tests.permissions.world import Side
from web.oauth.clients import client_register

WEBHOOK = {"pk": "webhooks.Webhook"}
BUDGET = {"pk": "budgets.Budget"}
DELIVERY = {"pk": "webhooks.Webhook", "delivery_pk": "webhooks.WebhookDelivery"}


def _connected(side: Side, role: str) -> None:
    key = side.row("tenancy.ApiKey", role)
    with platform_scope():
        type(key).objects.filter(pk=key.pk).update(client_id="app", user=side.user(role), revoked_at=None)


def _authorization(side: Side, role: str) -> dict[str, str]:
    uri = "https://app.example/cb"
    client = client_register(side.tenant.slug, {"redirect_uris": [uri]})
    return {
        "client_id": client.client_id,
        "redirect_uri": uri,
        "response_type": "code",
        "code_challenge": "c" * 43,
        "code_challenge_method": "S256",
    }


def hold_none(side: Side, role: str) -> None:
    """No hold and no erasure is open."""
    with platform_scope():
        LegalHold.objects.filter(tenant=side.tenant).update(released_at=timezone.now())
    Erasure.objects.filter(kind="workspace", subject=side.tenant.pk).delete()


def hold_open(side: Side, role: str) -> None:
    hold_none(side, role)
    with platform_scope():
        LegalHold.objects.create(tenant=side.tenant, reason="Case 12")


def erasure_asked(side: Side, role: str) -> None:
    hold_none(side, role)
    Erasure.objects.create(
        kind="workspace", subject=side.tenant.pk, due_at=timezone.now() + timedelta(days=7)
    )


def _delivered(side: Side, role: str) -> None:
    row = side.row("webhooks.WebhookDelivery", role)
    row.status, row.payload = "delivered", {"data": {}}
    with platform_scope():
        row.save()


PORTAL: tuple[Row, ...] = (
    Row("web:tenant-home", ok=302),
    Row("web:palette", action="tenant.read"),
    Row("web:leave", "POST", ok=302),
    Row("web:settings-members", action="member.read"),
    Row(
        "web:settings-members",
        "POST",
        "member.manage",
        data=send(action="role", role="viewer", membership=pk_of("tenancy.Membership")),
        ok=302,
        body_ids=404,
    ),
    Row(
        "web:settings-members",
        "POST",
        "member.manage",
        data=send(action="remove", membership=pk_of("tenancy.Membership")),
        ok=302,
        body_ids=404,
    ),
    Row(
        "web:settings-members",
        "POST",
        "member.manage",
        data=send(action="revoke", invite=pk_of("tenancy.Invite")),
        ok=302,
        body_ids=404,
    ),
    Row("web:settings-invites", action="member.manage", ok=302),
    Row("web:settings-invites", "POST", "member.manage", data=send(email="new@example.org", role="viewer")),
    Row("web:settings-keys", action="key.manage"),
    Row(
        "web:settings-keys",
        "POST",
        "key.manage",
        data=send(action="create", name="k", scopes="search.run", expires="30"),
    ),
    Row(
        "web:settings-keys",
        "POST",
        "key.manage",
        data=send(action="revoke", key=pk_of("tenancy.ApiKey")),
        ok=302,
        body_ids=404,
    ),
    Row(
        "web:settings-keys",
        "POST",
        "key.manage",
        data=send(action="rotate", key=pk_of("tenancy.ApiKey")),
        body_ids=404,
    ),
    Row("web:settings-connections", action="app.connect"),
    Row(
        "web:settings-connections",
        "POST",
        "app.connect",
        data=send(connection=pk_of("tenancy.ApiKey")),
        ok=302,
        before=_connected,
        body_ids=404,
    ),
    Row("web:oauth-authorize", action="app.connect", data=_authorization),
    Row("web:oauth-authorize", "POST", "app.connect", ok=400),  # its question stands in the address
    Row("web:settings-models", action="credential.manage"),
    Row(
        "web:settings-models",
        "POST",
        "credential.manage",
        data=send(action="save", provider="openai", secret="sk-0123456789abcdef"),
        ok=302,
    ),
    Row(
        "web:settings-models",
        "POST",
        "credential.manage",
        data=send(action="remove", credential=pk_of("tenancy.ProviderCredential")),
        ok=302,
        body_ids=404,
    ),
    Row(
        "web:settings-models",
        "POST",
        "credential.manage",
        data=send(action="model_save", **{"model-name": "openai/gpt-6-sol"}),
        ok=302,
    ),
    Row(
        "web:settings-models",
        "POST",
        "credential.manage",
        data=send(action="model_hide", model="openai/gpt-6-sol"),
        ok=302,
    ),
    Row(
        "web:settings-models",
        "POST",
        "credential.manage",
        data=send(action="model_forget", entry=pk_of("tenancy.ModelEntry")),
        ok=302,
        body_ids=404,
    ),
    Row("web:settings-audit", action="audit.read"),
    Row("web:settings-audit-stream", action="tenant.manage"),
    Row(
        "web:settings-audit-stream",
        "POST",
        "tenant.manage",
        data=send(action="add", url="https://93.184.216.34/siem"),
    ),
    Row(
        "web:settings-audit-stream",
        "POST",
        "tenant.manage",
        data=send(action="remove", pk=pk_of("audit.AuditStream")),
        ok=302,
        body_ids=404,
    ),
    Row("web:settings-budgets", action="audit.read"),
    Row(
        "web:settings-budgets",
        "POST",
        "budget.manage",
        data=send(action="set", whose="tenant", amount_usd="5", period="day"),
        ok=302,
    ),
    Row(
        "web:settings-budgets",
        "POST",
        "budget.manage",
        data=send(action="remove", budget=pk_of("budgets.Budget")),
        ok=302,
        body_ids=404,
    ),
    Row("web:settings-outgoing", action="tenant.manage"),
    Row("web:settings-outgoing", "POST", "tenant.manage", data=send(hosts="api.example.com"), ok=302),
    Row("sso:settings-sign-in", action="tenant.manage"),
    Row(
        "sso:settings-sign-in",
        "POST",
        "tenant.manage",
        data=send(action="domain", **{"domain-domain": "new.example"}),
        ok=302,
    ),
    *(
        Row(
            "sso:settings-sign-in",
            "POST",
            "tenant.manage",
            data=send(action=action, **{field: pk_of(label)}),
            ok=302,
            body_ids=404,
        )
        for action, field, label in (
            ("domain_remove", "domain", "sso.SsoDomain"),
            ("connection_remove", "connection", "sso.SsoConnection"),
            ("token_revoke", "token", "sso.ScimToken"),
        )
    ),
    Row("web:settings-retention", action="retention.manage"),
    Row("web:settings-retention", "POST", "retention.manage", data=send(documents="30", do="save"), ok=302),
    Row("web:settings-erasure", action="tenant.manage"),
    Row(
        "web:settings-erasure",
        "POST",
        "tenant.manage",
        data=send(do="hold", reason="Case 12"),
        before=hold_none,
        ok=302,
    ),
    Row("usage:page", action="run.read"),
    Row("web:notices", action="notice.read"),
    Row("web:notices-read", "POST", "notice.read", ok=302),
    Row("web:settings-notices", action="notice.read"),
    Row("web:settings-notices", "POST", "notice.read", data=send(way="work:portal"), ok=302),
    Row("web:settings-webhooks", action="webhook.manage"),
    Row(
        "web:settings-webhooks",
        "POST",
        "webhook.manage",
        data=send(url="https://93.184.216.34/hook", events="run.finished"),
    ),
    Row("web:settings-webhook", action="webhook.manage", ids=WEBHOOK),
    Row("web:settings-webhook", "POST", "webhook.manage", WEBHOOK, data=send(action="test"), ok=302),
)


API: tuple[Row, ...] = (
    Row("api:me", action="tenant.read"),
    Row("api:members-list", action="member.read"),
    Row("api:budgets-list", action="audit.read"),
    Row("api:budgets-list", "POST", "budget.manage", data=send(kind="member", amount_usd="5"), ok=201),
    Row("api:budgets-detail", "GET", "audit.read", BUDGET),
    Row("api:budgets-detail", "DELETE", "budget.manage", BUDGET, ok=204),
    Row("api:budgets-rules", action="audit.read"),
    Row("api:budgets-rules", "PUT", "budget.manage", data=send(refuses_unpriced=True)),
    Row("api:outgoing-hosts", action="tool.manage"),
    Row("api:outgoing-hosts", "PUT", "tenant.manage", data=send(hosts=["api.example.com"])),
    Row("api:erasure", action="tenant.manage"),
    Row(
        "api:erasure",
        "POST",
        "tenant.manage",
        data=lambda side, role: {"confirm": side.tenant.slug},
        before=hold_none,
    ),
    Row("api:erasure", "DELETE", "tenant.manage", before=erasure_asked),
    Row("api:legal-hold", action="audit.read"),
    Row("api:legal-hold", "PUT", "tenant.manage", data=send(reason="Case 12"), before=hold_none),
    Row("api:legal-hold", "DELETE", "tenant.manage", before=hold_open),
    Row("api:retention", action="audit.read"),
    Row("api:retention", "PUT", "retention.manage", data=send(days=30)),
    Row("api:retention-rules", action="audit.read"),
    Row(
        "api:retention-rules",
        "PUT",
        "retention.manage",
        data=send(rules=[{"kind": "documents", "days": 30}]),
    ),
    Row("api:retention-preview", action="audit.read", data=send(kind="documents", days=30)),
    Row("api:audit-events", action="audit.read"),
    Row("api:notices", action="notice.read"),
    Row("api:notices-read", "POST", "notice.read"),
    Row("api:notices-ways", action="notice.read"),
    Row("api:notices-ways", "PATCH", "notice.read", data=send(work=["portal"])),
    Row("api:webhooks-list", action="webhook.manage"),
    Row(
        "api:webhooks-list",
        "POST",
        "webhook.manage",
        data=send(url="https://example.org/hook", events=["run.finished"]),
        ok=201,
    ),
    Row("api:webhooks-detail", "GET", "webhook.manage", WEBHOOK),
    Row("api:webhooks-detail", "PATCH", "webhook.manage", WEBHOOK, data=send(is_enabled=False)),
    Row("api:webhooks-detail", "DELETE", "webhook.manage", WEBHOOK, ok=204),
    Row("api:webhooks-rotate", "POST", "webhook.manage", WEBHOOK),
    Row("api:webhooks-ping", "POST", "webhook.manage", WEBHOOK, ok=202),
    Row("api:deliveries-list", "GET", "webhook.manage", WEBHOOK),
    Row("api:deliveries-redeliver", "POST", "webhook.manage", DELIVERY, ok=202, before=_delivered),
    Row("api:usage", action="run.read"),
)
