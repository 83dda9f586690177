"""Writes of evaluations."""

from apps.evaluations.services.annotation import (
    assignment_grade,
    assignment_skip,
    assignment_take,
    assignment_undo,
    gold_set,
    queue_close,
    queue_create,
    queue_reopen,
)
from apps.evaluations.services.baselines import baseline_set
from apps.evaluations.services.calibrations import calibration_create
from apps.evaluations.services.experiments import (
    ArmSpec,
    experiment_create,
    experiment_pause,
    experiment_resume,
    experiment_stop,
)
from apps.evaluations.services.rubrics import rubric_create, rubric_seed, rubric_version_create, rubrics_seed
from apps.evaluations.services.safety import suite_create
from apps.evaluations.services.sampling import (
    sampling_rule_create,
    sampling_rule_delete,
    sampling_rule_pause,
    sampling_rule_resume,
)
from apps.evaluations.services.trials import (
    TRIAL_JOB,
    JudgeUse,
    scores_write,
    trial_answered,
    trial_away,
    trial_fail,
    trial_wait,
    trials_start,
)

__all__ = [
    "TRIAL_JOB",
    "ArmSpec",
    "JudgeUse",
    "assignment_grade",
    "assignment_skip",
    "assignment_take",
    "assignment_undo",
    "baseline_set",
    "calibration_create",
    "experiment_create",
    "experiment_pause",
    "experiment_resume",
    "experiment_stop",
    "gold_set",
    "queue_close",
    "queue_create",
    "queue_reopen",
    "rubric_create",
    "rubric_seed",
    "rubric_version_create",
    "rubrics_seed",
    "sampling_rule_create",
    "sampling_rule_delete",
    "sampling_rule_pause",
    "sampling_rule_resume",
    "scores_write",
    "suite_create",
    "trial_answered",
    "trial_away",
    "trial_fail",
    "trial_wait",
    "trials_start",
]
