"""Pages of the shell, outside and (``web.tenant_urls``) inside a workspace."""

from __future__ import annotations

from django.urls import include, path

from web.views import health, home, members

app_name = "web"
urlpatterns = [
    path("", home.home, name="home"),
    path("profile/", home.profile, name="profile"),
    path("workspaces/new/", home.create_tenant, name="tenant-create"),
    path("invite/<str:token>/", members.accept_invite, name="invite-accept"),
    path("healthz", health.healthz, name="healthz"),
    path("readyz", health.readyz, name="readyz"),
    path("t/<slug:tenant_slug>/", include("web.tenant_urls")),
]
