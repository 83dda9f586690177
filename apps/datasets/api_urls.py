"""REST of datasets (included under /api/v1/, namespace ``api``)."""

from __future__ import annotations

from django.urls import path

from apps.datasets import api, curation_urls

_DATASET, _JOB = "datasets/<int:pk>", "generations/<int:pk>"
urlpatterns = [
    *curation_urls.API,
    path("datasets", api.DatasetsView.as_view(), name="datasets-list"),
    path(_DATASET, api.DatasetView.as_view(), name="datasets-detail"),
    path(f"{_DATASET}/rows", api.RowsView.as_view(), name="dataset-rows-list"),
    path(f"{_DATASET}/rows/<int:row_pk>", api.RowView.as_view(), name="dataset-rows-detail"),
    path(f"{_DATASET}/versions", api.VersionsView.as_view(), name="dataset-versions-list"),
    path(f"{_DATASET}/versions/<int:number>", api.VersionView.as_view(), name="dataset-versions-detail"),
    path(f"{_DATASET}/generations", api.GenerationsView.as_view(), name="generations-list"),
    path(_JOB, api.GenerationView.as_view(), name="generations-detail"),
    path(f"{_JOB}/pause", api.GenerationPauseView.as_view(), name="generations-pause"),
    path(f"{_JOB}/resume", api.GenerationResumeView.as_view(), name="generations-resume"),
    path(f"{_JOB}/stop", api.GenerationStopView.as_view(), name="generations-stop"),
]
