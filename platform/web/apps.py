"""App configuration; finds each app's palette."""

from django.apps import AppConfig
from django.utils.module_loading import autodiscover_modules


class WebConfig(AppConfig):
    name = "web"
    default_auto_field = "django.db.models.BigAutoField"
    erasure = {  # what an erasure does to its columns: see erasure.rules
        "AttemptWindow": "codes: key taken",
        "SharedValue": "names: value; codes: key",
    }

    def ready(self) -> None:
        from jobs.registry import on_sweep
        from tenancy.row_security import register_function
        from web import windows
        from web.sign_in_trail import trail_start
        from web.sweeps import old_rows_sweep

        trail_start()
        on_sweep(old_rows_sweep, every_s=300)
        for signature, sql in (
            (windows.TAKE_SIGNATURE, windows.TAKE_SQL),
            (windows.UNDO_SIGNATURE, windows.UNDO_SQL),
        ):
            register_function(signature, sql, tables=["web_attemptwindow"])

        autodiscover_modules("palette")
