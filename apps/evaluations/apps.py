from django.apps import AppConfig


class EvaluationsConfig(AppConfig):
    name = "apps.evaluations"
    label = "evaluations"
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        from apps.conversations.answered import on_answer
        from apps.evaluations.services.sampling import answer_sample

        on_answer(answer_sample)
