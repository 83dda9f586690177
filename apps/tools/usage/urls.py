"""The page of usage, /t/<slug>/usage/."""

from __future__ import annotations

from django.urls import path

from apps.tools.usage.views import usage

app_name = "usage"
urlpatterns = [path("", usage, name="page")]
