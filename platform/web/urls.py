"""Pages of the shell, outside and (``web.tenant_urls``) inside a workspace."""

from __future__ import annotations

from django.urls import include, path

from web.oauth import views as oauth
from web.views import erasure, guide, health, home, language, members, web_app

app_name = "web"
urlpatterns = [
    path("", home.home, name="home"),
    path("profile/", home.profile, name="profile"),
    path("profile/erasure/", erasure.account_erasure, name="account-erasure"),
    path("help/", guide.guide, name="help"),
    path("help/<slug:name>/", guide.guide, name="help-page"),
    path("help/pictures/<str:name>", guide.picture, name="help-picture"),
    path("language/", language.language, name="language"),
    path("workspaces/new/", home.create_tenant, name="tenant-create"),
    path("invite/<str:token>/", members.accept_invite, name="invite-accept"),
    path("manifest.webmanifest", web_app.manifest, name="manifest"),
    path("sw.js", web_app.worker, name="worker"),
    path("offline/", web_app.offline, name="offline"),
    path("healthz", health.healthz, name="healthz"),
    path("readyz", health.readyz, name="readyz"),
    path(
        ".well-known/oauth-protected-resource/t/<slug:tenant_slug>/mcp", oauth.resource, name="oauth-resource"
    ),
    path(".well-known/oauth-authorization-server/t/<slug:tenant_slug>", oauth.server, name="oauth-server"),
    path("t/<slug:tenant_slug>/oauth/authorize", oauth.authorize, name="oauth-authorize"),
    path("t/<slug:tenant_slug>/oauth/register", oauth.register, name="oauth-register"),
    path("t/<slug:tenant_slug>/oauth/token", oauth.token, name="oauth-token"),
    path("t/<slug:tenant_slug>/oauth/revoke", oauth.revoke, name="oauth-revoke"),
    path("t/<slug:tenant_slug>/", include("web.tenant_urls")),
]
