"""Every URL. tests/permissions has a row for each; a new one without a row fails there."""

from __future__ import annotations

from django.conf import settings
from django.contrib import admin
from django.urls import URLPattern, URLResolver, include, path
from django.views.generic import TemplateView
from drf_spectacular.views import SpectacularAPIView

from apps.tools.mcp_server.view import McpView
from config.operate import status
from web.drf import schema  # noqa: F401 - registers how keys and sessions are documented
from web.views.api_docs import api_docs
from web.views.sign_in import login

urlpatterns: list[URLPattern | URLResolver] = [
    path("admin/", admin.site.urls),
    path("accounts/2fa/webauthn/", include("web.passkeys.urls")),  # before allauth's, in their place
    path("accounts/login/", login, name="account_login"),
    path("accounts/", include("allauth.urls")),
    path("api/v1/", include("config.api_urls")),
    path("api/schema/", SpectacularAPIView.as_view(), name="api-schema"),
    path("api/docs/", api_docs, name="api-docs"),
    path("t/<slug:tenant_slug>/collections/", include("apps.collections.urls")),
    path("t/<slug:tenant_slug>/chat/", include("apps.conversations.urls")),
    path("t/<slug:tenant_slug>/assistants/", include("apps.conversations.assistant_urls")),
    path("t/<slug:tenant_slug>/datasets/", include("apps.datasets.urls")),
    path("t/<slug:tenant_slug>/tools/", include("apps.tools.urls")),
    path("t/<slug:tenant_slug>/evaluations/", include("apps.evaluations.urls")),
    path("t/<slug:tenant_slug>/mcp", McpView.as_view(), name="mcp"),
    path("t/<slug:tenant_slug>/usage/", include("apps.tools.usage.urls")),
    path("operate/", include("config.operate.urls")),
    path("status", include(([path("", status.page, name="page")], "status"))),
    path("scim/v2/", include("sso.scim.urls")),
    path("", include("sso.urls")),
    path("", include("web.urls")),
]

if settings.STYLE_GUIDE:  # development only: every component of the design system on one page
    urlpatterns.append(path("styleguide/", TemplateView.as_view(template_name="styleguide.html")))

handler400 = "web.errors.bad_request"
handler403 = "web.errors.permission_denied"
handler404 = "web.errors.not_found"
handler429 = "web.errors.too_many_requests"  # allauth's limits ask for it
handler500 = "web.errors.server_error"
