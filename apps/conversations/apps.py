from django.apps import AppConfig


class ConversationsConfig(AppConfig):
    name = "apps.conversations"
    label = "conversations"
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        from apps.collections.lost import on_document_lost
        from apps.conversations.assistant_selectors import assistant_names
        from apps.conversations.retention import BATCH, conversations_expire
        from apps.conversations.services.lost_titles import titles_later
        from apps.conversations.shown import conversations_unnamed, runs_related
        from apps.conversations.tools import BUNDLE
        from apps.conversations.trade_tools import TRADE_BUNDLE
        from apps.tools.bundles import bundle_register
        from budgets.assistants import assistants_from
        from jobs.registry import on_sweep
        from runs.withheld import runs_related_by
        from tenancy.audit_names import audit_names_judged_by

        assistants_from(assistant_names)
        bundle_register(BUNDLE)
        on_sweep(conversations_expire, every_s=300, batch=BATCH)
        runs_related_by(runs_related)
        audit_names_judged_by("conversations.conversation", conversations_unnamed)
        on_document_lost(titles_later)
        bundle_register(TRADE_BUNDLE)
