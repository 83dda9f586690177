"""App configuration, and the admin's with our site."""

from django.apps import AppConfig
from django.contrib.admin import apps as admin


class ConfigConfig(AppConfig):
    name = "config"
    default_auto_field = "django.db.models.BigAutoField"


class GroundworkAdminConfig(admin.AdminConfig):
    """Django's admin with our site (apart from it: this is imported before any model may be)."""

    default = False
    default_site = "config.admin_site.GroundworkAdminSite"
