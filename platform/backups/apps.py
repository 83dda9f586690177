"""App configuration."""

from django.apps import AppConfig


class BackupsConfig(AppConfig):
    name = "backups"
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        from backups.schedule import schedule_start
        from jobs.registry import after_start

        after_start(schedule_start)
