"""App configuration, and the admin's with our site."""

import gc
from contextlib import AbstractContextManager
from typing import Any

from django.apps import AppConfig
from django.contrib.admin import apps as admin

_NEW_CONTAINERS = 10_000
"""How many there are before the collector looks for cycles among them. Nothing of a run needs it to go (decision 219), so
Python's own 700 would only have it walk what is in use: 2 % of a worker's time, where 5,000 take .6 and 20,000 .2."""


class ConfigConfig(AppConfig):
    """The last of the apps: when it is ready, all are."""

    name = "config"
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        """Have the garbage collector leave alone what is imported, for good, and look at all else again.

        This app is the last one, so that the others' modules are there (manage.py and config.asgi turn it off).
        """
        from backups.scratch import scratch_server_from
        from config.upgrade import database_superuser
        from erasure.scrubbing import superuser_from
        from jobs.registry import after_start

        superuser_from(database_superuser)
        scratch_server_from(_scratch_server)
        after_start(_alerting_start)
        gc.set_threshold(_NEW_CONTAINERS)
        gc.freeze()
        gc.enable()


def _scratch_server() -> AbstractContextManager[dict[str, Any]]:
    from config.embedded.scratch import scratch_server  # only who verifies a backup needs what this imports

    return scratch_server()


def _alerting_start() -> None:
    from config.operate.alerting import alerting_start  # only a worker needs what this imports

    alerting_start(tells_away=False)


class GroundworkAdminConfig(admin.AdminConfig):
    """Django's admin with our site (apart from it: this is imported before any model may be)."""

    default = False
    default_site = "config.admin_site.GroundworkAdminSite"
