"""App configuration."""

from django.apps import AppConfig


class WebhooksConfig(AppConfig):
    name = "webhooks"
    default_auto_field = "django.db.models.BigAutoField"
    erasure = {  # what an erasure does to its columns: see erasure.rules
        "Webhook": "names: url description; codes: events secret_encrypted previous_secret_encrypted",
        "WebhookDelivery": "names: event object_key payload error; codes: status",
    }
    moves = {  # what an import does with their rows: see exports.moves
        "Webhook": "stays: secret",
        "WebhookDelivery": "stays: secret",
    }

    def ready(self) -> None:
        from erasure.removal import retention_kind_register
        from webhooks.retention import DELIVERIES

        retention_kind_register(DELIVERIES, every_s=300)
