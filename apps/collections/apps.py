"""App configuration."""

from importlib import import_module

from django.apps import AppConfig
from django.conf import settings


class CollectionsConfig(AppConfig):
    name = "apps.collections"
    label = "collections"
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        from apps.collections.display.selectors import (
            collection_choices,
            document_readable,
            documents_unnamed,
        )
        from apps.collections.index import identifier_sql
        from apps.collections.index.code_kinds import codes_sweep
        from apps.collections.index.large import indexes_restore
        from apps.collections.pipeline.lexical_upgrade import terms_sweep
        from apps.collections.storage import originals
        from apps.collections.tree.elsewhere import tree_follow, trees_compare
        from backups.restoring import after_restore
        from blobs.caches import on_removed, on_whole_look
        from blobs.leases import rows_hold
        from blobs.references import named_by
        from jobs.registry import before_fork, on_sweep
        from runs.withheld import documents_judged_by
        from tenancy.audit_names import audit_names_judged_by
        from tenancy.row_security import register_function
        from web.key_collections import key_collections_from

        register_function(identifier_sql.SIGNATURE, identifier_sql.SQL, tables=identifier_sql.TABLES)
        before_fork(_preload)
        on_sweep(codes_sweep, every_s=300)
        on_sweep(terms_sweep, every_s=300)
        named_by(originals.files_named)
        rows_hold(originals.file_in_history)
        after_restore(indexes_restore)
        on_removed(originals.made_forget)
        on_removed(tree_follow, is_at_once=False)
        for look in (originals.made_compare, trees_compare):
            on_whole_look(look)
        key_collections_from(collection_choices)
        documents_judged_by(document_readable)
        audit_names_judged_by("collections.document", documents_unnamed)


def _preload() -> None:
    """Import what the local embedder computes with, once for all worker processes."""
    if not settings.EMBEDDER.startswith(("openai/", "google/")):
        for name in ("numpy", "onnxruntime", "tokenizers"):
            import_module(name)
