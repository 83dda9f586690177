"""Have an assistant answer a row as it answers people: the same modes, forms, helpers and limits, in a run of its own."""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from django.db import transaction

from apps.collections.models import Collection
from apps.conversations.answering.helpers import helper_tools
from apps.conversations.answering.prepare import Answering, answering_execute, answering_of
from apps.conversations.assistants.options import OF_MODE
from apps.conversations.assistants.selectors import version_collections, version_tools
from apps.conversations.display.answer_forms import shown_text
from apps.conversations.memory.selectors import told_of
from apps.conversations.models import AssistantVersion, Mode
from apps.conversations.toolset.results import Scope
from apps.conversations.transcript.selectors import model_default, model_list
from apps.datasets.records.record import Record
from apps.evaluations.arms.delivery import Delivery, is_reached
from apps.evaluations.arms.targets import AssistantTarget, target_read
from apps.evaluations.arms.tool_sets import held
from apps.evaluations.attacks.values import attack_of
from apps.evaluations.models import Trial
from apps.evaluations.results.outcomes import run_outcome
from apps.evaluations.scorers.base import Label
from apps.evaluations.scorers.turns import history_of
from apps.evaluations.trials.services import trial_answered, trial_away, trial_wait
from apps.tools.toolset.guard import Guard
from apps.tools.toolset.selectors import guard_for
from basics.texts import gettext as _
from batches.asking import BatchedCall
from batches.engines import Engine, engine_for
from jobs.context import JobContext
from runs.actors import actor_facts
from runs.models import CallPath, Run
from runs.providers import loop_model, provider_for
from runs.services import Later, run_create, run_stop
from runs.usage import TURN, attribution_of
from tenancy.actors import Actor
from toolloop.events import RunFinished
from toolloop.service import limits_patient

RUN_KIND = "evaluation"
_OUT_OF_MONEY = "budget"


@dataclass(frozen=True, slots=True)
class _Ready:
    run: Run
    answering: Answering
    guard: Guard
    collections: list[int]
    brings: str | None
    """What brings the text that the row plants, see ``Delivery.apply``; None for a row that plants nothing."""
    call: BatchedCall | None
    """Asks the model by batch; None where it is asked directly."""


async def assistant_answer(
    ctx: JobContext, trial: Trial, *, actor: Actor, row: Record, labels: Sequence[Label]
) -> str:
    """Have the trial's assistant answer; the run's end is the job's, and another job scores the answer.

    Where the money is used up the trial waits, and its experiment is paused. Where a call goes with a batch, the run is
    let go, and goes on with the trial.

    Returns:
        How the run ended, "" when it has not; ``parked`` ones are stopped.
    """
    ready = await ctx.in_db(_prepare, ctx, trial, actor, row)
    way = ready.answering
    tenant = trial.experiment.tenant

    def close(run: Run, finished: RunFinished) -> None:
        if finished.limit == _OUT_OF_MONEY:
            trial_wait(trial, finished.error_message or _("A budget is used up. Raise it to continue."))
            return
        text = shown_text(run.answer, way.output is not None)
        outcome = run_outcome(run, labels, shown=text)
        if ready.brings is not None:
            outcome = replace(outcome, is_reached=is_reached(ready.brings, outcome))
        trial_answered(trial, outcome, is_next_job=True)

    only = frozenset(ready.collections)
    scope = Scope(tenant, None, ready.run, ctx.in_db, ready.guard, only)
    try:
        finished = await answering_execute(
            ctx, way, scope, ready.collections, before_finish=close, later=_later(trial, ready.call)
        )
    finally:
        if ready.call is not None:
            await ready.call.engine.api.aclose()
    if finished is not None and finished.status == "parked":
        await ctx.in_db(lambda: run_stop(tenant=tenant, actor=actor, run=ready.run))
    return "" if finished is None else finished.status


def _later(trial: Trial, call: BatchedCall | None) -> Later | None:
    if call is None:
        return None
    return Later(call, call.turn_begins, lambda: trial_away(trial, [call.line_key]))


def version_answering(target: AssistantTarget, version: AssistantVersion | None) -> AssistantVersion | None:
    """Return the version as an arm has it: what the target says takes the place of the version's own.

    It is never saved. Options that another mode does not have are left out.
    """
    # Without tools no mode has anything to go by: the model answers from what it is given.
    mode = Mode.TOOLS if target.tools == "none" else target.mode
    if target.prompt is None and mode is None:
        return version
    made = AssistantVersion(mode=Mode.TOOLS) if version is None else copy.copy(version)
    if target.prompt is not None:
        made.prompt = target.prompt
    if mode is not None:
        made.mode = mode
        made.options = {k: v for k, v in made.options.items() if k in OF_MODE[mode]}
    return made


