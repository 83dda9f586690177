"""Pages of evaluations, under /t/<slug>/evaluations/."""

from __future__ import annotations

from django.urls import path

from apps.evaluations import compare_views, views

app_name = "evaluations"
urlpatterns = [
    path("", views.experiments, name="list"),
    path("new/", views.experiment_new, name="create"),
    path("compare/", compare_views.compare, name="compare"),
    path("promote/", compare_views.promote, name="promote"),
    path("<int:pk>/", views.experiment, name="detail"),
    path("<int:pk>/act/", views.experiment_act, name="act"),
]
