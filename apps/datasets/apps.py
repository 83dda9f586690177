"""App configuration."""

from importlib import import_module

from django.apps import AppConfig


class DatasetsConfig(AppConfig):
    name = "apps.datasets"
    label = "datasets"
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        """Register the jobs that do not stand in ``tasks``."""
        import_module("apps.datasets.curation_tasks")
