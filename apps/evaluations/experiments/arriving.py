"""Experiments of a workspace that was imported: what was under way is stopped, and can be started again by a person.

So is a sample that was being made: its job has stayed behind.
"""

from __future__ import annotations

from django.utils import timezone

from apps.evaluations.models import (
    EXAMPLE_ENDED,
    EXPERIMENT_ACTIVE,
    TRIAL_ENDED,
    Example,
    ExampleStep,
    Experiment,
    ExperimentState,
    LiveSample,
    SampleState,
    Trial,
    TrialState,
)
from exports.moves import Arrival


def evaluations_arrived(arrival: Arrival) -> None:
    """Stop what was under way when the workspace was exported; in the transaction of the import."""
    now, why = timezone.now(), arrival.was_under_way
    mine = {"tenant": arrival.tenant}
    Experiment.objects.filter(**mine, state__in=EXPERIMENT_ACTIVE).update(
        state=ExperimentState.STOPPED, reason=why, finished_at=now
    )
    trials = Trial.objects.filter(**mine).exclude(state__in=[*TRIAL_ENDED, TrialState.STOPPED])
    trials.update(state=TrialState.STOPPED, waits_for=[])
    LiveSample.objects.filter(**mine, state=SampleState.WAITING).update(
        state=SampleState.SKIPPED, error=why, finished_at=now
    )
    Example.objects.filter(**mine).exclude(step__in=EXAMPLE_ENDED).update(step=ExampleStep.FAILED, error=why)
