"""The jobs that generate rows."""

from __future__ import annotations

from contextlib import AsyncExitStack, suppress

from apps.collections.display.selectors import collections_named
from apps.conversations.toolset import bundle as reading
from apps.datasets.generation.claiming import MOST_DEATHS, job_halt
from apps.datasets.generation.driving import job_drive
from apps.datasets.generation.mailing import batches_drive
from apps.datasets.generation.services import DRIVE
from apps.datasets.generation.settings import Settings
from apps.datasets.generation.work import Model, Work
from apps.datasets.models import JOB_ACTIVE, GenerationJob
from apps.tools.toolset.bundles import COLLECTIONS
from apps.tools.toolset.direct_calls import offer_context, offer_guard
from basics.errors import Denied
from basics.texts import gettext as _
from batches.engines import engine_for
from batches.services import batches_end
from jobs.context import JobContext, LeaseLost
from jobs.models import Job
from jobs.registry import job
from runs.actors import actor_now
from runs.models import Run
from runs.providers import TenantProvider, is_extractive, provider_for
from tenancy.actors import system_actor
from tenancy.models import Tenant
from toolloop.providers.extractive import SEARCH_TOOL
from toolloop.rate_gate import GatedProvider, RateGate
from toolloop.tools import Toolset

ATTEMPTS = 1000
"""An error of a driver is tried again; what it has done is in its items, so there is no harm in many."""
DEATHS = MOST_DEATHS + 3
"""Workers that may die in a row without a row getting on. One that kills is found and given up on the way (``claiming``); what
is more is no row's fault."""
TOOLS = ("search_documentation", "get_linked_chunk")
CODE_TOOL = "search_codebase"


def driver_ended(ended: Job) -> None:
    """Pause the job whose driver came to an end by an error, so that somebody looks at it and resumes."""
    if ended.status == "cancelled":
        return
    pk = int(ended.payload["job_id"])
    job_halt(pk, ended.error_message or _("The worker was lost."))
    row = GenerationJob.objects.select_related("tenant").filter(pk=pk).first()
    if row is not None and row.is_batched:
        actor = system_actor(row.tenant_id, row.created_by_id)
        batches_end(tenant=row.tenant, actor=actor, owner=row.topic, ends=False)


@job(DRIVE, lane="loop", max_attempts=ATTEMPTS, max_deaths=DEATHS, on_end=driver_ended)
async def generate(ctx: JobContext, *, job_id: int, number: int) -> None:
    """Work on a generation job until it is done, paused or stopped; safe to run again at any point.

    Raises:
        JobPostponed: all that is left waits for batches; no worker is held meanwhile.
    """
    prepared = await ctx.in_db(_prepare, ctx, job_id)
    if prepared is None:
        return
    work, providers = prepared
    async with AsyncExitStack() as stack:
        for provider in providers:
            stack.push_async_callback(provider.aclose)
        if work.is_batched:
            await batches_drive(work, lambda: _lost(ctx))
        else:
            await job_drive(work, lambda: _lost(ctx))


def _lost(ctx: JobContext) -> str:
    """Return why this driver must begin nothing more, "" while it need not mind."""
    if ctx.lost.is_set() or ctx.cancelled.is_set():
        return "another worker has taken over"
    return ""


def _advanced(ctx: JobContext) -> None:
    # Whoever has lost the job may still keep what was paid for; the items have a fence of their own.
    with suppress(LeaseLost):
        ctx.advanced()


def _prepare(ctx: JobContext, job_id: int) -> tuple[Work, list[TenantProvider]] | None:
    """Read what a driver needs; None when there is nothing to do any more.

    Raises:
        DomainError: the person has left, or the model has no key any more; the job is paused with that reason.
    """
    row = GenerationJob.objects.select_related("dataset", "tenant").filter(pk=job_id).first()
    if row is None or row.state not in JOB_ACTIVE:
        return None
    settings = Settings.from_json(row.options)
    tenant: Tenant = row.tenant
    run = Run(
        tenant=tenant,
        user_id=row.created_by_id,
        kind="dataset",
        model=row.model,
        request={"actor": row.actor, "path": "job"},
    )
    actor = actor_now(run)
    actor.require("dataset.write")
    collections = collections_named(actor=actor, pks=list(settings.collections))
    guard = offer_guard(actor=actor, collections=settings.collections)
    names = [*TOOLS, *([CODE_TOOL] if row.manifest["has_code"] else ())]
    if is_extractive(row.model):
        names = [SEARCH_TOOL]  # The one tool it knows.
    offered = guard.offered(
        [tool for tool in reading.TOOLSET if tool.name in names],
        next(bundle for bundle in guard.bundles if bundle.name == COLLECTIONS),
    )
    if not offered:
        raise Denied(
            "no_search_tool",
            _("Generation can't use a search tool. Allow search_documentation under Tools, then resume."),
        )
    gates: dict[str, RateGate] = {}
    providers: list[TenantProvider] = []

    def model(name: str) -> Model:
        engine = engine_for(tenant, name) if settings.is_batched else None
        provider = provider_for(tenant, name) if engine is None else engine.provider
        providers.append(provider)
        if engine is not None:
            return Model(name, provider.info.model, provider, engine.profile, False, engine)
        gate = gates.setdefault(name, RateGate(settings.concurrency))
        return Model(
            name,
            provider.info.model,
            GatedProvider(provider, gate),
            provider.info.profile,
            is_extractive(name),
        )

    writer = model(row.model)
    judge_name = settings.judge_model or row.model
    work = Work(
        job=row,
        dataset=row.dataset,
        tenant=tenant,
        actor=actor,
        settings=settings,
        model=writer,
        judge=writer if judge_name == row.model else model(judge_name),
        names={c.pk: c.name for c in collections},
        toolset=Toolset(offered),
        context=offer_context(
            tenant=tenant, run=run, guard=guard, collections=settings.collections, in_db=ctx.in_db
        ),
        run=run,
        driver=f"{ctx.job_id}.{ctx.attempt}",
        in_db=ctx.in_db,
        blocking=ctx.blocking,
        advanced=lambda: _advanced(ctx),
    )
    return work, providers
