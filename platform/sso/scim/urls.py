"""SCIM: /scim/v2/... (namespace ``scim``)."""

from __future__ import annotations

from django.urls import path

from sso.scim import views

app_name = "scim"
urlpatterns = [
    path("Users", views.users, name="users"),
    path("Users/<str:resource_id>", views.user, name="user"),
    path("Groups", views.groups, name="groups"),
    path("Groups/<str:resource_id>", views.group, name="group"),
    path("ServiceProviderConfig", views.config, name="config"),
    path("ResourceTypes", views.resource_types, name="resource-types"),
    path("ResourceTypes/<str:name>", views.resource_types, name="resource-type"),
    path("Schemas", views.schemas, name="schemas"),
    path("Schemas/<str:name>", views.schemas, name="schema"),
    path("<path:rest>", views.unknown, name="unknown"),
]
