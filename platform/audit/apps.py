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
        from audit.reads import READS, UNSENT
        from erasure.removal import retention_kind_register
        from jobs.registry import after_start
        from tenancy.readings import reads_for_metrics

        after_start(pump_start)
        retention_kind_register(READS, [UNSENT], every_s=600)
        reads_for_metrics(streams_read)
