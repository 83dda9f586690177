"""The job of a trial: ask its arm, then score the answer. Each half is kept before the next begins."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from django.db import transaction

from apps.collections.models import Collection
from apps.collections.search import search_run
from apps.datasets.records.record import Record, from_values
from apps.evaluations.arms.delivery import prompt_of
from apps.evaluations.arms.targets import (
    AssistantTarget,
    ModelTarget,
    ReferenceTarget,
    RetrieverTarget,
    target_read,
)
from apps.evaluations.attacks.values import attack_of, hidden_instruction
from apps.evaluations.compare.pairs import pairs_due, pairs_judge, pairwise_models
from apps.evaluations.judges.asking import ByBatch, CachedAsk
from apps.evaluations.judges.scoring import is_lexical, scorers_make
from apps.evaluations.models import ExperimentState, Preference, Trial, TrialState
from apps.evaluations.results.actors import experiment_actor
from apps.evaluations.results.outcomes import hit_passages, labels_map, outcome_of
from apps.evaluations.scorers.base import Label, ScoredPassage, ScoreValue, TargetResult
from apps.evaluations.scorers.turns import history_of, query_of
from apps.evaluations.trials.answering import RUN_KIND, assistant_answer
from apps.evaluations.trials.services import (
    TRIAL_JOB,
    JudgeUse,
    scores_write,
    trial_answered,
    trial_away,
    trial_fail,
    trial_wait,
)
from basics.errors import DomainError
from basics.texts import gettext as _
from basics.texts import gettext_noop
from batches.asking import completion_batched
from batches.awaited import AnswersAwaited, together
from batches.engines import engine_for
from budgets.ledger import EXCEEDED, BillingAccount
from jobs.context import JobContext
from jobs.models import Job
from jobs.registry import job
from runs.services import CompletionFailed, completion_prepare, completion_run, run_abandon
from tenancy.actors import Actor

_ASKS = gettext_noop(
    "A tool call needed approval, and experiments don't wait for one. Allow the tool, or leave it out."
)


def trial_ended(ended: Job) -> None:
    """End the run and the trial of a job that ended without them."""
    run_abandon(job=ended)
    trial_fail(ended.payload["trial_id"], ended.error_message or _("The work was abandoned."))


@dataclass(frozen=True, slots=True)
class _Work:
    trial: Trial
    actor: Actor
    row: Record
    labels: Sequence[Label]

    @property
    def billing_account(self) -> BillingAccount:
        """Return on whose account everything goes that the trial asks: the experiment may have a budget of its own."""
        experiment, actor = self.trial.experiment, self.actor
        return BillingAccount(
            experiment.tenant_id, actor.user_id, actor.api_key_id, job_id=experiment.budget_job
        )


@job(TRIAL_JOB, lane="loop", max_attempts=3, on_end=trial_ended)
async def trial_run(ctx: JobContext, *, trial_id: int) -> None:
    """Bring a trial on by what is next; safe to run again at any point."""
    work = await ctx.in_db(_read, trial_id)
    if work is None:
        return
    try:
        await _bring_on(ctx, work)
    except AnswersAwaited as awaited:
        await ctx.in_db(_let_go, ctx, work.trial, awaited.keys)
    except CompletionFailed as error:
        if error.code != EXCEEDED:
            raise
        await ctx.in_db(_wait, ctx, work.trial, error.message)


async def _bring_on(ctx: JobContext, work: _Work) -> None:
    if work.trial.state == TrialState.ANSWERING:
        if work.trial.arm.target["kind"] == AssistantTarget.model_fields["kind"].default:
            ended = await assistant_answer(
                ctx, work.trial, actor=work.actor, row=work.row, labels=work.labels
            )
            if ended == "parked":
                await ctx.in_db(_refuse, work)
            return
        outcome = await ctx.blocking(lambda: _ask(work, ctx.check))
        await ctx.in_db(_keep, ctx, work.trial, outcome)
    await ctx.blocking(lambda: _score(ctx, work))


def _read(trial_id: int) -> _Work | None:
    """Read what a trial needs; None when there is nothing to do any more. Raises DomainError: its person has left."""
    trial: Trial | None = (
        Trial.objects.select_related("experiment__tenant", "arm", "content", "run")
        .filter(pk=trial_id, state__in=(TrialState.ANSWERING, TrialState.SCORING))
        .first()
    )
    if trial is None:
        return None
    if trial.experiment.state == ExperimentState.STOPPED:
        with transaction.atomic():
            trial_fail(trial.pk, _("The experiment was stopped."))
        return None
    actor = experiment_actor(trial.experiment)
    row = from_values(trial.content.data)
    collections = trial.arm.target.get("collections")
    labels = labels_map(actor, row, collections) if trial.state == TrialState.ANSWERING else ()
    return _Work(trial, actor, row, labels)


def _keep(ctx: JobContext, trial: Trial, outcome: TargetResult) -> None:
    with transaction.atomic():
        ctx.hold()
        ctx.advanced()
        trial_answered(trial, outcome, is_next_job=False)


def _wait(ctx: JobContext, trial: Trial, reason: str) -> None:
    with transaction.atomic():
        ctx.hold()
        trial_wait(trial, reason)
        ctx.complete()


def _let_go(ctx: JobContext, trial: Trial, keys: Sequence[str]) -> None:
    with transaction.atomic():
        ctx.hold()
        ctx.complete()
        trial_away(trial, keys)


def _refuse(work: _Work) -> None:
    with transaction.atomic():
        trial_fail(work.trial.pk, _(_ASKS))


def _ask(work: _Work, check: Callable[[], None]) -> TargetResult:
    """Ask a retriever or a model; it blocks. What may pass by itself is raised, so that the job is tried again."""
    target = target_read(work.trial.arm.target)
    began = time.perf_counter()
    try:
        if isinstance(target, RetrieverTarget):
            outcome = _search(work, target)
        elif isinstance(target, ModelTarget):
            outcome = _complete(work, target, check)
        elif isinstance(target, ReferenceTarget):
            outcome = _stands(work.row)
        else:
            raise TypeError(f"{type(target).__name__} is asked by the loop")
    except DomainError as error:
        if isinstance(error, CompletionFailed) and (error.is_retryable or error.code == EXCEEDED):
            raise
        outcome = TargetResult(error=error.message)
    took = (time.perf_counter() - began) * 1000
    return replace(outcome, labels=work.labels, latency_ms=took)


def _stands(row: Record) -> TargetResult:
    passages = [ScoredPassage(None, s.document_id, s.start, s.end, s.quote, s.document) for s in row.sources]
    return TargetResult(text=row.answer, retrieved=passages, cost_usd=0.0)


def _search(work: _Work, target: RetrieverTarget) -> TargetResult:
    rows = Collection.objects.visible_to(work.actor).select_related("space")
    found = search_run(
        tenant=work.trial.experiment.tenant,
        actor=work.actor,
        collections=list(rows.filter(pk__in=target.collections)),
        query=query_of(work.row),
        k=target.k,
        legs=target.legs,
        billing_account=work.billing_account,
        is_patient=True,
    )
    return TargetResult(
        text="\n\n".join(hit.text for hit in found.hits), retrieved=hit_passages(found.hits), cost_usd=0.0
    )


def _complete(work: _Work, target: ModelTarget, check: Callable[[], None]) -> TargetResult:
    question, system = work.row.question, target.system
    attack = attack_of(work.row)
    if attack is not None:
        question = prompt_of(attack, question)
        system = "\n\n".join(part for part in (system, hidden_instruction(attack)) if part)
    elif target.with_sources and work.row.sources:
        passages = "\n\n".join(f"<source>\n{s.quote}\n</source>" for s in work.row.sources)
        question = f"{passages}\n\n{question}"
    experiment = work.trial.experiment
    asked: dict[str, Any] = {
        "tenant": experiment.tenant,
        "actor": work.actor,
        "model": target.model,
        "system": system,
        "prompt": history_of(work.row, question),
        "purpose": RUN_KIND,
        "attribution": {"experiment": work.trial.experiment_id},
        "check": check,
        "billing_account": work.billing_account,
        "options": target.service,
    }
    if experiment.is_batched:
        engine = engine_for(experiment.tenant, target.model)
        got = completion_batched(
            completion_prepare(**asked, provider=engine.provider),
            engine=engine,
            owner=experiment.topic,
            key=f"{work.trial.pk}",
        )
    else:
        got = completion_run(**asked)
    return TargetResult(text=got.text, cost_usd=got.cost_usd, is_reached=attack is not None)


def _score(ctx: JobContext, work: _Work) -> None:
    """Score the answer and end trial and job together; it blocks while judges think."""
    trial = work.trial
    experiment = trial.experiment
    outcome = outcome_of(trial)
    common: dict[str, Any] = {
        "attribution": {"experiment": trial.experiment_id},
        "billing_account": work.billing_account,
        "by_batch": ByBatch(experiment.topic, trial.pk) if experiment.is_batched else None,
    }
    made, asks = scorers_make(
        tenant=experiment.tenant,
        actor=work.actor,
        specs=experiment.scorers,
        check=ctx.check,
        repeats=experiment.judge_repeats,
        **common,
    )
    judges: list[tuple[str, CachedAsk | None]] = [
        (
            model,
            None
            if is_lexical(model)
            else CachedAsk(experiment.tenant, work.actor, model, ctx.check, **common),
        )
        for model in pairwise_models(experiment.scorers)
    ]
    asks += [ask for _, ask in judges if ask is not None]
    others = pairs_due(trial) if judges else []
    preferences: list[Preference] = []

    def compare() -> Sequence[ScoreValue]:
        preferences.extend(pairs_judge(trial, work.row, others, judges))
        return ()

    asked: list[Callable[[], Sequence[ScoreValue]]] = [
        partial(scorer.score, work.row, outcome) for scorer, _ in made
    ]
    values = together([*asked, compare])[:-1]
    scores = [(*one, given) for one, given in zip(made, values, strict=True)]
    use = JudgeUse(
        sum(ask.spent_usd for ask in asks), sum(ask.asked for ask in asks), sum(ask.cached for ask in asks)
    )
    with transaction.atomic():
        ctx.hold()
        scores_write(trial, scores, use, preferences)
        ctx.complete()
