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
        "Example": "names: error; codes: step",
        "LiveSample": "names: error; codes: state",
        "LiveScore": "names: name author reason; codes: author_kind",
    }
    moves = {  # what an import does with their rows: see exports.moves
        "Experiment": "numbers: budget_job=jobs.Job",
        "Arm": "json: target.collections=collections.Collection target.version=conversations.AssistantVersion",
        "Trial": (
            "numbers: row_ref=datasets.DatasetRow; text: answer; plain: waits_for; "
            "json: outcome.chunks[0]=collections.Chunk"
        ),
        "AnnotationQueue": "json: assignees.assignees=tenancy.User",
        "Score": "text: author reason evidence",
        "Preference": "text: reason",
        "LiveScore": "text: author reason",
        "JudgeCalibration": "text: author",
        "JudgeCheck": "json: levels.levels{}=evaluations.AnnotationItem",
        "FailureGroups": "stays: computed",
        "KeptScores": "stays: computed",
        "ScoreCache": "stays: computed",
    }

    def ready(self) -> None:
        from apps.collections.collection.samples import on_sample
        from apps.conversations.answering.listeners import on_answer
        from apps.evaluations.example.services import example_begin
        from apps.evaluations.experiments.arriving import evaluations_arrived
        from apps.evaluations.experiments.retention import (
            DATASET_USES,
            DOCUMENTS_SEARCHED,
            EXPERIMENT_USES,
            EXPERIMENTS,
        )
        from apps.evaluations.results.erasing import evaluations_made_erase
        from apps.evaluations.sampling.services import HAS_RULES, answer_sample
        from erasure.kinds import on_content_erase
        from erasure.removal import retention_kind_register
        from erasure.retention import retention_used_by
        from exports.moves import keys_tell, on_workspace_import

        on_answer(answer_sample, wanted=HAS_RULES)
        on_sample(example_begin)
        on_content_erase(evaluations_made_erase)
        retention_kind_register(EXPERIMENTS, EXPERIMENT_USES)
        for use in DATASET_USES:
            retention_used_by("datasets", use)
        retention_used_by("documents", DOCUMENTS_SEARCHED)
        keys_tell(
            {
                "experiment_id": "evaluations.Experiment",
                "arm_id": "evaluations.Arm",
                "trial_id": "evaluations.Trial",
            }
        )
        on_workspace_import(evaluations_arrived)
