"""The job that makes calls outside a conversation, which somebody may have to approve."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from django.conf import settings

from apps.tools.calls.services import JOB_KIND
from apps.tools.toolset.direct_calls import offer_context, offer_guard, offer_tools
from apps.tools.toolset.guard import Guard
from jobs.context import JobContext
from jobs.models import Job
from jobs.registry import job
from runs.actors import actor_now
from runs.models import ACTIVE, Run
from runs.services import run_abandon, run_execute
from tenancy.models import Tenant
from toolloop.limits import Limits
from toolloop.messages import ToolCall, UserMessage
from toolloop.providers.scripted import ScriptedCall, ScriptedProvider, says
from toolloop.tokens import Usage


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
