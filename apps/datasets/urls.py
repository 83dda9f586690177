"""Pages of datasets, under /t/<slug>/datasets/."""

from __future__ import annotations

from django.urls import path

from apps.datasets.collect import views as collect_views
from apps.datasets.curation import streams as stream
from apps.datasets.curation import views as curation_views
from apps.datasets.generation import views as generation_views
from apps.datasets.licences import views as source_views
from apps.datasets.overview import views
from apps.datasets.versions import views as version_views

app_name = "datasets"
_EXPORT, _IMPORT = "<int:pk>/exports/<int:export_pk>/", "<int:pk>/imports/<int:import_pk>/"
_JOB = "<int:pk>/jobs/<int:job_pk>/"
urlpatterns = [
    path("<int:pk>/review/", curation_views.review, name="review"),
    path("<int:pk>/rows/<int:row_pk>/review/", curation_views.row_review, name="row-review"),
    path("<int:pk>/rows/<int:row_pk>/edit/", curation_views.row_edit, name="row-edit"),
    path("<int:pk>/exports/", curation_views.exports, name="exports"),
    path(_EXPORT, curation_views.export, name="export"),
    path(f"{_EXPORT}stream/", stream.export_stream, name="export-stream"),
    path(f"{_EXPORT}stop/", curation_views.export_stop, name="export-stop"),
    path(f"{_EXPORT}file/", curation_views.export_file, name="export-file"),
    path("<int:pk>/imports/", curation_views.imports, name="imports"),
    path(_IMPORT, curation_views.import_, name="import"),
    path(f"{_IMPORT}stream/", stream.import_stream, name="import-stream"),
    path(f"{_IMPORT}stop/", curation_views.import_stop, name="import-stop"),
    path(f"{_IMPORT}errors/", curation_views.import_errors, name="import-errors"),
    path("<int:pk>/checks/", curation_views.checks, name="checks"),
    path("<int:pk>/checks/stream/", stream.checks_stream, name="checks-stream"),
    path(
        "<int:pk>/checks/<int:check_pk>/apply/",
        curation_views.split_move,
        {"move": "apply"},
        name="split-apply",
    ),
    path(
        "<int:pk>/checks/<int:check_pk>/undo/", curation_views.split_move, {"move": "undo"}, name="split-undo"
    ),
    path("<int:pk>/checks/<int:check_pk>/stop/", curation_views.check_stop, name="check-stop"),
    path("<int:pk>/rows/settle/", curation_views.rows_settle, name="rows-settle"),
    path("<int:pk>/rows/split/", curation_views.rows_split, name="rows-split"),
    path("<int:pk>/sources/", source_views.sources, name="sources"),
    path("<int:pk>/versions/", version_views.versions, name="versions"),
    path("<int:pk>/versions/<int:number>/", version_views.version, name="version"),
    path("<int:pk>/versions/<int:older>/<int:newer>/", version_views.diff, name="diff"),
    path("from-collection/<int:pk>/", generation_views.from_collection, name="from-collection"),
    path("from-feedback/", collect_views.from_feedback, name="from-feedback"),
    path(
        "from-conversation/<int:conversation_pk>/", collect_views.from_conversation, name="from-conversation"
    ),
    path("", views.home, name="list"),
    path("<int:pk>/", views.detail, name="detail"),
    path("<int:pk>/rows/<int:row_pk>/", views.row, name="row"),
    path("<int:pk>/generate/", generation_views.generate, name="generate"),
    path(_JOB, generation_views.job, name="job"),
    path(f"{_JOB}stream/", stream.job_stream, name="job-stream"),
    path(f"{_JOB}pause/", generation_views.job_move, {"move": "pause"}, name="job-pause"),
    path(f"{_JOB}resume/", generation_views.job_move, {"move": "resume"}, name="job-resume"),
    path(f"{_JOB}stop/", generation_views.job_move, {"move": "stop"}, name="job-stop"),
]
