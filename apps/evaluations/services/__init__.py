"""Writes of evaluations."""

from apps.evaluations.services.baselines import baseline_set
from apps.evaluations.services.experiments import (
    ArmSpec,
    experiment_create,
    experiment_pause,
    experiment_resume,
    experiment_stop,
)
from apps.evaluations.services.rubrics import rubric_create, rubric_seed, rubric_version_create
from apps.evaluations.services.trials import (
    TRIAL_JOB,
    scores_write,
    trial_answered,
    trial_fail,
    trials_start,
)

__all__ = [
    "TRIAL_JOB",
    "ArmSpec",
    "baseline_set",
    "experiment_create",
    "experiment_pause",
    "experiment_resume",
    "experiment_stop",
    "rubric_create",
    "rubric_seed",
    "rubric_version_create",
    "scores_write",
    "trial_answered",
    "trial_fail",
    "trials_start",
]
