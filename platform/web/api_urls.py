"""REST of the workspace itself (included under /api/v1/, namespace ``api``)."""

from __future__ import annotations

from django.urls import path

from web import api_audit, api_budgets, api_erasure, api_notices, api_retention, api_settings, api_webhooks
from web.api import MembersView, MeView

urlpatterns = [
    path("me", MeView.as_view(), name="me"),
    path("me/notices", api_notices.NoticesView.as_view(), name="notices"),
    path("me/notices/read", api_notices.NoticesReadView.as_view(), name="notices-read"),
    path("me/notices/ways", api_notices.NoticeWaysView.as_view(), name="notices-ways"),
    path("members", MembersView.as_view(), name="members-list"),
    path("budgets", api_budgets.BudgetsView.as_view(), name="budgets-list"),
    path("budgets/rules", api_budgets.BudgetRulesView.as_view(), name="budgets-rules"),
    path("budgets/<int:pk>", api_budgets.BudgetView.as_view(), name="budgets-detail"),
    path("outgoing-hosts", api_settings.OutgoingHostsView.as_view(), name="outgoing-hosts"),
    path("erasure", api_erasure.ErasureView.as_view(), name="erasure"),
    path("legal-hold", api_erasure.HoldView.as_view(), name="legal-hold"),
    path("retention", api_settings.RetentionView.as_view(), name="retention"),
    path("retention/rules", api_retention.RetentionRulesView.as_view(), name="retention-rules"),
    path("retention/preview", api_retention.RetentionPreviewView.as_view(), name="retention-preview"),
    path("audit/events", api_audit.AuditEventsView.as_view(), name="audit-events"),
    path("webhooks", api_webhooks.WebhooksView.as_view(), name="webhooks-list"),
    path("webhooks/<int:pk>", api_webhooks.WebhookView.as_view(), name="webhooks-detail"),
    path("webhooks/<int:pk>/rotate", api_webhooks.RotateView.as_view(), name="webhooks-rotate"),
    path("webhooks/<int:pk>/ping", api_webhooks.PingView.as_view(), name="webhooks-ping"),
    path("webhooks/<int:pk>/deliveries", api_webhooks.DeliveriesView.as_view(), name="deliveries-list"),
    path(
        "webhooks/<int:pk>/deliveries/<int:delivery_pk>/redeliver",
        api_webhooks.RedeliverView.as_view(),
        name="deliveries-redeliver",
    ),
]
