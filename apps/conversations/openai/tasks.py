"""The job that answers a chat completion."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Never

from django.conf import settings

from apps.collections.models import Collection
from apps.conversations.answering.helpers import helper_tools
from apps.conversations.answering.prepare import Answering, answering_execute, answering_of
from apps.conversations.assistants.selectors import version_collections, version_tools
from apps.conversations.memory.selectors import told_of
from apps.conversations.models import AssistantVersion
from apps.conversations.openai.services import JOB_KIND
from apps.conversations.toolset import bundle as own
from apps.tools.toolset.direct_calls import offer_guard
from apps.tools.toolset.guard import Guard
from apps.tools.toolset.model_calls import run_toolset
from apps.tools.toolset.selectors import collection_tools
from basics.errors import Missing
from jobs.context import JobContext
from jobs.models import Job
from jobs.registry import job
from runs.actors import actor_now
from runs.models import ACTIVE, Run, RunStep
from runs.providers import loop_model, provider_for
from runs.services import run_abandon
from tenancy.models import Tenant
from toolloop.limits import Limits
from toolloop.messages import ModelMessage, message_from_json
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
    answering: Answering
    guard: Guard
    collections: list[int]
    facts: dict[str, Any]


@job(JOB_KIND, lane="loop", max_attempts=3, on_end=completion_ended)
async def completion_work(ctx: JobContext, *, run_id: int) -> None:
    """Answer a chat completion with the loop; safe to run again at any point."""
    prepared = await ctx.in_db(_prepare, run_id)
    if prepared is None:
        return
    run, way, facts = prepared.run, prepared.answering, prepared.facts
    only = frozenset(prepared.collections)
    scope = own.Scope(prepared.tenant, None, run, ctx.in_db, prepared.guard, only)
    await answering_execute(
        ctx,
        way,
        scope,
        prepared.collections,
        limits=replace(way.limits, max_output_tokens=facts["max_tokens"]),
        options={**way.options, **facts.get("options", {})},
        tool_choice=facts["tool_choice"],
        cache_key=f"groundwork-{run.tenant_id}-completion",
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
    version = _version(run)
    only = None if version is None else version_collections(version)
    asked: list[int] | None = facts["collections"]
    rows = Collection.objects.visible_to(actor).order_by("name").values_list("pk", "name")
    found = {
        pk: name
        for pk, name in (rows if asked != [] else ())
        if (asked is None or pk in asked) and (only is None or pk in only)
    }
    narrowed = asked if only is None else list(found)
    guard = offer_guard(
        actor=actor, collections=narrowed, tools=None if version is None else version_tools(version, found)
    )
    provider = provider_for(run.tenant, run.model)
    profile = loop_model(provider, run.model)[1]
    native = profile is not None and profile.deferred_tools
    history = [message_from_json(message) for message in facts["history"]]
    if version is None:
        way = _free(run, guard, provider, history, found, native=native)
    else:
        theirs = [_client_tool(tool) for tool in facts["tools"]]
        taken = {tool.name for tool in theirs}
        # Helpers reach what the assistant itself has: a name that the client gave to a tool of its own opens nothing.
        helpers = helper_tools(
            version, lambda: way.toolset.filtered(lambda tool: not tool.external) if theirs else way.toolset
        )
        way = answering_of(
            version,
            run=run,
            model=run.model,
            provider=provider,
            guard=guard,
            history=history,
            collections=found,
            native=native,
            loaded=tuple,
            told=told_of(run.tenant_id),  # nobody's notes: whoever holds the key may ask for others
            beside=[*theirs, *(helper for helper in helpers if helper.name not in taken)],
        )
        way = replace(way, system="\n\n".join(filter(None, [way.system, facts["system"]])))
    if (first := facts.get("first_tool")) and not RunStep.objects.filter(run=run).exists():
        # Its call goes to the client and ends this stretch of the run; the next one has all tools.
        way = replace(way, toolset=way.toolset.filtered(lambda tool: tool.name == first))
    return _Prepared(run.tenant, run, way, guard, list(found), facts)


def _version(run: Run) -> AssistantVersion | None:
    """Return the version that answers, None for a model alone. Raises Missing."""
    pk = run.request.get("assistant_version")
    if pk is None:
        return None
    found: AssistantVersion | None = AssistantVersion.objects.filter(tenant=run.tenant, pk=pk).first()
    if found is None:
        raise Missing("assistant", "assistant_not_found")
    return found


def _free(
    run: Run,
    guard: Guard,
    provider: Provider,
    history: list[ModelMessage],
    collections: Mapping[int, str],
    *,
    native: bool,
) -> Answering:
    """Return how a model answers by itself, with the client's tools and, where collections are searched, with ours."""
    facts: dict[str, Any] = run.request["completion"]
    theirs = [_client_tool(tool) for tool in facts["tools"]]
    toolset, schema = Toolset(theirs), facts["schema"]
    instructions = told_of(run.tenant_id).instructions
    ours = own.workspace_prompt(instructions)
    if facts["collections"] != []:
        toolset = run_toolset(
            guard,
            run,
            theirs=theirs,
            native=native,
            brought=lambda: collection_tools(tenant_id=run.tenant_id, collections=collections),
        )
        ours = own.system_prompt(collections.values(), instructions=instructions)
    return Answering(
        provider=provider,
        system="\n\n".join(filter(None, [ours, facts["system"]])),
        history=history,
        toolset=toolset,
        limits=Limits(max_steps=MAX_STEPS, max_tool_calls=MAX_TOOL_CALLS, max_seconds=settings.RUN_SECONDS),
        output=None if schema is None else output_of(schema or {"type": "object"}),
    )


def _client_tool(tool: dict[str, Any]) -> Tool:
    """Return a tool that the client runs: a call of it ends the response, and its result begins the next request."""
    return Tool(
        tool["name"],
        tool["description"],
        tool["parameters"] or {"type": "object", "properties": {}},
        _never,
        external=True,
    )


def _never(**arguments: Any) -> Never:
    raise RuntimeError("a client's tool was run here")
