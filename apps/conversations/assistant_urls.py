"""Pages of assistants, under /t/<slug>/assistants/."""

from __future__ import annotations

from django.urls import path

from apps.conversations.assistants import views
from apps.conversations.chat import assistant_trial

app_name = "assistants"
urlpatterns = [
    path("", views.home, name="list"),
    path("examples/<slug:name>/", views.example, name="example"),
    path("new/", views.create, name="create"),
    path("<int:pk>/", views.detail, name="detail"),
    path("<int:pk>/edit/", views.edit, name="edit"),
    path("<int:pk>/publish/", views.publish, name="publish"),
    path("<int:pk>/rename/", views.rename, name="rename"),
    path("<int:pk>/archive/", views.archive, name="archive"),
    path("<int:pk>/try/", assistant_trial.attempt, name="try"),
    path("<int:pk>/versions/<int:number>/", views.version, name="version"),
]
