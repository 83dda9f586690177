"""The job of a trial: ask its arm, then score the answer. Each half is kept before the next begins."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from django.conf import settings
from django.db import transaction

from apps.collections.models import Collection
from apps.collections.search import search_run
from apps.conversations import tools as chat_tools
from apps.conversations.assistant_selectors import version_collections, version_tools
from apps.conversations.models import AssistantVersion
from apps.conversations.selectors import model_default, model_list
from apps.datasets.record import Record, from_values
from apps.evaluations.actors import experiment_actor
from apps.evaluations.judging import scorers_make
from apps.evaluations.models import ExperimentState, Trial, TrialState
from apps.evaluations.outcomes import hit_passages, labels_map, outcome_of, run_outcome
from apps.evaluations.scorers.base import Label, Outcome
from apps.evaluations.services import TRIAL_JOB, scores_write, trial_answered, trial_fail
from apps.evaluations.targets import AssistantTarget, ModelTarget, RetrieverTarget, target_read
from apps.tools.guard import Guard
from apps.tools.offer import offer_context
from apps.tools.run_tools import run_toolset
from apps.tools.selectors import collection_tools, guard_for
from basics.errors import DomainError
from jobs.context import JobContext
from jobs.models import Job
from jobs.registry import job
from runs.actors import actor_facts
from runs.models import CallPath, Run
from runs.providers import loop_model, provider_for
from runs.services import (
    CompletionFailed,
    completion_run,
    run_abandon,
    run_create,
    run_execute,
    run_stop,
)
from tenancy.actors import Actor
from toolloop.events import RunFinished
from toolloop.limits import Limits
from toolloop.messages import UserMessage
from toolloop.providers.base import Provider
from toolloop.tools import Toolset

RUN_KIND = "evaluation"
_ASKS = "It asked for a person's approval, which an experiment does not wait for. Allow the tool, or leave it out."


def trial_ended(ended: Job) -> None:
    """End the run and the trial of a job that ended without them."""
    run_abandon(job=ended)
    trial_fail(ended.payload["trial_id"], ended.error_message or "The work was given up.")


@dataclass(frozen=True, slots=True)
class _Work:
    trial: Trial
    actor: Actor
    row: Record
    labels: Sequence[Label]


@dataclass(frozen=True, slots=True)
class _Loop:
    run: Run
    provider: Provider
    system: str
    guard: Guard
    toolset: Toolset
    collections: list[int]


@job(TRIAL_JOB, lane="loop", max_attempts=3, on_end=trial_ended)
async def trial_run(ctx: JobContext, *, trial_id: int) -> None:
    """Bring a trial on by what is next; safe to run again at any point."""
    work = await ctx.in_db(_read, trial_id)
    if work is None:
        return
    if work.trial.state == TrialState.ANSWERING:
        if work.trial.arm.target["kind"] == AssistantTarget.model_fields["kind"].default:
            await _loop(ctx, work)
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
            trial_fail(trial.pk, "The experiment was stopped.")
        return None
    actor = experiment_actor(trial.experiment)
    row = from_values(trial.content.data)
    collections = trial.arm.target.get("collections")
    labels = labels_map(actor, row, collections) if trial.state == TrialState.ANSWERING else ()
    return _Work(trial, actor, row, labels)


def _keep(ctx: JobContext, trial: Trial, outcome: Outcome) -> None:
    with transaction.atomic():
        ctx.hold()
        trial_answered(trial, outcome, is_next_job=False)


def _ask(work: _Work, check: Callable[[], None]) -> Outcome:
    """Ask a retriever or a model; it blocks. What may pass by itself is raised, so that the job is tried again."""
    target = target_read(work.trial.arm.target)
    began = time.perf_counter()
    try:
        if isinstance(target, RetrieverTarget):
            outcome = _search(work, target)
        elif isinstance(target, ModelTarget):
            outcome = _complete(work, target, check)
        else:
            raise TypeError(f"{type(target).__name__} is asked by the loop")
    except DomainError as error:
        if isinstance(error, CompletionFailed) and error.is_retryable:
            raise
        outcome = Outcome(error=error.message)
    took = (time.perf_counter() - began) * 1000
    return replace(outcome, labels=work.labels, latency_ms=took)


def _search(work: _Work, target: RetrieverTarget) -> Outcome:
    rows = Collection.objects.visible_to(work.actor).select_related("space")
    found = search_run(
        tenant=work.trial.experiment.tenant,
        actor=work.actor,
        collections=list(rows.filter(pk__in=target.collections)),
        query=work.row.question,
        k=target.k,
        legs=target.legs,
    )
    return Outcome(
        text="\n\n".join(hit.text for hit in found.hits),
        retrieved=hit_passages(found.hits),
        cost_usd=0.0,
    )


def _complete(work: _Work, target: ModelTarget, check: Callable[[], None]) -> Outcome:
    prompt = work.row.question
    if target.with_sources and work.row.sources:
        passages = "\n\n".join(f"<source>\n{s.quote}\n</source>" for s in work.row.sources)
        prompt = f"{passages}\n\n{prompt}"
    got = completion_run(
        tenant=work.trial.experiment.tenant,
        actor=work.actor,
        model=target.model,
        system=target.system,
        prompt=prompt,
        purpose=RUN_KIND,
        attribution={"experiment": work.trial.experiment_id},
        check=check,
    )
    return Outcome(text=got.text, cost_usd=got.cost_usd)


async def _loop(ctx: JobContext, work: _Work) -> None:
    """Have the loop answer; the run's end is the job's, and another job scores the answer."""
    loop = await ctx.in_db(_loop_prepare, ctx, work)
    tenant = work.trial.experiment.tenant
    only = frozenset(loop.collections)

    def close(run: Run, finished: RunFinished) -> None:
        trial_answered(work.trial, run_outcome(run, work.labels), is_next_job=True)

    finished = await run_execute(
        ctx,
        loop.run,
        toolset=loop.toolset,
        provider=loop.provider,
        system=loop.system,
        history=[UserMessage(work.row.question)],
        limits=Limits(max_steps=12, max_tool_calls=30, max_seconds=float(settings.RUN_SECONDS)),
        context={
            **offer_context(
                tenant=tenant,
                run=loop.run,
                guard=loop.guard,
                collections=loop.collections,
                in_db=ctx.in_db,
            ),
            chat_tools.SCOPE: chat_tools.Scope(tenant, None, loop.run, ctx.in_db, loop.guard, only),
        },
        before_finish=close,
    )
    if finished is not None and finished.status == "parked":
        await ctx.in_db(_unpark, work, loop.run)


def _unpark(work: _Work, run: Run) -> None:
    run_stop(tenant=work.trial.experiment.tenant, actor=work.actor, run=run)
    with transaction.atomic():
        trial_fail(work.trial.pk, _ASKS)


def _loop_prepare(ctx: JobContext, work: _Work) -> _Loop:
    trial, actor = work.trial, work.actor
    tenant = trial.experiment.tenant
    target = target_read(trial.arm.target)
    if not isinstance(target, AssistantTarget):
        raise TypeError(f"{type(target).__name__} is not asked by the loop")
    version: AssistantVersion | None = None
    if target.version is not None:
        version = AssistantVersion.objects.visible_to(actor).get(pk=target.version)
    only = target.collections
    if only is None and version is not None:
        found = version_collections(version)
        only = None if found is None else tuple(found)
    rows = Collection.objects.visible_to(actor).order_by("name")
    if only is not None:
        rows = rows.filter(pk__in=only)
    names = dict(rows.values_list("pk", "name"))
    model = target.model or ("" if version is None else version.model)
    model = model or model_default(model_list(tenant))
    guard = guard_for(
        actor=actor,
        scope=names,
        tools=None if version is None else version_tools(version, names),
    )
    run = trial.run or _run_create(ctx, trial, actor, model)
    provider = provider_for(tenant, model)
    profile = loop_model(provider, model)[1]
    return _Loop(
        run=run,
        provider=provider,
        system=chat_tools.system_prompt(names.values(), "" if version is None else version.prompt),
        guard=guard,
        toolset=run_toolset(
            guard,
            run,
            native=profile is not None and profile.deferred_tools,
            brought=lambda: collection_tools(tenant_id=run.tenant_id, collections=names),
        ),
        collections=list(names),
    )


def _run_create(ctx: JobContext, trial: Trial, actor: Actor, model: str) -> Run:
    with transaction.atomic():
        ctx.hold()
        run = run_create(
            tenant=trial.experiment.tenant,
            actor=actor,
            kind=RUN_KIND,
            model=model,
            request={
                "actor": actor_facts(actor),
                "path": CallPath.JOB,
                "experiment": trial.experiment_id,
            },
        )
        Run.objects.filter(pk=run.pk).update(job_id=ctx.job_id)
        run.job_id = ctx.job_id
        Trial.objects.filter(pk=trial.pk).update(run=run)
        trial.run = run
    return run


def _score(ctx: JobContext, work: _Work) -> None:
    """Score the answer and end trial and job together; it blocks while judges think."""
    trial = work.trial
    outcome = outcome_of(trial)
    made, asks = scorers_make(
        tenant=trial.experiment.tenant,
        actor=work.actor,
        specs=trial.experiment.scorers,
        check=ctx.check,
        attribution={"experiment": trial.experiment_id},
    )
    scores = [(scorer, version, scorer.score(work.row, outcome)) for scorer, version in made]
    with transaction.atomic():
        ctx.hold()
        scores_write(trial, scores, sum(ask.spent_usd for ask in asks))
        ctx.complete()
