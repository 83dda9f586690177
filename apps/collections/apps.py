from django.apps import AppConfig


class CollectionsConfig(AppConfig):
    name = "apps.collections"
    label = "collections"
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        from apps.collections import identifier_sql
        from tenancy.walls import register_function

        register_function(
            identifier_sql.SIGNATURE, identifier_sql.SQL, tables=identifier_sql.TABLES
        )
