"""Start, pause, resume and stop the generation of rows."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import asdict, replace
from decimal import Decimal, InvalidOperation
from typing import Any

from django.db import transaction
from django.db.models.functions import Now
from django.utils.translation import gettext_lazy

from apps.collections.display.selectors import collections_named
from apps.collections.models import ChunkKind
from apps.datasets.generation import prompts
from apps.datasets.generation.claiming import row_ceiling
from apps.datasets.generation.corpus import chunks_open, fingerprint_of, pools_read
from apps.datasets.generation.plan import candidates_of, slots_of
from apps.datasets.generation.row_languages import tag_of
from apps.datasets.generation.rule_pools import candidates_by_rules
from apps.datasets.generation.settings import Settings, settings_checked
from apps.datasets.models import (
    JOB_ACTIVE,
    Dataset,
    GenerationItem,
    GenerationJob,
    GenerationState,
    ItemState,
    QuestionType,
)
from basics.errors import Conflict, Denied, Invalid
from basics.texts import gettext as _
from basics.texts import number_told
from batches.engines import batches_require
from batches.services import batches_end, batches_resume
from erasure.holds import removal_lock
from jobs.models import ACTIVE, Job
from jobs.notify import notify
from jobs.services import job_cancel, job_enqueue
from runs.actors import actor_facts
from runs.providers import is_extractive, provider_for, service_problem
from tenancy.actors import Actor
from tenancy.models import Tenant
from tenancy.services import audit_record

DRIVE = "datasets.generate"
BATCH = 1000
RULES_ROUNDS = 20
"""Passages looked at for a wanted row without a language model: templates fit few sentences, and trying costs nothing."""


def generation_start(
    *,
    tenant: Tenant,
    actor: Actor,
    dataset: Dataset,
    model: str,
    options: Mapping[str, Any],
    budget_usd: Decimal | str | None = None,
    probe: int = 0,
) -> GenerationJob:
    """Plan a job and let workers begin.

    Args:
        model: who writes questions and answers, with its routing prefix; ``extractive`` uses rules.
        options: see ``Settings``.
        budget_usd: never passed; None for no limit.
        probe: pause after so many ended items, with an estimate of the whole; 0 goes on to the end.

    Raises:
        Denied: the actor may not, or stands for no person.
        Invalid: a setting, the model or the budget is wrong, or there is no passage to ask about.
    """
    actor.require("dataset.write")
    actor.require("search.run")
    actor.require(
        "tool.run"
    )  # Answers are found by tools; without them every row would say that nothing was found.
    if actor.user_id is None:
        raise Denied("person_needed", _("Generation needs a person. Use a key that acts for one."))
    settings = settings_checked(options)
    collections = collections_named(actor=actor, pks=list(settings.collections))
    models = list(dict.fromkeys((model, settings.judge_model or model)))
    asked = [name for name in models if not is_extractive(name)] or models
    for name in models:
        _language_model(tenant, name)
    for name in asked:  # rules beside a judge are asked nothing, so how they are served is not said of them
        if problem := service_problem(tenant, name, settings.service):
            raise _field(next(iter(settings.service)), problem)
    if settings.is_batched:
        _batches_checked(tenant, {model, settings.judge_model or model})
    if is_extractive(model):
        _rules_checked(settings)
        if "rounds" not in options:
            settings = replace(settings, rounds=RULES_ROUNDS)
    budget = _budget_checked(tenant, model, settings, budget_usd)
    slots = slots_of(settings.rows, settings.types, settings.difficulty)
    pools = pools_read(actor, settings, slots)
    if is_extractive(model):
        names = {collection.pk: collection.name for collection in collections}
        candidates = candidates_by_rules(actor, names, slots, pools, settings.rounds)
    else:
        candidates = candidates_of(slots, pools, settings.rounds)
    if not any(pools.values()):
        raise Invalid(
            "nothing_to_ask",
            _(
                "These collections have no passages to ask about. Add documents that everyone can see, wait until they are ready, or choose other types."
            ),
            data={
                "fields": {
                    "collections": [_("There are no passages to ask about. Choose other collections.")]
                }
            },
        )
    kinds = chunks_open(actor, settings.collections).filter(
        kind__in=[ChunkKind.FUNCTION, ChunkKind.CLASS, ChunkKind.FILE]
    )
    manifest = {
        "corpus": fingerprint_of(actor, settings.collections),
        "collections": [{"id": c.pk, "name": c.name} for c in collections],
        "prompts": prompts.VERSION,
        "model": model,
        "judge": settings.judge_model or model,
        "has_code": QuestionType.CODE in settings.types or kinds.exists(),
        "slots": [asdict(slot) for slot in slots],
    }
    with transaction.atomic():
        removal_lock(
            tenant.pk
        )  # a rule that removes documents at this moment ends its step first, and then keeps them
        job = GenerationJob.objects.create(
            tenant=tenant,
            dataset=dataset,
            options=settings.to_json(),
            model=model,
            actor=actor_facts(actor),
            probe=max(0, probe),
            budget_usd=budget,
            wanted=len(slots),
            manifest=manifest,
            created_by_id=actor.user_id,
        )
        items = [
            GenerationItem(
                tenant=tenant,
                job=job,
                slot=c.slot.number,
                round=c.round,
                type=c.slot.type,
                difficulty=c.slot.difficulty,
                chunks=list(c.chunks),
                data=dict(c.data),
                state=ItemState.SPARE if c.round else ItemState.QUESTION,
            )
            for c in candidates
        ]
        GenerationItem.objects.bulk_create(items, batch_size=BATCH)
        _drive(tenant, actor, job, settings)
        audit_record(
            tenant=tenant,
            actor=actor,
            action="generation.start",
            object=job,
            object_name=dataset.name,
            data={"rows": len(slots), "model": model, "budget_usd": str(budget or "")},
        )
    return job


def generation_pause(*, tenant: Tenant, actor: Actor, job: GenerationJob) -> GenerationJob:
    """Let what is under way end and begin nothing more. Raises Conflict when it does not run."""
    return _moved(tenant, actor, job, JOB_ACTIVE, GenerationState.PAUSED, _("Paused by a person."))


def generation_stop(*, tenant: Tenant, actor: Actor, job: GenerationJob) -> GenerationJob:
    """End a job for good; its rows stay. Raises Conflict when it has ended."""
    stoppable = (*JOB_ACTIVE, GenerationState.PAUSED, GenerationState.FAILED)
    return _moved(tenant, actor, job, stoppable, GenerationState.STOPPED, _("Stopped by a person."))


def generation_resume(
    *, tenant: Tenant, actor: Actor, job: GenerationJob, budget_usd: Decimal | str | None = None
) -> GenerationJob:
    """Go on with a paused or failed job, where it stood.

    Args:
        budget_usd: a new limit; None leaves it.

    Raises:
        Conflict: it is not paused.
        Invalid: the budget is not above what was spent.
    """
    settings = Settings.from_json(job.options)
    budget = _budget_checked(tenant, job.model, settings, budget_usd)
    if budget is not None and budget <= job.spent_usd:
        raise _field(
            "budget_usd",
            _("%(spent_usd)s USD have already been spent. Enter a higher budget.")
            % {"spent_usd": number_told(job.spent_usd, 2)},
        )
    with transaction.atomic():
        row = _moved(
            tenant, actor, job, (GenerationState.PAUSED, GenerationState.FAILED), GenerationState.QUEUED, ""
        )
        if budget is not None:
            row.budget_usd = budget
            row.save(update_fields=["budget_usd"])
        _drive(tenant, actor, row, settings)
    return row


_JOB_IS = {
    GenerationState.QUEUED: gettext_lazy("This job is waiting."),
    GenerationState.RUNNING: gettext_lazy("This job is running."),
    GenerationState.PAUSED: gettext_lazy("This job is paused."),
    GenerationState.STOPPED: gettext_lazy("This job is stopped."),
    GenerationState.COMPLETED: gettext_lazy("This job is completed."),
    GenerationState.FAILED: gettext_lazy("This job is failed."),
}


def _moved(
    tenant: Tenant,
    actor: Actor,
    job: GenerationJob,
    from_states: tuple[str, ...],
    to: GenerationState,
    reason: str,
) -> GenerationJob:
    actor.require("dataset.write")
    with transaction.atomic():
        row: GenerationJob = (
            GenerationJob.objects.visible_to(actor)
            .select_related("dataset")
            .select_for_update(of=("self",))
            .get(pk=job.pk)
        )
        if row.state not in from_states:
            raise Conflict("generation_state", str(_JOB_IS[GenerationState(row.state)]))
        row.state, row.reason = to, reason
        row.save(update_fields=["state", "reason"])
        if to == GenerationState.STOPPED:
            GenerationJob.objects.filter(pk=row.pk).update(finished_at=Now())
        audit_record(
            tenant=tenant,
            actor=actor,
            action=f"generation.{to.value}",
            object=row,
            object_name=row.dataset.name,
        )
        if row.is_batched:
            if to == GenerationState.QUEUED:
                batches_resume(tenant=tenant, actor=actor, owner=row.topic)
            else:
                batches_end(tenant=tenant, actor=actor, owner=row.topic, ends=to == GenerationState.STOPPED)
        notify(tenant.pk, row.topic)
    return row


def _drive(tenant: Tenant, actor: Actor, job: GenerationJob, settings: Settings) -> None:
    """Give the job its drivers. One of an earlier start that is about to end is replaced, not waited for."""
    stale = Job.objects.filter(tenant=tenant, kind=DRIVE, payload__job_id=job.pk, status__in=ACTIVE)
    for row in stale:
        job_cancel(tenant=tenant, actor=actor, job=row)
    for number in range(settings.drivers):
        job_enqueue(
            tenant=tenant,
            actor=actor,
            kind=DRIVE,
            payload={"job_id": job.pk, "number": number},
            topic=job.topic,
        )


def _language_model(tenant: Tenant, model: str) -> None:
    info = provider_for(tenant, model).info
    if not is_extractive(model) and not info.is_language_model:
        raise _field("model", _("%(label)s cannot write; choose a language model.") % {"label": info.label})


def _batches_checked(tenant: Tenant, models: Collection[str]) -> None:
    """Refuse half price where a model has no batch API, instead of asking it at the full one."""
    try:
        batches_require(tenant, models)
    except Invalid as error:
        raise _field("delivery", error.message) from error


def _rules_checked(settings: Settings) -> None:
    """Refuse what templates cannot do, instead of doing something else."""
    if settings.language and tag_of(settings.language).partition("-")[0] != "en":
        raise _field(
            "language",
            _("Without a language model, questions are in English. Choose a model for other languages."),
        )
    for name in ("personas", "styles"):
        if getattr(settings, name):
            raise _field(
                name,
                _("%(name)s need a language model. Choose one, or leave them out.")
                % {"name": name.capitalize()},
            )
    if settings.script:
        raise _field(
            "script",
            _(
                "Without a language model, templates ask the follow-up questions. Choose a model, or leave the "
                "script out."
            ),
        )


def _budget_checked(
    tenant: Tenant, model: str, settings: Settings, budget: Decimal | str | None
) -> Decimal | None:
    if budget is None or budget == "":
        return None
    try:
        amount = Decimal(str(budget))
    except InvalidOperation as error:
        raise _field("budget_usd", _("Enter an amount in USD, such as 5.00.")) from error
    if not amount.is_finite() or not 0 < amount <= 1_000_000:
        raise _field("budget_usd", _("Enter an amount in USD above 0."))
    for name in {model, settings.judge_model or model} - {"extractive"}:
        if not row_ceiling(Settings(collections=(), rows=1), provider_for(tenant, name).info.profile):
            raise _field(
                "budget_usd",
                _(
                    "The prices of %(name)s are unknown, so a budget can't be enforced. Enter them under "
                    "Settings, Models."
                )
                % {"name": name},
            )
    return amount


def _field(name: str, message: str) -> Invalid:
    return Invalid("invalid_settings", message, data={"field": name, "fields": {name: [message]}})
