"""Addresses of curation: pages and REST, each included by those of datasets."""

from __future__ import annotations

from django.urls import path

from apps.datasets import collect_api, collect_views, source_views, stream, version_views
from apps.datasets import curation_api as api
from apps.datasets import curation_views as views

_EXPORT, _IMPORT = "<int:pk>/exports/<int:export_pk>/", "<int:pk>/imports/<int:import_pk>/"
PAGES = [
    path("<int:pk>/review/", views.review, name="review"),
    path("<int:pk>/rows/<int:row_pk>/review/", views.row_review, name="row-review"),
    path("<int:pk>/rows/<int:row_pk>/edit/", views.row_edit, name="row-edit"),
    path("<int:pk>/exports/", views.exports, name="exports"),
    path(_EXPORT, views.export, name="export"),
    path(f"{_EXPORT}stream/", stream.export_stream, name="export-stream"),
    path(f"{_EXPORT}file/", views.export_file, name="export-file"),
    path("<int:pk>/imports/", views.imports, name="imports"),
    path(_IMPORT, views.import_, name="import"),
    path(f"{_IMPORT}stream/", stream.import_stream, name="import-stream"),
    path(f"{_IMPORT}errors/", views.import_errors, name="import-errors"),
    path("<int:pk>/checks/", views.checks, name="checks"),
    path("<int:pk>/checks/stream/", stream.checks_stream, name="checks-stream"),
    path("<int:pk>/checks/<int:check_pk>/apply/", views.split_move, {"move": "apply"}, name="split-apply"),
    path("<int:pk>/checks/<int:check_pk>/undo/", views.split_move, {"move": "undo"}, name="split-undo"),
    path("<int:pk>/rows/settle/", views.rows_settle, name="rows-settle"),
    path("<int:pk>/rows/split/", views.rows_split, name="rows-split"),
    path("<int:pk>/sources/", source_views.sources, name="sources"),
    path("<int:pk>/versions/", version_views.versions, name="versions"),
    path("<int:pk>/versions/<int:number>/", version_views.version, name="version"),
    path("<int:pk>/versions/<int:older>/<int:newer>/", version_views.diff, name="diff"),
    path("from-feedback/", collect_views.from_feedback, name="from-feedback"),
    path(
        "from-conversation/<int:conversation_pk>/", collect_views.from_conversation, name="from-conversation"
    ),
]
API = [
    path("datasets/<int:pk>/exports", api.ExportsView.as_view(), name="dataset-exports-list"),
    path("dataset-exports/<int:pk>", api.ExportView.as_view(), name="dataset-exports-detail"),
    path("dataset-exports/<int:pk>/file", api.ExportFileView.as_view(), name="dataset-exports-file"),
    path("dataset-exports/<int:pk>/accept", api.ExportAcceptView.as_view(), name="dataset-exports-accept"),
    path("datasets/<int:pk>/imports", api.ImportsView.as_view(), name="dataset-imports-list"),
    path("dataset-imports/<int:pk>", api.ImportView.as_view(), name="dataset-imports-detail"),
    path("dataset-imports/<int:pk>/errors", api.ImportErrorsView.as_view(), name="dataset-imports-errors"),
    path("datasets/<int:pk>/checks", api.ChecksView.as_view(), name="dataset-checks-list"),
    path("dataset-checks/<int:pk>", api.CheckView.as_view(), name="dataset-checks-detail"),
    path("dataset-checks/<int:pk>/undo", api.SplitUndoView.as_view(), name="dataset-checks-undo"),
    path("datasets/<int:pk>/rows/<int:row_pk>/review", api.ReviewView.as_view(), name="dataset-rows-review"),
    path("datasets/<int:pk>/rows/settle", collect_api.SettleView.as_view(), name="dataset-rows-settle"),
    path("datasets/<int:pk>/rows/split", api.SplitAssignView.as_view(), name="dataset-rows-split"),
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
    path("datasets/<int:pk>/sources", collect_api.SourcesView.as_view(), name="dataset-sources-list"),
    path(
        "datasets/<int:pk>/versions/<int:older>/<int:newer>",
        api.DiffView.as_view(),
        name="dataset-versions-diff",
    ),
]
