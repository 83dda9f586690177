"""Pages of collections, under /t/<slug>/collections/."""

from __future__ import annotations

from django.urls import path

from apps.collections.chunks import views as chunk_views
from apps.collections.collection import stream, upkeep_views, views
from apps.collections.documents import viewer
from apps.collections.documents import views as document_views
from apps.collections.imports import views as import_views
from apps.collections.repositories import urls as file_urls
from apps.collections.search import views as search_views

app_name = "collections"
_CHUNK = "<int:pk>/chunks/<int:chunk_pk>/"
_DOCUMENT = "<int:pk>/documents/<int:doc_pk>/"
urlpatterns = [
    path("", views.collections, name="list"),
    path("new/", views.create, name="create"),
    path("sample/", views.sample, name="sample"),
    path("<int:pk>/", views.detail, name="detail"),
    path("<int:pk>/settings/", views.settings, name="settings"),
    path("<int:pk>/delete/", views.delete, name="delete"),
    path("<int:pk>/imports/", import_views.imports, name="imports"),
    path("<int:pk>/imports/<int:import_pk>/", import_views.detail, name="import"),
    path("<int:pk>/imports/<int:import_pk>/cancel/", import_views.cancel, name="import-cancel"),
    path("<int:pk>/imports/<int:import_pk>/retry/", import_views.retry, name="import-retry"),
    path("<int:pk>/upload/", views.upload, name="upload"),
    path("<int:pk>/stream/", stream.collection_stream, name="stream"),
    *file_urls.PAGES,
    path("document-types/", upkeep_views.type_rules, name="type-rules"),
    path("codes/", upkeep_views.code_patterns, name="code-patterns"),
    path("text-recognition/", upkeep_views.recognition, name="recognition"),
    path("<int:pk>/check/", upkeep_views.check, name="check"),
    path("<int:pk>/reindex/", upkeep_views.collection_reindex, name="reindex"),
    path("<int:pk>/swap/", upkeep_views.swap_state, name="swap"),
    path("<int:pk>/swap/start/", upkeep_views.swap_start, name="swap-start"),
    path("<int:pk>/swap/<int:swap_pk>/", upkeep_views.swap_step, name="swap-step"),
    path("<int:pk>/snapshots/", upkeep_views.snapshot_create, name="snapshot-create"),
    path(
        "<int:pk>/snapshots/<int:snapshot_pk>/delete/", upkeep_views.snapshot_delete, name="snapshot-delete"
    ),
    path("<int:pk>/search/", search_views.search, name="search"),
    path("<int:pk>/search/cases/", search_views.case_save, name="case-save"),
    path("<int:pk>/search/cases/<int:case_pk>/delete/", search_views.case_delete, name="case-delete"),
    path("<int:pk>/bulk/", document_views.bulk, name="bulk"),
    path("<int:pk>/chunks/", chunk_views.chunks, name="chunks"),
    path(_CHUNK, chunk_views.chunk, name="chunk"),
    path(f"{_CHUNK}edit/", chunk_views.chunk_edit, name="chunk-edit"),
    path(f"{_CHUNK}disable/", chunk_views.chunk_disable, name="chunk-disable"),
    path(f"{_CHUNK}changes/<int:revision_pk>/restore/", chunk_views.chunk_restore, name="chunk-restore"),
    path(f"{_DOCUMENT}about/", document_views.about, name="document-about"),
    path(f"{_DOCUMENT}describe/", document_views.describe, name="document-describe"),
    path(f"{_DOCUMENT}access/", document_views.access, name="document-access"),
    path(f"{_DOCUMENT}restore/", document_views.restore, name="document-restore"),
    path(f"{_DOCUMENT}reindex/", document_views.reindex, name="document-reindex"),
    path(f"{_DOCUMENT}summarise/", document_views.summarise, name="document-summarise"),
    path(f"{_DOCUMENT}move/", document_views.move, name="document-move"),
    path(_DOCUMENT, viewer.document, name="document"),
    path(f"{_DOCUMENT}pages/<int:page>/image/", viewer.page_image, name="page-image"),
    path(f"{_DOCUMENT}retry/", views.document_retry, name="document-retry"),
    path(f"{_DOCUMENT}cancel/", views.document_cancel, name="document-cancel"),
    path(f"{_DOCUMENT}delete/", views.document_delete, name="document-delete"),
    path(f"{_DOCUMENT}erase/", views.document_erase, name="document-erase"),
    path(f"{_DOCUMENT}download/", viewer.download, name="document-download"),
]
