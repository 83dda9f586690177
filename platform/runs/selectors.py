"""Reads of runs and their journal."""

from __future__ import annotations

from collections.abc import Iterable

from django.db.models import Prefetch
from django.db.models.functions import Left

from runs.models import Run, RunEvent, ToolCall
from runs.transcript import Transcript, transcript_of

CONTENT_SHOWN = 4000


def transcript_read(run: Run) -> Transcript:
    """Return what a watcher of the run sees now, from its events."""
    events = RunEvent.objects.filter(tenant_id=run.tenant_id, run=run).order_by("seq")
    return transcript_of(events.values_list("seq", "kind", "data"))


def tool_calls_prefetch(to: str = "run__tool_calls") -> Prefetch[str]:
    """Return a prefetch of tool calls in the order they started, without payload, content cut for display."""
    shown = ToolCall.objects.defer("payload", "content").annotate(
        content_shown=Left("content", CONTENT_SHOWN + 1)
    )
    return Prefetch(to, queryset=shown.order_by("pk"), to_attr="calls_shown")


def payload_list(runs: Iterable[Run], *, name: str = "") -> list[tuple[int, object]]:
    """Return (run id, payload) of the runs' succeeded tool calls, oldest first."""
    rows = ToolCall.objects.filter(run__in=list(runs), status="succeeded", payload__isnull=False)
    if name:
        rows = rows.filter(name=name)
    return list(rows.order_by("pk").values_list("run_id", "payload"))
