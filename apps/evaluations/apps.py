"""App configuration."""

from django.apps import AppConfig


class EvaluationsConfig(AppConfig):
    name = "apps.evaluations"
    label = "evaluations"
    default_auto_field = "django.db.models.BigAutoField"
    erasure = {  # what an erasure does to its columns: see erasure.rules
        "Experiment": "names: name reason actor; codes: split scorers delivery state corpus",
        "Arm": "names: name target; codes: stop_reason",
        "Trial": "names: error; content: answer outcome; codes: state waits_for",
        "KeptScores": "content: data",
        "Preference": "names: reason author; codes: better",
        "ScoreCache": "names: key; content: value; codes: model",
        "Baseline": "names: name note",
        "Rubric": "names: slug name",
        "RubricVersion": "names: criteria note",
        "AnnotationQueue": "names: name assignees instructions",
        "AnnotationItem": "content: gold",
        "Assignment": "names: note; codes: state",
        "FailureGroups": "names: key groups problem actor",
        "FailureTag": "names: name",
        "Score": "names: name reason evidence details author; codes: author_kind",
        "JudgeCalibration": "names: name author curve",
        "JudgeCheck": "names: author levels findings",
        "SamplingRule": "names: name actor; codes: scorers",
        "LiveSample": "names: error; codes: state",
        "LiveScore": "names: name author reason; codes: author_kind",
    }

    def ready(self) -> None:
        from apps.conversations.answering.listeners import on_answer
        from apps.evaluations.results.erasing import evaluations_made_erase
        from apps.evaluations.sampling.services import answer_sample
        from erasure.kinds import on_content_erase

        on_answer(answer_sample)
        on_content_erase(evaluations_made_erase)
