"""App configuration."""

from importlib import import_module

from django.apps import AppConfig


class DatasetsConfig(AppConfig):
    name = "apps.datasets"
    label = "datasets"
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        """Register the jobs that do not stand in ``tasks``, the files that rows name, and the function that searches rows."""
        from apps.datasets.rows import search as row_search
        from apps.datasets.rows.files import dataset_files_named
        from blobs.references import named_by
        from tenancy.row_security import register_function

        named_by(dataset_files_named)
        import_module("apps.datasets.curation.tasks")
        register_function(row_search.SIGNATURE, row_search.SQL, tables=row_search.TABLES)
