"""Writes of collections and documents. Each is one transaction: permission, rows, audit, then jobs and files on commit."""

from apps.collections.services.access import document_access_set
from apps.collections.services.chunk import MAX_CHUNK_CHARS, chunk_disable, chunk_edit, chunk_restore
from apps.collections.services.code_patterns import code_patterns_set
from apps.collections.services.collection import (
    CHUNK_SIZES,
    MAX_VERSIONS,
    collection_create,
    collection_delete,
    collection_update,
)
from apps.collections.services.document import (
    Uploaded,
    document_cancel,
    document_delete,
    document_name,
    document_path,
    document_put,
    document_retry,
    document_upload,
)
from apps.collections.services.embedder import embedder_install
from apps.collections.services.embedding import Embedded, embedder_list, texts_embed
from apps.collections.services.file_history import batch_redo, batch_undo, revision_restore
from apps.collections.services.file_imports import FilesImported, files_import
from apps.collections.services.file_writes import (
    FileEdit,
    file_delete,
    file_move,
    file_rules_update,
    file_write,
    files_edit,
)
from apps.collections.services.files import FileChange, files_change
from apps.collections.services.imports import (
    SOURCES,
    ImportOptions,
    document_refetch,
    import_cancel,
    import_retry,
    import_start,
)
from apps.collections.services.private import private_document_put, private_documents_remove
from apps.collections.services.repositories import (
    Committed,
    History,
    git_commit,
    history_keep,
    left_out_settle,
)
from apps.collections.services.samples import sample_add
from apps.collections.services.search_case import (
    search_case_delete,
    search_case_save,
    snapshot_create,
    snapshot_delete,
)
from apps.collections.services.space import (
    swap_cancel,
    swap_drop,
    swap_retry,
    swap_start,
    swap_switch,
    swap_undo,
)
from apps.collections.services.summary import document_summarise_again
from apps.collections.services.type_rules import document_describe, type_rules_add, type_rules_set
from apps.collections.services.version import (
    collection_reindex,
    document_move,
    document_reindex,
    document_restore,
    versions_prune,
)

__all__ = [
    "CHUNK_SIZES",
    "MAX_CHUNK_CHARS",
    "MAX_VERSIONS",
    "SOURCES",
    "Committed",
    "Embedded",
    "FileChange",
    "FileEdit",
    "FilesImported",
    "History",
    "ImportOptions",
    "Uploaded",
    "batch_redo",
    "batch_undo",
    "chunk_disable",
    "chunk_edit",
    "chunk_restore",
    "code_patterns_set",
    "collection_create",
    "collection_delete",
    "collection_reindex",
    "collection_update",
    "document_access_set",
    "document_cancel",
    "document_delete",
    "document_describe",
    "document_move",
    "document_name",
    "document_path",
    "document_put",
    "document_refetch",
    "document_reindex",
    "document_restore",
    "document_retry",
    "document_summarise_again",
    "document_upload",
    "embedder_install",
    "embedder_list",
    "file_delete",
    "file_move",
    "file_rules_update",
    "file_write",
    "files_change",
    "files_edit",
    "files_import",
    "git_commit",
    "history_keep",
    "import_cancel",
    "import_retry",
    "import_start",
    "left_out_settle",
    "private_document_put",
    "private_documents_remove",
    "revision_restore",
    "sample_add",
    "search_case_delete",
    "search_case_save",
    "snapshot_create",
    "snapshot_delete",
    "swap_cancel",
    "swap_drop",
    "swap_retry",
    "swap_start",
    "swap_switch",
    "swap_undo",
    "texts_embed",
    "type_rules_add",
    "type_rules_set",
    "versions_prune",
]
