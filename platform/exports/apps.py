"""App configuration."""

from django.apps import AppConfig


class ExportsConfig(AppConfig):
    name = "exports"

    def ready(self) -> None:
        from exports.moves import USER, keys_tell

        keys_tell(
            {"user_id": USER, "api_key_id": "tenancy.ApiKey", "job_id": "jobs.Job", "budget_job": "jobs.Job"}
        )
