"""Pages of datasets, under /t/<slug>/datasets/."""

from __future__ import annotations

from django.urls import path

from apps.datasets import curation_urls, stream, views

app_name = "datasets"
_JOB = "<int:pk>/jobs/<int:job_pk>/"
urlpatterns = [
    *curation_urls.PAGES,
    path("", views.home, name="list"),
    path("<int:pk>/", views.detail, name="detail"),
    path("<int:pk>/rows/<int:row_pk>/", views.row, name="row"),
    path("<int:pk>/generate/", views.generate, name="generate"),
    path(_JOB, views.job, name="job"),
    path(f"{_JOB}stream/", stream.job_stream, name="job-stream"),
    path(f"{_JOB}pause/", views.job_move, {"move": "pause"}, name="job-pause"),
    path(f"{_JOB}resume/", views.job_move, {"move": "resume"}, name="job-resume"),
    path(f"{_JOB}stop/", views.job_move, {"move": "stop"}, name="job-stop"),
]
