"""App configuration."""

from django.apps import AppConfig


class BlobsConfig(AppConfig):
    name = "blobs"
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        from blobs.caches import caches_look
        from blobs.services import pending_sweep
        from jobs.registry import on_sweep

        on_sweep(pending_sweep, every_s=5, batch=100)
        on_sweep(caches_look, every_s=10)
