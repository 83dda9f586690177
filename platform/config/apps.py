"""App configuration, and the admin's with our site."""

from django.apps import AppConfig
from django.contrib.admin import apps as admin


class ConfigConfig(AppConfig):
    name = "config"
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        from jobs.registry import after_start

        after_start(_verify_schedule_start)


def _verify_schedule_start() -> None:
    from config.backup_rounds import verify_schedule_start  # only a worker needs what this imports

    verify_schedule_start()


class GroundworkAdminConfig(admin.AdminConfig):
    """Django's admin with our site (apart from it: this is imported before any model may be)."""

    default = False
    default_site = "config.admin_site.GroundworkAdminSite"
