"""The job that answers a chat completion."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Never

from apps.collections.models import Collection
from apps.conversations import tools as own
from apps.conversations.openai.services import JOB_KIND, seconds_most
from apps.tools.guard import Guard
from apps.tools.offer import offer_context, offer_guard
from apps.tools.run_tools import run_toolset
from jobs.context import JobContext
from jobs.models import Job
from jobs.registry import job
from runs.actors import actor_now
from runs.models import ACTIVE, Run
from runs.providers import loop_model, provider_for
from runs.services import run_abandon, run_execute
from tenancy.models import Tenant
from toolloop.limits import Limits
from toolloop.messages import Message, message_from_json
from toolloop.output import output_of
from toolloop.providers.base import Provider
from toolloop.tools import Tool, Toolset

MAX_STEPS, MAX_TOOL_CALLS = 12, 30


def completion_ended(ended: Job) -> None:
    """End the run of a job that ended without it."""
    run_abandon(job=ended)


@dataclass(frozen=True, slots=True)
class _Prepared:
    tenant: Tenant
    run: Run
    provider: Provider
    system: str
    history: list[Message]
    toolset: Toolset
    guard: Guard
    collections: list[int]
    facts: dict[str, Any]


@job(JOB_KIND, lane="loop", max_attempts=3, on_end=completion_ended)
async def completion_work(ctx: JobContext, *, run_id: int) -> None:
    """Answer a chat completion with the loop; safe to run again at any point."""
    prepared = await ctx.in_db(_prepare, run_id)
    if prepared is None:
        return
    facts, schema = prepared.facts, prepared.facts["schema"]
    options = {} if facts["temperature"] is None else {"temperature": facts["temperature"]}
    await run_execute(
        ctx,
        prepared.run,
        toolset=prepared.toolset,
        provider=prepared.provider,
        system=prepared.system,
        history=prepared.history,
        limits=Limits(
            max_steps=MAX_STEPS,
            max_tool_calls=MAX_TOOL_CALLS,
            max_seconds=seconds_most(),
            max_output_tokens=facts["max_tokens"],
        ),
        context=offer_context(
            tenant=prepared.tenant,
            run=prepared.run,
            guard=prepared.guard,
            collections=prepared.collections,
            in_db=ctx.in_db,
        ),
        options=options,
        output=None if schema is None else output_of(schema or {"type": "object"}),
        tool_choice=facts["tool_choice"],
        cache_key=f"groundwork-{prepared.run.tenant_id}-completion",
    )


def _prepare(run_id: int) -> _Prepared | None:
    """Read what the run needs, with the rights of this moment; None when there is nothing to do any more.

    Raises:
        DomainError: the person has left, or the model has no key any more; the run fails with that reason.
    """
    run: Run | None = Run.objects.select_related("tenant").filter(pk=run_id).first()
    if run is None or run.status not in ACTIVE:
        return None
    facts: dict[str, Any] = run.request["completion"]
    actor = actor_now(run)
    provider = provider_for(run.tenant, run.model)
    guard = offer_guard(actor=actor, collections=facts["collections"])
    system, theirs = facts["system"], [_client_tool(tool) for tool in facts["tools"]]
    toolset, pks = Toolset(theirs), list[int]()
    if facts["collections"] != []:
        profile = loop_model(provider, run.model)[1]
        native = profile is not None and profile.deferred_tools
        toolset = run_toolset(guard, run, theirs=theirs, native=native)
        rows = Collection.objects.visible_to(actor)
        if facts["collections"] is not None:
            rows = rows.filter(pk__in=facts["collections"])
        names = dict(rows.order_by("name").values_list("pk", "name"))
        pks = list(names)
        system = "\n\n".join(filter(None, [own.system_prompt(names.values()), system]))
    return _Prepared(
        tenant=run.tenant, run=run, provider=provider, system=system,
        history=[message_from_json(message) for message in facts["history"]],
        toolset=toolset, guard=guard, collections=pks, facts=facts,
    )  # fmt: skip


def _client_tool(tool: dict[str, Any]) -> Tool:
    """Return a tool that the client runs: a call of it ends the response, and its result begins the next request."""
    return Tool(
        tool["name"], tool["description"], tool["parameters"] or {"type": "object", "properties": {}},
        _never, external=True,
    )  # fmt: skip


def _never(**arguments: Any) -> Never:
    raise RuntimeError("a client's tool was run here")
