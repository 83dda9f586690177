"""What requests to models used and cost, as the columns of ``UsageRecord``, and summed up again."""

from __future__ import annotations

import datetime
from decimal import Decimal
from typing import Any

from django.db.models import Count, Sum

from basics.metrics import MODEL_COST, MODEL_TOKENS, OTHER, bounded
from runs.models import Run, UsageRecord
from toolloop.metering import UsageEvent
from toolloop.providers.profiles import list_name
from toolloop.providers.registry import PROVIDERS
from toolloop.reservations import charged_usd
from toolloop.storable import json_storable, text_storable
from toolloop.tokens import Usage

TURN = "turn"
LOST = "lost"
STOPPED = "stopped"
HELPER = "helper"
_FACTS = ("conversation", "request_id", "assistant", "budget_job")


def attribution_of(run: Run) -> dict[str, Any]:
    """Return on whose account a run's requests go: its kind, and the facts it was created with."""
    actor = run.request.get("actor") or {}
    facts = {name: run.request[name] for name in _FACTS if run.request.get(name)}
    return {"run_kind": run.kind, "api_key_id": actor.get("api_key_id"), **facts}


def usage_kind(event: UsageEvent, otherwise: str = TURN) -> str:
    """Return what a record of a request is called: for what it was, or that it was stopped, or billed in vain."""
    if event.is_stopped:
        return STOPPED
    return LOST if event.is_lost else otherwise


def usage_count(provider: str, model: str, usage: Usage, cost_usd: float | None) -> None:
    """Count for ``/metrics`` what a request used. Workspaces name models as they like: those without a list price are one."""
    labels = bounded(provider, PROVIDERS), list_name(provider, model) or OTHER
    MODEL_TOKENS.add(*labels, "input", amount=max(0, usage.input_total - usage.cached_read))
    MODEL_TOKENS.add(*labels, "cached", amount=usage.cached_read)
    MODEL_TOKENS.add(*labels, "output", amount=usage.output_total)
    MODEL_COST.add(*labels, amount=cost_usd or 0.0)


def usage_columns(event: UsageEvent) -> dict[str, Any]:
    """Count one request and return its record; see ``usage_kind`` for those of which no turn came."""
    usage = event.usage
    usage_count(event.provider, event.model, usage, event.cost_usd)
    return {
        "step": event.step,
        "kind": usage_kind(event),
        "provider": text_storable(event.provider)[:40],
        "model": text_storable(event.model)[:120],
        "service_tier": text_storable(event.service_tier)[:40],
        "input_tokens": usage.input_total,
        "cached_tokens": usage.cached_read,
        "cache_write_tokens": usage.cache_write,
        "output_tokens": usage.output_total,
        "reasoning_tokens": usage.reasoning,
        "cost_usd": None if event.cost_usd is None else f"{event.cost_usd:.8f}",
        "charged_usd": f"{charged_usd(usage, event.cost_usd, event.service_tier):.8f}",
        "hold_id": event.hold,
        "duration_ms": None if event.seconds is None else round(event.seconds * 1000),
        "attribution": json_storable(dict(event.metadata)),
    }


def usage_recorded(run_id: int, *, steps: range | None = None) -> Usage:
    """Return what a run has used so far, by its records; with ``steps``, what these model turns used."""
    rows = UsageRecord.objects.filter(run_id=run_id)
    if steps is not None:
        rows = rows.filter(step__gte=steps.start, step__lt=steps.stop)
    sums = rows.aggregate(
        input_total=Sum("input_tokens", default=0),
        cached_read=Sum("cached_tokens", default=0),
        cache_write=Sum("cache_write_tokens", default=0),
        output_total=Sum("output_tokens", default=0),
        reasoning=Sum("reasoning_tokens", default=0),
        requests=Count("pk"),
    )
    return Usage(**{name: int(value) for name, value in sums.items()})


def conversation_cost(
    *, tenant_id: int, user_id: int, conversation: int, since: datetime.datetime
) -> Decimal | None:
    """Return what all requests to models for a conversation have cost in USD, whatever has become of their runs.

    So titles count, and answers that were asked for again. None where no price is known.

    Args:
        user_id, since: whose it is and when it began, for the index.
    """
    rows = UsageRecord.objects.filter(
        tenant_id=tenant_id, user_id=user_id, at__gte=since, attribution__conversation=conversation
    )
    total: Decimal | None = rows.aggregate(total=Sum("cost_usd"))["total"]
    return total
