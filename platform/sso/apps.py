"""App configuration."""

from django.apps import AppConfig


class SsoConfig(AppConfig):
    name = "sso"
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        from jobs.registry import on_sweep
        from sso.sign_ins import sign_in_made, sign_ins_end, sign_ins_expire
        from tenancy.entrances import sign_ins_looked_up_by
        from tenancy.losses import on_loss

        sign_ins_looked_up_by(sign_in_made)
        on_loss(sign_ins_end)
        on_sweep(sign_ins_expire, every_s=300)
