"""App configuration, and the admin's with our site."""

from django.apps import AppConfig
from django.contrib.admin import apps as admin


class ConfigConfig(AppConfig):
    name = "config"
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        from config.upgrade import database_superuser
        from erasure.scrubbing import superuser_from

        superuser_from(database_superuser)


class GroundworkAdminConfig(admin.AdminConfig):
    """Django's admin with our site (apart from it: this is imported before any model may be)."""

    default = False
    default_site = "config.admin_site.GroundworkAdminSite"
