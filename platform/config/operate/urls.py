"""The operator's pages: /operate/ (namespace ``operate``)."""

from __future__ import annotations

from django.urls import path

from config.operate import views

app_name = "operate"
urlpatterns = [
    path("", views.overview, name="overview"),
    path("retry/", views.retry, name="retry"),
]
