"""How an answer came about: what was searched for and found, turn by turn, with calls, tokens, money and times."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import Any

from django.db.models import F, JSONField, Max, Sum
from django.db.models.fields.json import KeyTextTransform, KeyTransform
from django.db.models.functions import Cast

from apps.conversations.display.plans import plan_view
from apps.conversations.models import Message, Turn
from apps.conversations.transcript.shown import call_withhold, run_withheld
from runs.models import ACTIVE, Run, RunStep, ToolCall, UsageRecord
from runs.selectors import run_get
from runs.withheld import Withheld
from tenancy.actors import Actor
from toolloop.usage import BY_RULE

_SUMMARY_MOST, _REASONING_MOST = 300, 4_000
_RANKS = ("vector_rank", "lexical_rank", "exact_rank")


def trace_get(*, actor: Actor, run_pk: int) -> dict[str, Any]:
    """Return the trace of one of the actor's own runs, as JSON values.

    The text of documents is not repeated here; what rests on one that the reader may not see any more is withheld, its name
    too.

    Raises:
        Missing: there is none for the actor.
    """
    run = run_get(actor=actor, pk=run_pk)
    turn = (
        Turn.objects.visible_to(actor)
        .filter(run=run)
        .prefetch_related("messages", "citations")
        .order_by("pk")
        .first()
    )
    calls: list[dict[str, Any]] = list(
        ToolCall.objects.filter(tenant_id=run.tenant_id, run=run)
        .annotate(
            summary=KeyTextTransform("summary", "payload"),
            results=Cast(KeyTransform("results", "payload"), JSONField()),
        )
        .order_by("pk")
        .values(  # type: ignore[arg-type]
            "step",
            "call_id",
            "parent_call_id",
            "name",
            "status",
            "error_code",
            "arguments",
            "arguments_masked",
            "decision",
            "decision_why",
            "duration_ms",
            "started_at",
            "summary",
            "results",
            "content",
        )
    )
    found = run_withheld(actor, run)
    for call in calls if found else ():
        call_withhold(call, found)
    for call in calls:
        hidden = call.pop("arguments_masked")
        call["arguments"] = call["arguments"] if hidden is None else hidden
    question = _said(turn)
    numbers = (
        {}
        if turn is None
        else {c.chunk_ref: c.number for c in sorted(turn.citations.all(), key=lambda c: -c.number)}
    )
    plan = plan_view(calls, is_over=run.status not in ACTIVE)
    return {
        "run_id": run.pk,
        "model": run.model,
        "status": str(run.status),
        "question": question,
        "searched_for": _searched_for(calls, question),
        "plan": None
        if plan is None
        else {
            "reasoning": plan.reasoning,
            "attempt": plan.attempt,
            "steps": [
                {"number": s.number, "action": s.action, "description": s.description, "status": s.status}
                for s in plan.steps
            ],
        },
        "steps": _steps(run, calls, numbers, found),
        "removed_citations": 0 if turn is None else turn.removed_markers,
        "limit_reached": run.limit_reached,
        "usage": run.usage,
        "cost_usd": run.cost_usd,
        "queued_at": run.created_at,
        "started_at": run.started_at,
        "finished_at": run.finished_at,
    }


def _said(turn: Turn | None) -> str:
    messages = () if turn is None else turn.messages.all()
    return next((m.text for m in messages if m.author == Message.Author.USER), "")


def _searched_for(calls: Sequence[Mapping[str, Any]], question: str) -> str:
    """Return the question as it was rewritten for the first search, "" when it was taken as it stands."""
    for call in calls:
        arguments = call["arguments"]
        if isinstance(call["results"], list) and isinstance(arguments, Mapping):
            query = str(arguments.get("query", ""))
            return "" if " ".join(query.split()) == " ".join(question.split()) else query
    return ""


def _steps(
    run: Run, calls: Sequence[Mapping[str, Any]], numbers: Mapping[int, int], found: Withheld
) -> list[dict[str, Any]]:
    used = {
        row["step"]: row
        for row in UsageRecord.objects.filter(tenant_id=run.tenant_id, run_id=run.pk)
        .values("step")
        .annotate(
            input=Sum("input_tokens"),
            output=Sum("output_tokens"),
            cached=Sum("cached_tokens"),
            cost=Sum("cost_usd"),
            tier=Max("service_tier"),
        )
    }
    rows = (
        RunStep.objects.filter(tenant_id=run.tenant_id, run=run)
        .annotate(
            stop=KeyTextTransform("stop", "turn"),
            detail=KeyTextTransform("stop_detail", "turn"),
            model=KeyTextTransform("model", "turn"),
            reasoning=KeyTextTransform("reasoning", "turn"),
        )
        .order_by("index")
        .values("index", "stop", "detail", "model", "reasoning", at=F("created_at"))
    )
    steps = []
    for row in rows:
        spent: Mapping[str, Any] = used.get(row["index"], {})
        cost: Decimal | None = spent.get("cost")
        steps.append(
            {
                "index": row["index"],
                "model": row["model"],
                "is_by_rule": row["detail"] == BY_RULE,
                "stop": row["stop"],
                "reasoning": found.text(row["reasoning"] or "")[:_REASONING_MOST],
                "input_tokens": spent.get("input") or 0,
                "cached_tokens": spent.get("cached") or 0,
                "output_tokens": spent.get("output") or 0,
                "cost_usd": cost,
                "service_tier": spent.get("tier") or "",
                "finished_at": row["at"],
                "calls": [_call(call, numbers) for call in calls if call["step"] == row["index"]],
            }
        )
    return steps


def _call(call: Mapping[str, Any], numbers: Mapping[int, int]) -> dict[str, Any]:
    found = call["results"] if isinstance(call["results"], list) else []
    told = call["summary"] or call["content"].strip().split("\n", 1)[0]
    return {
        "id": call["call_id"],
        "parent_id": call["parent_call_id"],
        "name": call["name"],
        "status": str(call["status"]),
        "error_code": call["error_code"],
        "arguments": call["arguments"],
        "decision": call["decision"],
        "decision_why": call["decision_why"],
        "summary": told[:_SUMMARY_MOST],
        "started_at": call["started_at"],
        "duration_ms": call["duration_ms"],
        "results": [_hit(rank, row, numbers) for rank, row in enumerate(found, 1) if _is_hit(row)],
    }


def _is_hit(row: Any) -> bool:
    return isinstance(row, dict) and isinstance(row.get("chunk_id"), int)


def _hit(rank: int, row: Mapping[str, Any], numbers: Mapping[int, int]) -> dict[str, Any]:
    return {
        "rank": rank,
        "chunk_id": row["chunk_id"],
        "document_id": row.get("document_id"),
        "document": str(row.get("document", "")),
        "page": row.get("page"),
        "score": row.get("score"),
        **{name: row.get(name) for name in _RANKS},
        "citation": numbers.get(row["chunk_id"]),
    }
