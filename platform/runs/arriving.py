"""Runs of a workspace that was imported: none goes on, since nothing carries it here."""

from __future__ import annotations

from django.utils import timezone

from erasure.moving import Arrival
from runs.models import (
    ACTIVE,
    UNENDED,
    DecisionStatus,
    PendingDecision,
    Run,
    RunStatus,
    ToolCall,
    ToolCallStatus,
)

MOVED = "workspace_moved"


def runs_arrived(arrival: Arrival) -> None:
    """End what was under way when the workspace was exported; in the transaction of the import."""
    now = timezone.now()
    mine = {"tenant": arrival.tenant}
    Run.objects.filter(**mine).exclude(background={}).update(background={})
    Run.objects.filter(**mine, status__in=ACTIVE).update(
        status=RunStatus.FAILED,
        error_code=MOVED,
        error_message=arrival.was_under_way,
        is_retryable=False,
        finished_at=now,
    )
    ToolCall.objects.filter(**mine, status__in=UNENDED).update(
        status=ToolCallStatus.UNKNOWN, error_code=MOVED, finished_at=now
    )
    PendingDecision.objects.filter(**mine, status=DecisionStatus.PENDING).update(
        status=DecisionStatus.CANCELLED, decided_at=now
    )
