"""Jobs of tools: calls that somebody must approve, and sources that are read."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from django.conf import settings

from apps.tools.calls.services import JOB_KIND
from apps.tools.connectors.base import kind_get
from apps.tools.models import ToolSource
from apps.tools.sources.services import JOB_KIND as SOURCE_JOB_KIND
from apps.tools.sources.versions import source_failed, versions_store
from apps.tools.toolset.direct_calls import offer_context, offer_guard, offer_tools
from apps.tools.toolset.guard import Guard
from apps.tools.toolset.vector_job import vectors_make
from apps.tools.toolset.vectors import JOB_KIND as VECTORS_JOB_KIND
from basics.errors import Conflict
from basics.texts import gettext as _
from jobs.context import JobContext
from jobs.models import Job
from jobs.registry import job
from runs.actors import actor_now
from runs.models import ACTIVE, Run
from runs.services import run_abandon, run_execute
from tenancy.actors import system_actor
from tenancy.models import Tenant
from toolloop.limits import Limits
from toolloop.messages import ToolCall, UserMessage
from toolloop.providers.scripted import ScriptedCall, ScriptedProvider, says
from toolloop.tokens import Usage

_READS = 3


def calls_ended(ended: Job) -> None:
    """End the run of a job that ended without it."""
    run_abandon(job=ended)


@dataclass(frozen=True, slots=True)
class _Prepared:
    tenant: Tenant
    run: Run
    guard: Guard
    calls: list[ToolCall]
    collections: list[int] | None


@job(JOB_KIND, lane="loop", max_attempts=3, on_end=calls_ended)
async def calls_run(ctx: JobContext, *, run_id: int) -> None:
    """Make a run's calls with the loop, which parks them, and goes on when they are decided about."""
    prepared = await ctx.in_db(_prepare, run_id)
    if prepared is None:
        return
    made = [ScriptedCall(c.name, c.arguments or {}, c.id, c.raw) for c in prepared.calls]
    script = [says("", *made, usage=Usage()), says("Done.", usage=Usage())]
    await run_execute(
        ctx,
        prepared.run,
        toolset=offer_tools(prepared.guard),
        provider=ScriptedProvider(script, by_history=True),
        system="",
        history=[UserMessage("Calls made outside a conversation.")],
        limits=Limits(max_steps=2, max_seconds=float(settings.RUN_SECONDS)),
        context=offer_context(
            tenant=prepared.tenant,
            run=prepared.run,
            guard=prepared.guard,
            collections=prepared.collections,
            in_db=ctx.in_db,
        ),
    )


def _prepare(run_id: int) -> _Prepared | None:
    """Read what the run needs, with the rights of this moment; None when there is nothing to do any more.

    Raises:
        DomainError: the person has left, or a collection is gone; the run fails with that reason.
    """
    run: Run | None = Run.objects.select_related("tenant").filter(pk=run_id).first()
    if run is None or run.status not in ACTIVE:
        return None
    facts: dict[str, Any] = run.request
    guard = offer_guard(actor=actor_now(run), collections=facts["collections"])
    calls = [ToolCall.from_json(call) for call in facts["calls"]]
    return _Prepared(run.tenant, run, guard, calls, facts["collections"])


def source_read_ended(ended: Job) -> None:
    """Say at a source why it could not be read."""
    source_failed(tenant=ended.tenant, pk=int(ended.payload["source_id"]), problem=ended.error_message)


@job(SOURCE_JOB_KIND, lane="loop", max_attempts=2, on_end=source_read_ended)
async def source_read(ctx: JobContext, *, source_id: int, accept_all: int) -> None:
    """Read a source and store what changed; again when it was edited while it was read.

    Raises:
        SourceError, Invalid: it cannot be read; the source says why.
    """
    for _attempt in range(_READS):
        ctx.check()
        source = await ctx.in_db(_source_of, source_id)
        if source is None or await ctx.blocking(lambda row=source: _read(ctx, row, bool(accept_all))):  # type: ignore[misc]
            return
    raise Conflict("source_busy", _("The source kept changing while it was being read. Refresh it."))


def _source_of(pk: int) -> ToolSource | None:
    found: ToolSource | None = ToolSource.objects.select_related("tenant").filter(pk=pk).first()
    return found


def _read(ctx: JobContext, source: ToolSource, accept_all: bool) -> bool:
    """Read once, outside of transactions; tells whether it was stored."""
    found = kind_get(source.kind).read(source)
    ctx.check()
    actor = system_actor(ctx.tenant_id, ctx.user_id)
    stored = versions_store(
        tenant=source.tenant, actor=actor, read=source, found=found, accept_all=accept_all
    )
    return stored is not None


@job(VECTORS_JOB_KIND, lane="cpu", max_attempts=3)
def tool_vectors(ctx: JobContext) -> None:
    """Make the vectors that the workspace's tools lack, and remove those of texts that no tool has any more."""
    vectors_make(ctx)
