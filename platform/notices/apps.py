"""App configuration: what is swept, and the kinds of notices of every app."""

from django.apps import AppConfig
from django.utils.module_loading import autodiscover_modules


class NoticesConfig(AppConfig):
    name = "notices"
    default_auto_field = "django.db.models.BigAutoField"
    erasure = {  # what an erasure does to its columns: see erasure.rules
        "Notice": "codes: kind state mail",
        "NoticeSetting": "codes: ways",
    }
    moves = {  # what an import does with their rows: see exports.moves
        "Notice": "stays: passing",
        "NoticeSetting": "plain: ways",
    }

    def ready(self) -> None:
        from jobs.registry import on_sweep
        from notices.mailing import mails_due
        from notices.services import notices_forget

        on_sweep(mails_due, every_s=60)
        on_sweep(notices_forget, every_s=3600)
        autodiscover_modules("notices")
