"""Runs of a workspace that was imported: none goes on, since nothing carries it here."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from itertools import accumulate

from django.utils import timezone

from exports.moves import Arrival
from runs.models import (
    ACTIVE,
    UNENDED,
    DecisionStatus,
    PendingDecision,
    Run,
    RunEvent,
    RunStatus,
    ToolCall,
    ToolCallStatus,
)
from runs.transcript import REASONING, TEXT

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
    _pieces_move(arrival)


def _pieces_move(arrival: Arrival) -> None:
    """Give markers in streamed text their numbers, also where one was cut into two events."""
    events = RunEvent.objects.filter(tenant=arrival.tenant, kind__in=[TEXT, REASONING])
    runs = events.filter(data__text__icontains="[").order_by("run_id").values_list("run_id", flat=True)
    for run_id in runs.distinct().iterator(chunk_size=500):
        said: dict[tuple[str, str], list[RunEvent]] = {}
        for event in events.filter(run_id=run_id).order_by("seq"):
            if isinstance(event.data.get("text"), str):
                said.setdefault((event.kind, str(event.data.get("step"))), []).append(event)
        for pieces in said.values():
            texts = [event.data["text"] for event in pieces]
            for event, old, new in zip(pieces, texts, _rewritten(arrival, texts), strict=True):
                if new != old:
                    event.data["text"] = new
                    event.save(update_fields=["data"])


def _rewritten(arrival: Arrival, texts: Sequence[str]) -> list[str]:
    """Return the pieces of a text with the markers as they are here; each stands whole in the piece where it begins."""
    whole, ends = "".join(texts), list(accumulate(map(len, texts)))
    made, at = [""] * len(texts), 0
    for start, end, marker in [*arrival.marks(whole), (len(whole), len(whole), "")]:
        while at < start:
            piece = bisect_right(ends, at)
            stop = min(start, ends[piece])
            made[piece] += whole[at:stop]
            at = stop
        if marker:
            made[bisect_right(ends, start)] += marker
        at = end
    return made
