"""App configuration, and the admin's with our site."""

import gc

from django.apps import AppConfig
from django.contrib.admin import apps as admin


class ConfigConfig(AppConfig):
    """The last of the apps: when it is ready, all are."""

    name = "config"
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        """Collect garbage from now on, and never look at what was loaded, which stays until the end.

        Who starts a process turns the collector off before (``manage.py``, ``config.asgi``).
        """
        gc.freeze()
        gc.enable()


class GroundworkAdminConfig(admin.AdminConfig):
    """Django's admin with our site (apart from it: this is imported before any model may be)."""

    default = False
    default_site = "config.admin_site.GroundworkAdminSite"
