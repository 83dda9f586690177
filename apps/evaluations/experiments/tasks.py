"""The jobs of experiments: the check of their judges, and what carries the calls of one by batch."""

from apps.evaluations.experiments.judge_checks import judge_check
from apps.evaluations.experiments.mailing import experiment_carry

__all__ = ["experiment_carry", "judge_check"]
