"""REST of collections, documents, chunks and search (included under /api/v1/, namespace ``api``)."""

from __future__ import annotations

from django.urls import path

from apps.collections.chunks import api as chunk_api
from apps.collections.collection import api, upkeep_api
from apps.collections.documents import api as document_api
from apps.collections.documents import api as documents_api
from apps.collections.imports import api as import_api
from apps.collections.repositories import urls as file_urls
from apps.collections.search import api as search_api

urlpatterns = [
    *file_urls.API,
    path("collections", api.CollectionsView.as_view(), name="collections-list"),
    path("collections/<int:pk>", api.CollectionView.as_view(), name="collections-detail"),
    path("collections/<int:pk>/documents", api.DocumentsView.as_view(), name="documents-list"),
    path("collections/<int:pk>/imports", import_api.ImportsView.as_view(), name="imports-list"),
    path("imports/<int:pk>", import_api.ImportView.as_view(), name="imports-detail"),
    path("imports/<int:pk>/cancel", import_api.ImportCancelView.as_view(), name="imports-cancel"),
    path("imports/<int:pk>/retry", import_api.ImportRetryView.as_view(), name="imports-retry"),
    path("documents/<int:pk>", documents_api.DocumentView.as_view(), name="documents-detail"),
    path("documents/<int:pk>/erasure", documents_api.DocumentErasureView.as_view(), name="documents-erasure"),
    path("documents/<int:pk>/retry", documents_api.DocumentRetryView.as_view(), name="documents-retry"),
    path("documents/<int:pk>/cancel", documents_api.DocumentCancelView.as_view(), name="documents-cancel"),
    path("documents/<int:pk>/versions", document_api.VersionsView.as_view(), name="documents-versions"),
    path("documents/<int:pk>/restore", document_api.RestoreView.as_view(), name="documents-restore"),
    path("documents/<int:pk>/reindex", document_api.ReindexView.as_view(), name="documents-reindex"),
    path("documents/<int:pk>/move", document_api.MoveView.as_view(), name="documents-move"),
    path("documents/<int:pk>/access", document_api.AccessView.as_view(), name="documents-access"),
    path("documents/<int:pk>/chunks", chunk_api.DocumentChunksView.as_view(), name="documents-chunks"),
    path(
        "documents/<int:pk>/statistics",
        chunk_api.DocumentStatisticsView.as_view(),
        name="documents-statistics",
    ),
    path("collections/<int:pk>/chunks", chunk_api.ChunksView.as_view(), name="chunks-list"),
    path(
        "collections/<int:pk>/statistics",
        chunk_api.CollectionStatisticsView.as_view(),
        name="chunks-statistics",
    ),
    path("collections/<int:pk>/reader", chunk_api.ReaderView.as_view(), name="chunks-reader"),
    path("chunks/<int:pk>", chunk_api.ChunkView.as_view(), name="chunks-detail"),
    path("chunks/<int:pk>/links", chunk_api.ChunkLinksView.as_view(), name="chunks-links"),
    path("chunks/<int:pk>/chain", chunk_api.ChunkChainView.as_view(), name="chunks-chain"),
    path("chunks/<int:pk>/neighbours", chunk_api.ChunkNeighboursView.as_view(), name="chunks-neighbours"),
    path("chunks/<int:pk>/graph", chunk_api.ChunkGraphView.as_view(), name="chunks-graph"),
    path("chunks/<int:pk>/history", chunk_api.ChunkHistoryView.as_view(), name="chunks-history"),
    path("chunk-changes/<int:pk>/restore", chunk_api.ChunkRestoreView.as_view(), name="chunks-restore"),
    path(
        "collections/<int:pk>/reindex",
        upkeep_api.CollectionReindexView.as_view(),
        name="collections-reindex",
    ),
    path("collections/<int:pk>/check", upkeep_api.CheckView.as_view(), name="collections-check"),
    path("collections/<int:pk>/swaps", upkeep_api.SwapsView.as_view(), name="swaps-list"),
    path("swaps/<int:pk>", upkeep_api.SwapView.as_view(), name="swaps-detail"),
    path("document-types", document_api.TypeRulesView.as_view(), name="document-types"),
    path("code-patterns", upkeep_api.CodePatternsView.as_view(), name="code-patterns"),
    path(
        "document-types/example", document_api.TypeRulesExampleView.as_view(), name="document-types-example"
    ),
    path("collections/<int:pk>/snapshots", search_api.SnapshotsView.as_view(), name="snapshots-list"),
    path("snapshots/<int:pk>", search_api.SnapshotView.as_view(), name="snapshots-detail"),
    path("collections/<int:pk>/search-cases", search_api.SearchCasesView.as_view(), name="search-cases-list"),
    path("search-cases/<int:pk>", search_api.SearchCaseView.as_view(), name="search-cases-detail"),
    path("search", search_api.SearchView.as_view(), name="search"),
]
