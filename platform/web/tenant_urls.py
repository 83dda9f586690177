"""Pages of the shell inside a workspace: /t/<slug>/... (namespace ``web``)."""

from __future__ import annotations

from django.urls import path

from web.views import (
    audit,
    audit_stream,
    budgets,
    connections,
    erasure,
    home,
    keys,
    members,
    models,
    notices,
    outgoing,
    retention,
    search,
    webhooks,
)

urlpatterns = [
    path("", home.tenant_home, name="tenant-home"),
    path("palette/", search.palette, name="palette"),
    path("notices/", notices.notices, name="notices"),
    path("notices/read/", notices.read, name="notices-read"),
    path("leave/", members.leave, name="leave"),
    path("settings/members/", members.members, name="settings-members"),
    path("settings/invites/", members.invites, name="settings-invites"),
    path("settings/keys/", keys.keys, name="settings-keys"),
    path("settings/connections/", connections.connections, name="settings-connections"),
    path("settings/models/", models.models, name="settings-models"),
    path("settings/webhooks/", webhooks.webhooks, name="settings-webhooks"),
    path("settings/webhooks/<int:pk>/", webhooks.webhook, name="settings-webhook"),
    path("settings/budgets/", budgets.budgets, name="settings-budgets"),
    path("settings/outgoing/", outgoing.outgoing, name="settings-outgoing"),
    path("settings/retention/", retention.retention, name="settings-retention"),
    path("settings/erasure/", erasure.erasure, name="settings-erasure"),
    path("settings/notices/", notices.choices, name="settings-notices"),
    path("settings/audit/", audit.audit, name="settings-audit"),
    path("settings/audit/streams/", audit_stream.streams, name="settings-audit-stream"),
]
