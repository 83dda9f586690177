"""Pages of the call log and of what it tells, under /t/<slug>/tools/ (included by ``apps.tools.urls``)."""

from __future__ import annotations

from django.urls import path

from apps.tools.call_log import views as log_views
from apps.tools.replay import views as replay_views

urlpatterns = [
    path("calls/", log_views.calls, name="calls"),
    path("calls/file/", log_views.calls_file, name="calls-file"),
    path("calls/<int:pk>/replay/", replay_views.call, name="call-replay"),
    path("calls/runs/<int:pk>/replay/", replay_views.run, name="run-replay"),
    path("reads/", log_views.reads, name="reads"),
    path("calls/<int:pk>/", log_views.call, name="call"),
]
