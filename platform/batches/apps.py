"""Django app of batches."""

from django.apps import AppConfig


class BatchesConfig(AppConfig):
    name = "batches"
    default_auto_field = "django.db.models.BigAutoField"
    erasure = {  # what an erasure does to its columns: see erasure.rules
        "Batch": "names: owner message; codes: model mark handle state",
        "BatchLine": (
            "names: owner key attribution error_message; content: body context turn; codes: model kind "
            "state error_code"
        ),
    }
    moves = {  # what an import does with their rows: see exports.moves
        "Batch": "stays: passing",
        "BatchLine": "stays: passing",
    }
