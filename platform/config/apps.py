"""App configuration, and the admin's with our site."""

import gc

from django.apps import AppConfig
from django.contrib.admin import apps as admin


class ConfigConfig(AppConfig):
    """The last of the apps: when it is ready, all are."""

    name = "config"
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        """Have the garbage collector leave alone what is imported, for good, and look at all else again.

        This app is the last one, so that the others' modules are there (manage.py and config.asgi turn it off).
        """
        from config.upgrade import database_superuser
        from erasure.scrubbing import superuser_from
        from jobs.registry import after_start

        superuser_from(database_superuser)
        after_start(_verify_schedule_start)
        gc.freeze()
        gc.enable()


def _verify_schedule_start() -> None:
    from config.backup_rounds import verify_schedule_start  # only a worker needs what this imports

    verify_schedule_start()


class GroundworkAdminConfig(admin.AdminConfig):
    """Django's admin with our site (apart from it: this is imported before any model may be)."""

    default = False
    default_site = "config.admin_site.GroundworkAdminSite"
