"""App configuration."""

from django.apps import AppConfig


class EvaluationsConfig(AppConfig):
    name = "apps.evaluations"
    label = "evaluations"
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        from apps.conversations.answering.listeners import on_answer
        from apps.evaluations.sampling.services import answer_sample

        on_answer(answer_sample)
