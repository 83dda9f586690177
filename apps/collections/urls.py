"""Pages of collections, under /t/<slug>/collections/."""

from __future__ import annotations

from django.urls import path

from apps.collections import stream, viewer, views

app_name = "collections"
_DOCUMENT = "<int:pk>/documents/<int:doc_pk>/"
urlpatterns = [
    path("", views.collections, name="list"),
    path("new/", views.create, name="create"),
    path("<int:pk>/", views.detail, name="detail"),
    path("<int:pk>/settings/", views.settings, name="settings"),
    path("<int:pk>/delete/", views.delete, name="delete"),
    path("<int:pk>/upload/", views.upload, name="upload"),
    path("<int:pk>/stream/", stream.collection_stream, name="stream"),
    path("<int:pk>/search/", views.search, name="search"),
    path("<int:pk>/chunks/", views.chunks, name="chunks"),
    path(_DOCUMENT, viewer.document, name="document"),
    path(f"{_DOCUMENT}pages/<int:page>/image/", viewer.page_image, name="page-image"),
    path(f"{_DOCUMENT}retry/", views.document_retry, name="document-retry"),
    path(f"{_DOCUMENT}cancel/", views.document_cancel, name="document-cancel"),
    path(f"{_DOCUMENT}delete/", views.document_delete, name="document-delete"),
    path(f"{_DOCUMENT}download/", viewer.download, name="document-download"),
]
