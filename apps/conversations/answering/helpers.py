"""Assistants as tools of other assistants: ``ask_<slug>``, with the narrower rights of the two, in one run."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from apps.conversations.answering.prepare import Answering, answering_of
from apps.conversations.assistants.options import MAX_HELPER_DEPTH
from apps.conversations.assistants.selectors import version_collections, version_tools
from apps.conversations.memory.selectors import told_of
from apps.conversations.models import AssistantHelper, AssistantVersion
from apps.conversations.toolset.results import SCOPE, Scope
from apps.conversations.transcript import selectors
from apps.tools.toolset.selectors import guard_for
from basics.errors import DomainError
from runs.actors import actor_now
from runs.providers import provider_for
from runs.services import helper_ask
from toolloop.messages import UserMessage
from toolloop.modes import PLAN_TOOL
from toolloop.tools import Tool, ToolContext, ToolError, ToolOutput, Toolset

PREFIX = "ask_"
_PARAMETERS = {
    "type": "object",
    "properties": {
        "question": {
            "type": "string",
            "minLength": 1,
            "description": "The whole question: the other one sees nothing of this conversation.",
        }
    },
    "required": ["question"],
    "additionalProperties": False,
}


@dataclass(frozen=True, slots=True)
class _Ready:
    answering: Answering
    model: str
    only: frozenset[int] | None


def helper_tools(version: AssistantVersion, offered: Callable[[], Toolset]) -> list[Tool]:
    """Return a tool for each assistant that a version may ask; archived and unpublished ones are left out.

    Args:
        offered: the toolset of the run; a helper reaches what is in it, and no more.
    """
    rows = AssistantHelper.objects.filter(
        tenant_id=version.tenant_id,
        version=version,
        assistant__archived_at__isnull=True,
        assistant__published__isnull=False,
    ).select_related("assistant__published")
    return [_tool(row.assistant.published, row.assistant, offered) for row in rows.order_by("pk")]


def _tool(version: AssistantVersion, assistant: Any, offered: Callable[[], Toolset]) -> Tool:
    async def ask(context: ToolContext, question: str) -> ToolOutput:
        scope: Scope = context.data[SCOPE]
        if context.depth >= MAX_HELPER_DEPTH:
            raise ToolError(
                f"Assistants ask each other at most {MAX_HELPER_DEPTH} deep. Answer without asking.", "fatal"
            )
        ready: _Ready = await scope.in_db(_prepare, version, scope, question)
        way = ready.answering
        try:
            inside = replace(
                context,
                data={**context.data, SCOPE: replace(scope, only=ready.only, searching=way.searching)},
            )
            mine = [t for t in way.toolset if t.name in offered() and t.name != PLAN_TOOL]
            if context.depth + 1 < MAX_HELPER_DEPTH:
                names = await scope.in_db(_helper_names, version)
                mine += [t for t in offered() if t.name in names]
            text = await helper_ask(
                inside,
                provider=way.provider,
                model=ready.model,
                system=way.system,
                question=question,
                tools=mine,
                kept=[t for t in way.toolset if t.name == PLAN_TOOL],
                limits=way.limits,
                options=way.options,
            )
        finally:
            await way.provider.aclose()
        return ToolOutput(text, {"assistant": assistant.slug, "summary": f"{assistant.name} has answered"})

    return Tool(
        name_of(assistant.slug),
        f"Ask the assistant “{assistant.name}”, who has documents and tools of its own. {assistant.description}".strip(),
        _PARAMETERS,
        ask,
        timeout_s=600,
        context_parameter="context",
    )


def name_of(slug: str) -> str:
    """Return the name of the tool that asks an assistant."""
    return f"{PREFIX}{slug.replace('-', '_')}"[:64]


def _helper_names(version: AssistantVersion) -> frozenset[str]:
    rows = AssistantHelper.objects.filter(tenant_id=version.tenant_id, version=version)
    return frozenset(map(name_of, rows.values_list("assistant__slug", flat=True)))


def _prepare(version: AssistantVersion, scope: Scope, question: str) -> _Ready:
    """Read what a helper needs, with the rights its person has now. Raises ToolError in words for the model."""
    try:
        actor = actor_now(scope.run)
        own = version_collections(version)
        only = own if scope.only is None else scope.only if own is None else own & scope.only
        collections = selectors.scope_names(actor=actor, conversation=scope.conversation, only=only)
        guard = guard_for(
            actor=actor,
            scope=collections,
            tools=version_tools(version, collections),
            off=scope.guard.off,  # its programs reach tools that aren't in its toolset
            change=scope.guard.change,
        )
        model = version.model or selectors.model_default(selectors.model_list(scope.tenant))
        answering = answering_of(
            version,
            run=scope.run,
            model=model,
            provider=provider_for(scope.tenant, model),
            guard=guard,
            history=[UserMessage(question)],
            collections=collections,
            native=False,
            loaded=tuple,
            told=told_of(scope.tenant.pk),  # nobody's notes: it sees nothing of the conversation
            is_text=True,
            is_narrowed=scope.documents is not None,
        )
    except DomainError as error:
        raise ToolError(error.message, "fatal") from error
    return _Ready(answering, model, only)
