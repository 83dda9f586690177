"""App configuration."""

from django.apps import AppConfig


class BlobsConfig(AppConfig):
    name = "blobs"
    default_auto_field = "django.db.models.BigAutoField"
    erasure = {  # what an erasure does to its columns: see erasure.rules
        "PendingBlob": "names: key",
    }
    moves = {  # what an import does with their rows: see exports.moves
        "PendingBlob": "stays: passing",
    }

    def ready(self) -> None:
        from blobs.caches import looking_start
        from blobs.readings import blobs_read
        from blobs.services import sweeping_start
        from jobs.registry import after_start
        from tenancy.readings import reads_for_metrics

        after_start(looking_start)
        after_start(sweeping_start)
        reads_for_metrics(blobs_read)
