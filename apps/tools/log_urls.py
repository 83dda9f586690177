"""Pages of the call log and of what it tells, under /t/<slug>/tools/ (included by ``apps.tools.urls``)."""

from __future__ import annotations

from django.urls import path

from apps.tools import log_views

urlpatterns = [
    path("calls/", log_views.calls, name="calls"),
    path("calls/file/", log_views.calls_file, name="calls-file"),
    path("calls/<int:pk>/", log_views.call, name="call"),
]
