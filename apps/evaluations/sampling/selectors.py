"""Reads of online sampling: the rules with this month's figures, the trend of each score, and the lowest answers."""

from __future__ import annotations

import datetime
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from django.db.models import Avg, Count, Q, QuerySet, Sum
from django.db.models.functions import TruncDate
from django.utils import timezone

from apps.conversations.models import Conversation
from apps.evaluations.models import LiveSample, LiveScore, SampleState, SamplingRule
from basics.errors import Missing
from tenancy.actors import Actor

DAYS = 30


@dataclass(frozen=True, slots=True)
class RuleFigures:
    """A rule and what it did this month.

    Attributes:
        skipped: answers that were chosen and not scored, for want of money.
    """

    rule: SamplingRule
    done: int
    waiting: int
    failed: int
    skipped: int
    spent: Decimal


def rule_list(*, actor: Actor) -> QuerySet[SamplingRule]:
    """Return the workspace's sampling rules."""
    actor.require("evaluation.read")
    rows: QuerySet[SamplingRule] = SamplingRule.objects.visible_to(actor)
    return rows.select_related("assistant").order_by("name", "pk")


def rule_get(*, actor: Actor, pk: int) -> SamplingRule:
    """Return one rule. Raises Missing."""
    found = rule_list(actor=actor).filter(pk=pk).first()
    if found is None:
        raise Missing("sampling rule")
    return found


def rules_figures(*, actor: Actor) -> list[RuleFigures]:
    """Return every rule with this month's figures, in two queries."""
    start = timezone.now().replace(day=1, hour=0, minute=0, second=0, microsecond=0)
    rows = LiveSample.objects.visible_to(actor).filter(created_at__gte=start)
    counts = {state: Count("pk", filter=Q(state=state)) for state in SampleState.values}
    by_rule: dict[int, dict[str, Any]] = {
        row["rule"]: dict(row) for row in rows.values("rule").annotate(spent=Sum("cost_usd"), **counts)
    }
    found = []
    for rule in rule_list(actor=actor):
        row = by_rule.get(rule.pk, {})
        numbers = {s: int(row.get(s, 0)) for s in ("done", "waiting", "failed", "skipped")}
        found.append(RuleFigures(rule, spent=Decimal(row.get("spent") or 0), **numbers))
    return found


@dataclass(frozen=True, slots=True)
class Trend:
    """One score of one rule over the last days.

    Attributes:
        days: day, mean, answers; days without a score are left out.
        mean: over all of them.
        is_judged: judges gave it: no more than a hint until people were found to agree.
    """

    name: str
    days: Sequence[tuple[datetime.date, float, int]]
    mean: float
    count: int
    is_judged: bool


def rule_trend(*, actor: Actor, rule: SamplingRule, days: int = DAYS) -> list[Trend]:
    """Return the daily means (UTC) of a rule's scores, in one query."""
    actor.require("evaluation.read")
    since = timezone.now() - datetime.timedelta(days=days)
    rows = LiveScore.objects.visible_to(actor).filter(sample__rule=rule, at__gte=since, value__isnull=False)
    per_day = rows.annotate(day=TruncDate("at", tzinfo=datetime.UTC)).values_list(
        "name", "author_kind", "day"
    )
    found: dict[tuple[str, str], list[tuple[datetime.date, float, int]]] = {}
    for name, kind, day, mean, count in per_day.annotate(m=Avg("value"), n=Count("pk")).order_by(
        "name", "author_kind", "day"
    ):
        found.setdefault((name, kind), []).append((day, mean, count))
    made = []
    for (name, kind), given in found.items():
        total = sum(count for _, _, count in given)
        mean = sum(m * count for _, m, count in given) / total
        made.append(Trend(name, given, mean, total, kind == "judge"))
    return made


@dataclass(frozen=True, slots=True)
class Low:
    """An answer with a low score. ``conversation`` is None where it is another person's: then no word of it is shown."""

    score: LiveScore
    conversation: Conversation | None


def lowest(*, actor: Actor, rule: SamplingRule, most: int = 10) -> list[Low]:
    """Return the lowest scores of the last days; what was said is shown only to who may see the conversation."""
    actor.require("evaluation.read")
    since = timezone.now() - datetime.timedelta(days=DAYS)
    rows = LiveScore.objects.visible_to(actor).filter(sample__rule=rule, at__gte=since, value__isnull=False)
    scores = list(rows.select_related("sample__turn").order_by("value", "-at")[:most])
    mine = {
        row.pk: row
        for row in Conversation.objects.visible_to(actor).filter(
            pk__in={score.sample.turn.conversation_id for score in scores}
        )
    }
    return [Low(score, mine.get(score.sample.turn.conversation_id)) for score in scores]
