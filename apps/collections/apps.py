"""App configuration."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from django.apps import AppConfig
from django.conf import settings

if TYPE_CHECKING:
    from backups.verifying import Verified


class CollectionsConfig(AppConfig):
    name = "apps.collections"
    label = "collections"
    default_auto_field = "django.db.models.BigAutoField"
    erasure = {  # what an erasure does to its columns: see erasure.rules
        "EmbeddingSpace": "codes: provider model fingerprint",
        "Collection": (
            "names: name description file_rules; codes: language links_by links_model reranker "
            "reranker_model lexical_forms"
        ),
        "Document": (
            "names: source error_message; content: name path source_url tags attributes title warnings "
            "metadata file; codes: document_type type_reason media_type language lexical_form cover "
            "sha256 status stage error_code code_form timings"
        ),
        "DocumentAccess": "codes: role",
        "Page": "names: skip_reason; content: text layout",
        "Chunk": "content: text headings metadata qualified_name key_points; codes: kind points_by",
        "ChunkRevision": "names: note; content: before after",
        "ChunkLink": "names: made_by; content: common_topic; codes: relation",
        "CodeEdge": "content: source_name target_name name written; codes: kind",
        "InstalledEmbedder": "names: name digests; codes: folder options fingerprint",
        "Import": (
            "names: source error_message; content: name file entries problems; codes: options status "
            "error_code"
        ),
        "DocumentTypeRules": "names: rules",
        "CodePatterns": "names: patterns; codes: digest late",
        "Recognition": "codes: languages",
        "Repository": "content: refs left_out; codes: folder head shallow",
        "RepositoryPack": "content: file index",
        "Embedding": "content: vector",
        "ChunkTerms": "content: weights lexemes",
        "SearchIndex": "codes: kind status chunk_ids document_ids edited",
        "Posting": "content: places weights",
        "SpaceSwap": "names: comparison error_message; codes: status",
        "SearchCase": "names: filters note; content: query expected",
        "CollectionSnapshot": "names: name",
        "FileBlob": "content: content; codes: sha256",
        "FileBatch": "names: action note",
        "FileRevision": "content: path",
    }
    moves = {  # what an import does with their rows: see exports.moves
        "Document": "files: file; plain: tags attributes warnings metadata timings",
        "Page": "plain: layout",
        "Chunk": "plain: headings metadata key_points",
        "ChunkRevision": "plain: before after",
        "Import": "files: file; plain: options entries problems",
        "Repository": "plain: refs shallow left_out",
        "RepositoryPack": "files: file index",
        "DocumentTypeRules": "plain: rules",
        "CodePatterns": "plain: patterns late",
        "Embedding": "stays: computed",
        "ChunkTerms": "stays: computed",
        "SearchIndex": "stays: computed",
        "Posting": "stays: computed",
        "TermFrequency": "stays: computed",
        "SpaceSwap": "stays: passing",
    }

    def ready(self) -> None:
        from apps.collections.collection.arriving import collections_arrived, space_here
        from apps.collections.collection.erasing import person_collections_erase, workspace_indexes_erase
        from apps.collections.collection.erasing_documents import DOCUMENTS
        from apps.collections.display.selectors import (
            collection_choices,
            document_readable,
            documents_unnamed,
        )
        from apps.collections.documents.retention import (
            BEING_READ,
        )
        from apps.collections.documents.retention import (
            DOCUMENTS as OLD_DOCUMENTS,
        )
        from apps.collections.index import identifier_sql
        from apps.collections.index.codes import codes_sweep
        from apps.collections.index.large import graphs_sweep, indexes_restore
        from apps.collections.pipeline.lexical_upgrade import terms_sweep
        from apps.collections.storage import originals
        from apps.collections.tree.elsewhere import tree_follow, trees_compare
        from audit.names import audit_names_judged_by
        from backups.restoring import after_restore
        from backups.verifying import on_verify
        from blobs.caches import on_removed, on_whole_look
        from blobs.leases import rows_hold
        from blobs.references import named_by
        from erasure.kinds import content_kind_register
        from erasure.places import Place, files_kept
        from erasure.removal import retention_kind_register
        from erasure.rules import on_person_erase, on_workspace_erase
        from exports.moves import keys_tell, on_workspace_import, shared_as
        from jobs.registry import before_fork, on_sweep
        from runs.withheld import documents_judged_by
        from tenancy.row_security import register_function
        from web.key_collections import key_collections_from

        register_function(identifier_sql.SIGNATURE, identifier_sql.SQL, tables=identifier_sql.TABLES)
        before_fork(_preload)
        on_sweep(codes_sweep, every_s=300)
        on_sweep(terms_sweep, every_s=300)
        on_sweep(graphs_sweep, every_s=300)
        retention_kind_register(OLD_DOCUMENTS, [BEING_READ])
        named_by(originals.files_named)
        rows_hold(originals.file_in_history)
        after_restore(indexes_restore)
        on_verify(_search_verify)
        on_removed(originals.made_forget)
        on_removed(tree_follow, is_at_once=False)
        for look in (originals.made_compare, trees_compare):
            on_whole_look(look)
        key_collections_from(collection_choices)
        documents_judged_by(document_readable)
        on_person_erase(person_collections_erase)
        on_workspace_erase(workspace_indexes_erase)
        content_kind_register(DOCUMENTS)
        files_kept(Place("", "collections.Collection"))
        keys_tell(
            {
                "chunk_id": "collections.Chunk",
                "chunk_ids": "collections.Chunk",
                "source_chunk_id": "collections.Chunk",
                "chunk_ref": "collections.Chunk",
                "document_id": "collections.Document",
                "document_ids": "collections.Document",
                "collection_id": "collections.Collection",
                "collection_ids": "collections.Collection",
            }
        )
        shared_as("collections.EmbeddingSpace", space_here)
        on_workspace_import(collections_arrived)
        audit_names_judged_by("collections.document", documents_unnamed)


def _search_verify(found: Verified) -> None:
    # Only who verifies a backup needs what this imports.
    from apps.collections.search.verified import search_verify

    search_verify(found)


def _preload() -> None:
    """Import what the local embedder computes with, once for all worker processes."""
    if not settings.EMBEDDER.startswith(("openai/", "google/")):
        for name in ("numpy", "onnxruntime", "tokenizers"):
            import_module(name)
