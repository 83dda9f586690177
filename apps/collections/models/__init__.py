"""Collections, their documents, what search needs, and what people and tools did to them."""

from apps.collections.models.chunk import Chunk, ChunkKind, ChunkLink, ChunkRevision, CodeEdge, EdgeKind
from apps.collections.models.collection import Collection, EmbeddingSpace, LinkOrigin, RerankerChoice
from apps.collections.models.document import (
    TYPE_BY_HAND,
    Document,
    DocumentAccess,
    DocumentSource,
    DocumentStatus,
    Page,
    Stage,
)
from apps.collections.models.embedder import InstalledEmbedder
from apps.collections.models.imports import CodePatterns, DocumentTypeRules, Import, ImportStatus
from apps.collections.models.recognition import Recognition
from apps.collections.models.repository import Repository, RepositoryPack
from apps.collections.models.search_rows import (
    TERM_DIMENSIONS,
    ChunkTerms,
    CollectionSnapshot,
    Embedding,
    Posting,
    SearchCase,
    SearchIndex,
    SearchIndexStatus,
    SpaceSwap,
    TermFrequency,
)
from apps.collections.models.source_files import FileBatch, FileBlob, FileRevision

__all__ = [
    "TERM_DIMENSIONS",
    "TYPE_BY_HAND",
    "Chunk",
    "ChunkKind",
    "ChunkLink",
    "ChunkRevision",
    "ChunkTerms",
    "CodeEdge",
    "CodePatterns",
    "Collection",
    "CollectionSnapshot",
    "Document",
    "DocumentAccess",
    "DocumentSource",
    "DocumentStatus",
    "DocumentTypeRules",
    "EdgeKind",
    "Embedding",
    "EmbeddingSpace",
    "FileBatch",
    "FileBlob",
    "FileRevision",
    "Import",
    "ImportStatus",
    "InstalledEmbedder",
    "LinkOrigin",
    "Page",
    "Posting",
    "Recognition",
    "Repository",
    "RepositoryPack",
    "RerankerChoice",
    "SearchCase",
    "SearchIndex",
    "SearchIndexStatus",
    "SpaceSwap",
    "Stage",
    "TermFrequency",
]
