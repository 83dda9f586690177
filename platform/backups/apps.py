"""App configuration."""

from django.apps import AppConfig


class BackupsConfig(AppConfig):
    name = "backups"
    default_auto_field = "django.db.models.BigAutoField"
    erasure = {  # what an erasure does to its columns: see erasure.rules
        "BackupResult": "names: url name detail; codes: kind",
    }

    def ready(self) -> None:
        from backups.readings import backups_read
        from backups.schedule import schedule_start
        from jobs.registry import after_start
        from tenancy.readings import reads_for_metrics

        after_start(schedule_start)
        after_start(_verify_schedule_start)
        reads_for_metrics(backups_read)


def _verify_schedule_start() -> None:
    from backups.rounds import verify_schedule_start  # only a worker needs what this imports

    verify_schedule_start()
