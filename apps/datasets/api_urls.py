"""REST of datasets (included under /api/v1/, namespace ``api``)."""

from __future__ import annotations

from django.urls import path

from apps.datasets.collect import api as collect_api
from apps.datasets.curation import api as curation_api
from apps.datasets.generation import api as generation_api
from apps.datasets.licences import api as source_api
from apps.datasets.rows import api
from apps.datasets.versions import api as version_api

_DATASET, _JOB = "datasets/<int:pk>", "generations/<int:pk>"
urlpatterns = [
    path("datasets/<int:pk>/exports", curation_api.ExportsView.as_view(), name="dataset-exports-list"),
    path("dataset-exports/<int:pk>", curation_api.ExportView.as_view(), name="dataset-exports-detail"),
    path("dataset-exports/<int:pk>/stop", curation_api.ExportStopView.as_view(), name="dataset-exports-stop"),
    path("dataset-exports/<int:pk>/file", curation_api.ExportFileView.as_view(), name="dataset-exports-file"),
    path(
        "dataset-exports/<int:pk>/accept",
        curation_api.ExportAcceptView.as_view(),
        name="dataset-exports-accept",
    ),
    path("datasets/<int:pk>/imports", curation_api.ImportsView.as_view(), name="dataset-imports-list"),
    path("dataset-imports/<int:pk>", curation_api.ImportView.as_view(), name="dataset-imports-detail"),
    path("dataset-imports/<int:pk>/stop", curation_api.ImportStopView.as_view(), name="dataset-imports-stop"),
    path(
        "dataset-imports/<int:pk>/errors",
        curation_api.ImportErrorsView.as_view(),
        name="dataset-imports-errors",
    ),
    path("datasets/<int:pk>/checks", curation_api.ChecksView.as_view(), name="dataset-checks-list"),
    path("dataset-checks/<int:pk>", curation_api.CheckView.as_view(), name="dataset-checks-detail"),
    path("dataset-checks/<int:pk>/stop", curation_api.CheckStopView.as_view(), name="dataset-checks-stop"),
    path("dataset-checks/<int:pk>/undo", curation_api.SplitUndoView.as_view(), name="dataset-checks-undo"),
    path(
        "datasets/<int:pk>/rows/<int:row_pk>/review",
        curation_api.ReviewView.as_view(),
        name="dataset-rows-review",
    ),
    path("datasets/<int:pk>/rows/settle", curation_api.SettleView.as_view(), name="dataset-rows-settle"),
    path("datasets/<int:pk>/rows/split", curation_api.SplitAssignView.as_view(), name="dataset-rows-split"),
    path(
        "datasets/<int:pk>/rows/from-conversation",
        collect_api.FromConversationView.as_view(),
        name="dataset-rows-from-conversation",
    ),
    path(
        "datasets/<int:pk>/rows/from-feedback",
        collect_api.FromFeedbackView.as_view(),
        name="dataset-rows-from-feedback",
    ),
    path("datasets/<int:pk>/sources", source_api.SourcesView.as_view(), name="dataset-sources-list"),
    path(
        "datasets/<int:pk>/versions/<int:older>/<int:newer>",
        version_api.DiffView.as_view(),
        name="dataset-versions-diff",
    ),
    path("datasets", api.DatasetsView.as_view(), name="datasets-list"),
    path(_DATASET, api.DatasetView.as_view(), name="datasets-detail"),
    path(f"{_DATASET}/rows", api.RowsView.as_view(), name="dataset-rows-list"),
    path(f"{_DATASET}/rows/<int:row_pk>", api.RowView.as_view(), name="dataset-rows-detail"),
    path(f"{_DATASET}/versions", version_api.VersionsView.as_view(), name="dataset-versions-list"),
    path(
        f"{_DATASET}/versions/<int:number>", version_api.VersionView.as_view(), name="dataset-versions-detail"
    ),
    path(f"{_DATASET}/generations", generation_api.GenerationsView.as_view(), name="generations-list"),
    path(_JOB, generation_api.GenerationView.as_view(), name="generations-detail"),
    path(f"{_JOB}/pause", generation_api.GenerationPauseView.as_view(), name="generations-pause"),
    path(f"{_JOB}/resume", generation_api.GenerationResumeView.as_view(), name="generations-resume"),
    path(f"{_JOB}/stop", generation_api.GenerationStopView.as_view(), name="generations-stop"),
]
