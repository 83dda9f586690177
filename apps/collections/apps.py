from django.apps import AppConfig


class CollectionsConfig(AppConfig):
    name = "apps.collections"
    label = "collections"
    default_auto_field = "django.db.models.BigAutoField"
