"""Pages of conversations, under /t/<slug>/chat/."""

from __future__ import annotations

from django.urls import path

from apps.conversations import views

app_name = "conversations"
urlpatterns = [
    path("", views.home, name="home"),
    path("new/", views.create, name="create"),
    path("<int:pk>/", views.detail, name="detail"),
    path("<int:pk>/turns/", views.turn_create, name="turn-create"),
    path("<int:pk>/turns/<int:turn_pk>/retry/", views.turn_retry, name="turn-retry"),
    path("<int:pk>/runs/<int:run_pk>/stream/", views.run_stream, name="run-stream"),
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
