"""Company sign-in outside of a workspace (/sso/...) and its settings inside (/t/<slug>/settings/sign-in/)."""

from __future__ import annotations

from django.urls import path

from sso import settings_views, views
from sso.saml import views as saml

app_name = "sso"
urlpatterns = [
    path("sso/", views.find, name="find"),
    path("sso/<slug:slug>/", views.workspace, name="workspace"),
    path("sso/<slug:slug>/<int:pk>/start", views.start, name="start"),
    path("sso/<slug:slug>/<int:pk>/answer", views.answer, name="answer"),
    path("sso/<slug:slug>/<int:pk>/acs", saml.acs, name="acs"),
    path("sso/<slug:slug>/<int:pk>/metadata", saml.metadata, name="metadata"),
    path("t/<slug:tenant_slug>/settings/sign-in/", settings_views.sign_in, name="settings-sign-in"),
]
