"""Pages of conversations, under /t/<slug>/chat/."""

from __future__ import annotations

from django.urls import path

from apps.conversations import branch_views, trace_views, views

app_name = "conversations"
urlpatterns = [
    path("", views.home, name="home"),
    path("new/", views.create, name="create"),
    path("<int:pk>/", views.detail, name="detail"),
    path("<int:pk>/turns/", views.turn_create, name="turn-create"),
    path("<int:pk>/turns/<int:turn_pk>/retry/", views.turn_retry, name="turn-retry"),
    path("<int:pk>/turns/<int:turn_pk>/edit/", branch_views.turn_edit, name="turn-edit"),
    path(
        "<int:pk>/turns/<int:turn_pk>/regenerate/",
        branch_views.turn_regenerate,
        name="turn-regenerate",
    ),
    path(
        "<int:pk>/turns/<int:turn_pk>/continue/", branch_views.turn_continue, name="turn-continue"
    ),
    path("<int:pk>/turns/<int:turn_pk>/choose/", branch_views.turn_choose, name="turn-choose"),
    path("<int:pk>/turns/<int:turn_pk>/fork/", branch_views.turn_fork, name="turn-fork"),
    path("<int:pk>/runs/<int:run_pk>/stream/", views.run_stream, name="run-stream"),
    path("<int:pk>/runs/<int:run_pk>/trace/", trace_views.run_trace, name="run-trace"),
    path("<int:pk>/runs/<int:run_pk>/stop/", views.run_stop, name="run-stop"),
    path(
        "<int:pk>/runs/<int:run_pk>/decisions/<int:decision_pk>/",
        views.run_decide,
        name="run-decide",
    ),
    path("<int:pk>/sources/<slug:source>/", views.source, name="source"),
    path("<int:pk>/rename/", views.rename, name="rename"),
    path("<int:pk>/delete/", views.delete, name="delete"),
    path("<int:pk>/scope/", views.scope, name="scope"),
]
