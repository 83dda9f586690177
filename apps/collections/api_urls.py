"""REST of collections, documents, chunks and search (included under /api/v1/, namespace ``api``)."""

from __future__ import annotations

from django.urls import path

from apps.collections import api

urlpatterns = [
    path("collections", api.CollectionsView.as_view(), name="collections-list"),
    path("collections/<int:pk>", api.CollectionView.as_view(), name="collections-detail"),
    path("collections/<int:pk>/documents", api.DocumentsView.as_view(), name="documents-list"),
    path("documents/<int:pk>", api.DocumentView.as_view(), name="documents-detail"),
    path("documents/<int:pk>/retry", api.DocumentRetryView.as_view(), name="documents-retry"),
    path("documents/<int:pk>/cancel", api.DocumentCancelView.as_view(), name="documents-cancel"),
    path("chunks/<int:pk>", api.ChunkView.as_view(), name="chunks-detail"),
    path("search", api.SearchView.as_view(), name="search"),
]
