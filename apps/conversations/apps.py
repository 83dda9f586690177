from django.apps import AppConfig


class ConversationsConfig(AppConfig):
    name = "apps.conversations"
    label = "conversations"
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        from apps.conversations.tools import BUNDLE
        from apps.tools.bundles import bundle_register

        bundle_register(BUNDLE)
