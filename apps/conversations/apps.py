from django.apps import AppConfig


class ConversationsConfig(AppConfig):
    name = "apps.conversations"
    label = "conversations"
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        from apps.conversations.assistant_selectors import assistant_names
        from apps.conversations.retention import conversations_sweep
        from apps.conversations.tools import BUNDLE
        from apps.conversations.trade_tools import TRADE_BUNDLE
        from apps.tools.bundles import bundle_register
        from budgets.assistants import assistants_from
        from jobs.registry import on_sweep

        assistants_from(assistant_names)
        bundle_register(BUNDLE)
        on_sweep(conversations_sweep)
        bundle_register(TRADE_BUNDLE)
