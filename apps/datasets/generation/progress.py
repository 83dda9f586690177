"""How far a generation job is: counters, a line for each stage, what has moved last, one row's calls. Reads only."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from django.db.models import Avg, Count, Q, Sum

from apps.datasets.generation.claiming import job_spend
from apps.datasets.generation.trace import MOST_OBSERVED
from apps.datasets.models import ITEM_OPEN, GenerationItem, GenerationJob, ItemState, PaidCall
from apps.datasets.rows.withheld import items_readable, tells_hidden
from tenancy.actors import Actor
from toolloop.messages import ToolResult, Turn, message_from_json

LATEST = 12
MOST_CALLS = 60


@dataclass(frozen=True, slots=True)
class StageLine:
    """One stage.

    Attributes:
        here: items that stand before it; ``busy`` of them are in a worker's hands.
        seconds: of a call on the average, None without one.
    """

    stage: str
    label: str
    here: int
    busy: int
    calls: int
    seconds: float | None
    input_tokens: int
    output_tokens: int
    cost_usd: Decimal | None


@dataclass(frozen=True, slots=True)
class Progress:
    """A job at this moment."""

    spent_usd: Decimal
    under_way: int
    stages: list[StageLine]
    latest: list[GenerationItem]

    @property
    def calls(self) -> int:
        """Paid calls in all."""
        return sum(line.calls for line in self.stages)


def progress_read(*, actor: Actor, job: GenerationJob) -> Progress:
    """Return how far a job is, in four queries."""
    actor.require("dataset.read")
    items = GenerationItem.objects.visible_to(actor).filter(job=job)
    standing = {
        row["state"]: row
        for row in items.filter(state__in=ITEM_OPEN)
        .values("state")
        .annotate(here=Count("pk"), busy=Count("pk", filter=~Q(driver="")))
    }
    paid = {
        row["stage"]: row
        for row in PaidCall.objects.visible_to(actor)
        .filter(job=job)
        .values("stage")
        .annotate(
            calls=Count("pk"),
            ms=Avg("duration_ms"),
            input=Sum("input_tokens"),
            output=Sum("output_tokens"),
            cost=Sum("cost_usd"),
        )
    }
    stages = [_line(state, standing.get(state, {}), paid.get(state, {})) for state in ITEM_OPEN]
    latest = (
        items_readable(items, actor)
        .exclude(state=ItemState.SPARE)
        .exclude(state=ItemState.QUESTION, driver="")
    )
    return Progress(
        spent_usd=job_spend(job),
        under_way=sum(line.busy for line in stages),
        stages=stages,
        latest=list(latest.order_by("-updated_at", "-pk")[:LATEST]),
    )


def _line(state: str, here: Mapping[str, Any], paid: Mapping[str, Any]) -> StageLine:
    return StageLine(
        stage=str(state),
        label=str(ItemState(state).label),
        here=here.get("here", 0),
        busy=here.get("busy", 0),
        calls=paid.get("calls", 0),
        seconds=paid["ms"] / 1000 if paid else None,
        input_tokens=paid.get("input") or 0,
        output_tokens=paid.get("output") or 0,
        cost_usd=paid.get("cost"),
    )


@dataclass(frozen=True, slots=True)
class CallShown:
    """A call of a model for one row.

    Attributes:
        results: what the tools had answered before it, cut at ``MOST_OBSERVED`` characters.
        asked: the tools it asks for, each with its arguments.
    """

    stage: str
    attempt: int
    results: list[tuple[str, str]]
    thought: str
    text: str
    asked: list[tuple[str, Mapping[str, Any]]]
    input_tokens: int
    output_tokens: int
    cost_usd: Decimal | None
    seconds: float


@dataclass(frozen=True, slots=True)
class ItemTrace:
    """One candidate row with everything that was asked for it, in order; at most ``MOST_CALLS``."""

    item: GenerationItem
    calls: list[CallShown]


def item_trace(*, actor: Actor, job: GenerationJob, pk: int) -> ItemTrace | None:
    """Return a candidate of a job with its calls, None when the job has no such one, or the actor may not read what it rests on."""
    actor.require("dataset.read")
    items = GenerationItem.objects.visible_to(actor).filter(job=job, pk=pk)
    item = items_readable(items, actor).first()
    if item is None:
        return None
    rows = PaidCall.objects.visible_to(actor).filter(item=item).order_by("pk")[:MOST_CALLS]
    calls = [_call(row) for row in rows]
    if tells_hidden(actor, (text for call in calls for _, text in call.results)):
        return None
    return ItemTrace(item, calls)


def _call(row: PaidCall) -> CallShown:
    turn = message_from_json(row.turn)
    said = turn if isinstance(turn, Turn) else None
    results = [message_from_json(data) for data in row.results]
    return CallShown(
        stage=str(ItemState(row.stage).label),
        attempt=row.attempt,
        results=[(r.name, r.content[:MOST_OBSERVED]) for r in results if isinstance(r, ToolResult)],
        thought=said.reasoning if said else "",
        text=said.text if said else "",
        asked=[(call.name, call.arguments or {}) for call in said.tool_calls] if said else [],
        input_tokens=row.input_tokens,
        output_tokens=row.output_tokens,
        cost_usd=row.cost_usd,
        seconds=row.duration_ms / 1000,
    )
