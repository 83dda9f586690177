"""App configuration."""

from django.apps import AppConfig


class RunsConfig(AppConfig):
    name = "runs"
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        from jobs.registry import before_exit, before_fork, on_sweep
        from runs.providers import providers_preload
        from runs.readings import runs_read
        from runs.retention import BATCH, runs_prune
        from runs.sandbox import sandbox_close
        from runs.services import decisions_expire, orphans_end, runs_bereave
        from tenancy.losses import on_loss
        from tenancy.readings import reads_for_metrics

        before_fork(providers_preload)
        on_sweep(decisions_expire)
        on_sweep(runs_prune, every_s=300, batch=BATCH)
        on_sweep(orphans_end)
        on_loss(runs_bereave)
        before_exit(sandbox_close)
        reads_for_metrics(runs_read)
