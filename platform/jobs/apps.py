"""App configuration."""

from __future__ import annotations

from django.apps import AppConfig


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
