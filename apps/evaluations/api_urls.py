"""REST of evaluations (included under /api/v1/, namespace ``api``)."""

from __future__ import annotations

from django.urls import path

from apps.evaluations import api

urlpatterns = [
    path("experiments", api.ExperimentsView.as_view(), name="experiments-list"),
    path("experiments/<int:pk>", api.ExperimentView.as_view(), name="experiments-detail"),
    path("experiments/<int:pk>/trials", api.TrialsView.as_view(), name="experiment-trials"),
    path("arms/<int:pk>/comparison", api.ComparisonView.as_view(), name="arms-compare"),
    path("arms/<int:pk>/gate", api.GateView.as_view(), name="arms-gate"),
    path("arms/<int:pk>/baseline", api.BaselineView.as_view(), name="arms-baseline"),
]
