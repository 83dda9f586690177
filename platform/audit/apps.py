"""App configuration."""

from django.apps import AppConfig


class AuditConfig(AppConfig):
    name = "audit"
    default_auto_field = "django.db.models.BigAutoField"
    erasure = {  # what an erasure does to its columns: see erasure.rules
        "ContentRead": (
            "names: actor_name ip request_id; codes: actor_kind documents door kind objects_named"
        ),
        "AuditStream": "names: url error; codes: kind lease secret_encrypted",
    }
    moves = {  # what an import does with their rows: see exports.moves
        "AuditStream": "stays: secret",
        "ContentRead": "stays: sealed",
    }

    def ready(self) -> None:
        from audit.pump import pump_start
        from audit.readings import streams_read
        from audit.reads import READS, UNSENT, reads_prune
        from erasure.retention import retention_kind_register
        from jobs.registry import after_start, on_sweep
        from tenancy.readings import reads_for_metrics

        after_start(pump_start)
        on_sweep(reads_prune, every_s=600, batch=1)
        retention_kind_register(READS, [UNSENT])
        reads_for_metrics(streams_read)