def _prepare(ctx: JobContext, trial: Trial, actor: Actor, row: Record) -> _Ready:
    tenant = trial.experiment.tenant
    target = target_read(trial.arm.target)
    if not isinstance(target, AssistantTarget):
        raise TypeError(f"{type(target).__name__} is not answered by an assistant")
    stored: AssistantVersion | None = None
    if target.version is not None:
        stored = AssistantVersion.objects.visible_to(actor).get(pk=target.version)
    version = version_answering(target, stored)
    collections = _collections(actor, target, stored)
    model = target.model or ("" if version is None else version.model)
    model = model or model_default(model_list(tenant))
    attack = attack_of(row)
    delivery = None if attack is None else Delivery(attack, target.tools)
    guard = guard_for(
        actor=actor,
        scope=collections,
        tools=None if version is None or stored is None else version_tools(version, collections),
        change=partial(held, tools=target.tools, executes=target.executes)
        if delivery is None
        else delivery.change,
    )
    run = trial.run or _run_create(ctx, trial, actor, model, stored)
    call: BatchedCall | None = None
    if trial.experiment.is_batched:
        engine = engine_for(tenant, model)
        call = _call(ctx, trial, run, engine)
        provider = engine.asked_by(call)
    else:
        provider = provider_for(tenant, model)
    profile = loop_model(provider, model)[1]
    offered: Callable[[], Any] = lambda: answering.toolset  # noqa: E731 - made just below
    beside = [] if stored is None or target.tools == "none" else helper_tools(stored, offered)
    if delivery is not None:
        beside += delivery.beside()
    answering = answering_of(
        version,
        run=run,
        model=model,
        provider=provider,
        guard=guard,
        history=history_of(row),
        collections=collections,
        native=profile is not None and profile.deferred_tools,
        loaded=tuple,
        told=told_of(tenant.pk),
        beside=beside,
    )
    chosen = {"top_k": target.k, "legs": target.legs, "neighbours": target.neighbours}
    settings: dict[str, Any] = {name: value for name, value in chosen.items() if value is not None}
    options = {**answering.options, **target.service}
    answering = replace(
        answering,
        searching=replace(answering.searching, **settings),
        options=options,
        limits=limits_patient(answering.limits, options),
    )
    brings = None
    if delivery is not None:
        names = [tool.name for tool in guard.tools()]
        answering, brings = delivery.apply(answering, model=model, offered=names)
    return _Ready(run, answering, guard, list(collections), brings, call)


def _call(ctx: JobContext, trial: Trial, run: Run, engine: Engine) -> BatchedCall:
    """Return what asks for a run's turns. By the trial, not the run: a run that takes the place of another pays nothing again."""
    return BatchedCall(
        engine=engine,
        tenant_id=trial.tenant_id,
        owner=trial.experiment.topic,
        key=f"{trial.pk}",
        step=0,
        kind=TURN,
        attribution={**attribution_of(run), "experiment": trial.experiment_id},
        context=list,
        in_db=ctx.in_db,
        forgets=False,
    )


def _collections(actor: Actor, target: AssistantTarget, version: AssistantVersion | None) -> dict[int, str]:
    only = None if target.collections is None else frozenset(target.collections)
    if only is None and version is not None:
        only = version_collections(version)
    rows = Collection.objects.visible_to(actor).order_by("name")
    return dict((rows if only is None else rows.filter(pk__in=only)).values_list("pk", "name"))


def _run_create(
    ctx: JobContext, trial: Trial, actor: Actor, model: str, version: AssistantVersion | None
) -> Run:
    facts = {
        "actor": actor_facts(actor),
        "path": CallPath.JOB,
        "experiment": trial.experiment_id,
        "budget_job": trial.experiment.budget_job,
        "assistant": None if version is None else version.assistant_id,
    }
    with transaction.atomic():
        ctx.hold()
        run = run_create(
            tenant=trial.experiment.tenant,
            actor=actor,
            kind=RUN_KIND,
            model=model,
            request={name: value for name, value in facts.items() if value is not None},
        )
        Run.objects.filter(pk=run.pk).update(job_id=ctx.job_id)
        run.job_id = ctx.job_id
        Trial.objects.filter(pk=trial.pk).update(run=run)
        trial.run = run
    return run
