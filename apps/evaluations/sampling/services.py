"""Writes of online sampling: the rules, which answers they choose, and what those scored."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import Any

from django.db import transaction
from django.db.models import Max, Sum
from django.utils import timezone

from apps.conversations.display.marks import marks_of
from apps.conversations.models import Assistant, Citation, Message, Turn
from apps.evaluations.experiments.choices import scorer_checked
from apps.evaluations.judges.scoring import is_lexical, judge_models
from apps.evaluations.judges.services import rubrics_seed
from apps.evaluations.models import LiveSample, LiveScore, SampleState, SamplingRule, ScoreAuthor
from apps.evaluations.scorers.base import Scorer, ScoreValue
from basics.errors import Conflict, Invalid, Missing
from basics.texts import gettext as _
from basics.texts import gettext_noop
from jobs.services import job_enqueue
from runs.actors import actor_facts
from runs.models import RunStatus
from tenancy.actors import Actor, system_actor
from tenancy.models import Tenant
from tenancy.services import audit_record
from toolloop.storable import text_storable

SAMPLE_JOB = "evaluations.sample_score"
LIVE_SCORERS = (
    "rubric",
    "faithfulness",
    "answer_relevancy",
    "regex",
    "json_schema",
    "forbidden_tools",
    "loop_ends",
)
"""Scorers that need no reference answer."""
_MOST_RULES = 20
_NO_MONEY = gettext_noop("The month's budget is used up, or the price of the first score is not known yet.")


def sampling_rule_create(
    *,
    tenant: Tenant,
    actor: Actor,
    name: str,
    rate: float,
    scorers: Sequence[Mapping[str, Any]],
    budget_usd: Decimal,
    takes_doubtful: bool = False,
    assistant: int | None = None,
) -> SamplingRule:
    """Have live answers scored from now on.

    Judges read questions and answers of everybody in the workspace, so an admin decides.

    Args:
        rate: share of answers, 0 to 1.
        scorers: of ``LIVE_SCORERS``, as an experiment takes them.
        budget_usd: what judges may cost in a calendar month (UTC); answers beyond it are counted and not scored.
        takes_doubtful: take every answer without a source or with an unsupported sentence too.
        assistant: only its answers; None for all.

    Raises:
        Invalid: what is wrong, with its field. Missing: no such assistant. Conflict: ``too_many_rules``.
    """
    actor.require("tool.manage")
    actor.require("evaluation.write")
    name = " ".join(name.split())
    _require(bool(name) and len(name) <= 120, "name", _("Give the rule a name of at most 120 characters."))
    _require(0 <= rate <= 1, "rate", _("The rate is a share from 0 to 1."))
    _require(
        rate > 0 or takes_doubtful,
        "rate",
        _("A rate of 0 selects nothing. Include doubtful answers, or raise it."),
    )
    _require(budget_usd.is_finite() and budget_usd >= 0, "budget_usd", _("The budget must be 0 or more."))
    _require(bool(scorers), "scorers", _("Choose at least one scorer."))
    for spec in scorers:
        known = spec.get("kind") in LIVE_SCORERS
        _require(
            known,
            "scorers",
            _("Live answers have no reference. Choose among: %(live_scorers)s.")
            % {"live_scorers": ", ".join(LIVE_SCORERS)},
        )
    if assistant is not None and not Assistant.objects.visible_to(actor).filter(pk=assistant).exists():
        raise Missing("assistant")
    rubrics_seed(tenant=tenant, actor=actor)
    kept = [scorer_checked(tenant, actor, spec) for spec in scorers]
    with transaction.atomic():
        if SamplingRule.objects.visible_to(actor).count() >= _MOST_RULES:
            raise Conflict(
                "too_many_rules",
                _("This workspace already has %(most_rules)s rules. Delete one first.")
                % {"most_rules": _MOST_RULES},
            )
        row: SamplingRule = SamplingRule.objects.create(
            tenant=tenant,
            name=name,
            rate=rate,
            takes_doubtful=takes_doubtful,
            assistant_id=assistant,
            scorers=kept,
            budget_usd=budget_usd,
            actor=actor_facts(actor),
            created_by_id=actor.user_id,
        )
        audit_record(
            tenant=tenant,
            actor=actor,
            action="sampling_rule.create",
            object=row,
            data={"rate": rate, "budget_usd": str(budget_usd)},
        )
    return row


def sampling_rule_pause(*, tenant: Tenant, actor: Actor, rule: SamplingRule) -> SamplingRule:
    """Choose no further answers. Raises Missing."""
    return _switched(tenant, actor, rule, is_active=False)


def sampling_rule_resume(*, tenant: Tenant, actor: Actor, rule: SamplingRule) -> SamplingRule:
    """Choose answers again. Raises Missing."""
    return _switched(tenant, actor, rule, is_active=True)


def sampling_rule_delete(*, tenant: Tenant, actor: Actor, rule: SamplingRule) -> None:
    """Delete a rule with its samples and their scores. Raises Missing."""
    actor.require("tool.manage")
    with transaction.atomic():
        row = _rule(actor, rule)
        audit_record(tenant=tenant, actor=actor, action="sampling_rule.delete", object=row)
        row.delete()


HAS_RULES = "EXISTS (SELECT FROM evaluations_samplingrule s WHERE s.tenant_id = t.tenant_id AND s.is_active)"
"""Whether ``answer_sample`` has anything to do about a turn ``t``."""


def answer_sample(turn: Turn) -> list[LiveSample]:
    """Take an answer that has just ended where a rule chooses it, and have a job score it.

    The same answer is always chosen or always left by a rule's rate, so a turn that is told of twice is taken once.
    """
    if turn.run.status != RunStatus.COMPLETED:
        return []
    version = turn.assistant_version
    rules = SamplingRule.objects.filter(tenant_id=turn.tenant_id, is_active=True).order_by("pk")
    doubtful: bool | None = None
    taken = []
    for rule in rules:
        if rule.assistant_id is not None and (version is None or version.assistant_id != rule.assistant_id):
            continue
        is_chosen = _share(rule.pk, turn.pk) < rule.rate
        if not is_chosen and rule.takes_doubtful:
            doubtful = _is_doubtful(turn) if doubtful is None else doubtful
        if is_chosen or (rule.takes_doubtful and doubtful):
            taken += _take(rule, turn, is_doubtful=not is_chosen)
    return taken


def sample_keep(
    sample: LiveSample, scores: Sequence[tuple[Scorer, Sequence[ScoreValue]]], cost_usd: float
) -> None:
    """Keep the scores of a sample, in the current transaction."""
    LiveScore.objects.bulk_create(
        [
            LiveScore(
                tenant_id=sample.tenant_id,
                sample=sample,
                name=value.name[:60],
                value=value.value,
                author_kind=ScoreAuthor.JUDGE if scorer.is_judge else ScoreAuthor.RULE,
                author=scorer.author[:300],
                reason=text_storable(value.reason),
            )
            for scorer, values in scores
            for value in values
        ],
        ignore_conflicts=True,  # a job that was repeated after it had written
    )
    LiveSample.objects.filter(pk=sample.pk).update(
        state=SampleState.DONE, cost_usd=Decimal(f"{cost_usd:.8f}"), finished_at=timezone.now()
    )


def sample_end(sample_id: int, state: str, why: str) -> None:
    """End a sample without scores; harmless when it has ended."""
    LiveSample.objects.filter(pk=sample_id, state=SampleState.WAITING).update(
        state=state, error=text_storable(why), finished_at=timezone.now()
    )


def is_affordable(rule: SamplingRule) -> bool:
    """Return whether one more sample fits the month's budget, each at work reckoned at the dearest so far.

    Until a first one has shown what its judges cost, one is scored at a time.
    """
    start = timezone.now().replace(day=1, hour=0, minute=0, second=0, microsecond=0)
    rows = LiveSample.objects.filter(rule=rule)
    month = rows.filter(created_at__gte=start)
    spent = month.aggregate(usd=Sum("cost_usd"))["usd"] or Decimal(0)
    dearest = rows.aggregate(usd=Max("cost_usd"))["usd"] or Decimal(0)
    waiting = month.filter(state=SampleState.WAITING).count()
    if dearest > 0:
        return bool(spent + dearest * (waiting + 1) <= rule.budget_usd)
    if all(map(is_lexical, judge_models(rule.scorers))):
        return True
    is_priced = rows.filter(state=SampleState.DONE).exists()
    return rule.budget_usd > 0 and (is_priced or not waiting)


def _take(rule: SamplingRule, turn: Turn, *, is_doubtful: bool) -> list[LiveSample]:
    with transaction.atomic():
        # Rules are few: their lock keeps two answers from taking the last of the money at once.
        held = SamplingRule.objects.select_for_update().filter(pk=rule.pk, is_active=True).first()
        if held is None:
            return []
        affordable = is_affordable(held)
        sample, is_new = LiveSample.objects.get_or_create(
            rule=held,
            turn=turn,
            defaults={
                "tenant_id": turn.tenant_id,
                "is_doubtful": is_doubtful,
                "state": SampleState.WAITING if affordable else SampleState.SKIPPED,
                "error": "" if affordable else _NO_MONEY,
                "finished_at": None if affordable else timezone.now(),
            },
        )
        if not is_new or not affordable:
            return []
        sample.job = job_enqueue(
            tenant=Tenant.objects.get(pk=turn.tenant_id),
            actor=system_actor(turn.tenant_id, held.created_by_id),
            kind=SAMPLE_JOB,
            payload={"sample_id": sample.pk},
        )
        sample.save(update_fields=["job"])
    return [sample]


def _share(rule: int, turn: int) -> float:
    """Return a number from 0 to 1 that belongs to this rule and turn, evenly spread."""
    digest = hashlib.sha256(f"{rule}:{turn}".encode()).digest()
    return int.from_bytes(digest[:8], "big") / 2**64


def _is_doubtful(turn: Turn) -> bool:
    answer = Message.objects.filter(turn=turn, author=Message.Author.ASSISTANT).first()
    if answer is None or not answer.text.strip():
        return False
    if any(mark.is_doubt for mark in marks_of(answer)):
        return True
    return not Citation.objects.filter(turn=turn).exists()


def _rule(actor: Actor, rule: SamplingRule) -> SamplingRule:
    row: SamplingRule | None = (
        SamplingRule.objects.visible_to(actor).select_for_update().filter(pk=rule.pk).first()
    )
    if row is None:
        raise Missing("sampling rule")
    return row


def _switched(tenant: Tenant, actor: Actor, rule: SamplingRule, *, is_active: bool) -> SamplingRule:
    actor.require("tool.manage")
    with transaction.atomic():
        row = _rule(actor, rule)
        row.is_active = is_active
        row.save(update_fields=["is_active"])
        done = "sampling_rule.resume" if is_active else "sampling_rule.pause"
        audit_record(tenant=tenant, actor=actor, action=done, object=row)
    return row


def _require(holds: bool, field: str, message: str) -> None:
    if not holds:
        raise Invalid("sampling_invalid", message, data={"fields": {field: [message]}})
