"""Experiments, their trials and scores; rubrics; what people annotate."""

from apps.evaluations.models.annotation import AnnotationItem, AnnotationQueue, Assignment, AssignmentState
from apps.evaluations.models.example import EXAMPLE_ENDED, Example, ExampleStep
from apps.evaluations.models.experiment import (
    EXPERIMENT_ACTIVE,
    TRIAL_ENDED,
    Arm,
    Baseline,
    Experiment,
    ExperimentState,
    KeptScores,
    Preference,
    ScoreCache,
    Trial,
    TrialState,
)
from apps.evaluations.models.failure import FailureGroups, FailureTag
from apps.evaluations.models.live import LiveSample, LiveScore, SampleState, SamplingRule
from apps.evaluations.models.rubric import Rubric, RubricVersion
from apps.evaluations.models.score import JudgeCalibration, JudgeCheck, Score, ScoreAuthor

__all__ = [
    "EXAMPLE_ENDED",
    "EXPERIMENT_ACTIVE",
    "TRIAL_ENDED",
    "AnnotationItem",
    "AnnotationQueue",
    "Arm",
    "Assignment",
    "AssignmentState",
    "Baseline",
    "Example",
    "ExampleStep",
    "Experiment",
    "ExperimentState",
    "FailureGroups",
    "FailureTag",
    "JudgeCalibration",
    "JudgeCheck",
    "KeptScores",
    "LiveSample",
    "LiveScore",
    "Preference",
    "Rubric",
    "RubricVersion",
    "SampleState",
    "SamplingRule",
    "Score",
    "ScoreAuthor",
    "ScoreCache",
    "Trial",
    "TrialState",
]
