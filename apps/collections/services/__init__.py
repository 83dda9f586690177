"""Writes of collections and documents. Each is one transaction: permission, rows, audit, then jobs and files on commit."""

from apps.collections.services.collection import (
    CHUNK_SIZES,
    collection_create,
    collection_delete,
    collection_update,
)
from apps.collections.services.document import (
    Uploaded,
    document_cancel,
    document_delete,
    document_name,
    document_retry,
    document_upload,
)

__all__ = [
    "CHUNK_SIZES",
    "Uploaded",
    "collection_create",
    "collection_delete",
    "collection_update",
    "document_cancel",
    "document_delete",
    "document_name",
    "document_retry",
    "document_upload",
]
