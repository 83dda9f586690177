from importlib import import_module

from django.apps import AppConfig
from django.conf import settings


class CollectionsConfig(AppConfig):
    name = "apps.collections"
    label = "collections"
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        from apps.collections import identifier_sql
        from apps.collections.selectors import collection_choices, document_readable
        from jobs.registry import before_fork
        from runs.withheld import documents_judged_by
        from tenancy.walls import register_function
        from web.key_collections import key_collections_from

        register_function(
            identifier_sql.SIGNATURE, identifier_sql.SQL, tables=identifier_sql.TABLES
        )
        before_fork(_preload)
        key_collections_from(collection_choices)
        documents_judged_by(document_readable)


def _preload() -> None:
    """Import what the local embedder computes with, once for all worker processes."""
    if not settings.EMBEDDER.startswith(("openai/", "google/")):
        for name in ("numpy", "onnxruntime", "tokenizers"):
            import_module(name)
