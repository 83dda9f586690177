"""App configuration."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path

from django.apps import AppConfig, apps
from django.utils.module_loading import autodiscover_modules


class JobsConfig(AppConfig):
    name = "jobs"
    default_auto_field = "django.db.models.BigAutoField"
    erasure = {  # what an erasure does to its columns: see erasure.rules
        "Job": (
            "names: payload progress_message error_message; codes: kind lane status dedupe_key topic "
            "worker error_code"
        ),
        "Worker": "names: name; codes: version",
    }
    moves = {  # what an import does with their rows: see exports.moves
        "Job": "stays: passing",
    }

    def ready(self) -> None:
        from jobs import checks  # noqa: F401
        from jobs.readings import jobs_read
        from jobs.registry import on_sweep
        from jobs.sweeper import workers_forget
        from tenancy.readings import reads_for_metrics

        on_sweep(workers_forget, every_s=3600)
        reads_for_metrics(jobs_read)
        autodiscover_modules("tasks")
        rooms_autodiscover("tasks")


def rooms_autodiscover(name: str) -> None:
    """Import the modules of this name in the rooms of all apps, as Django's ``autodiscover_modules`` does at their top."""
    for config in apps.get_app_configs():
        for path in sorted(Path(config.path).glob(f"*/{name}.py")):
            import_module(f"{config.name}.{path.parent.name}.{name}")
