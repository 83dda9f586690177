"""Which tools the next answer of a conversation may use, as the composer lists them."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from apps.conversations.assistants.selectors import version_tools
from apps.conversations.models import AssistantVersion
from apps.conversations.transcript.selectors import scope_names
from apps.tools.toolset.selectors import guard_for
from tenancy.actors import Actor


@dataclass(frozen=True, slots=True)
class ToolLine:
    """A tool that may be used; ``asks`` says that some call of it waits for somebody's word, ``is_on`` that it is ticked."""

    name: str
    description: str
    asks: bool
    is_on: bool


def tool_lines(*, actor: Actor, version: AssistantVersion | None, off: Collection[str]) -> list[ToolLine]:
    """Return the tools that some call of the actor could be allowed, by name.

    Args:
        version: the assistant that answers, with its toolkit; None for the model alone.
        off: names of those that are switched off.
    """
    scope = scope_names(actor=actor, conversation=None)
    tools = None if version is None else version_tools(version, scope)
    guard = guard_for(actor=actor, scope=scope, tools=tools)
    lines: dict[str, ToolLine] = {}
    for bundle in guard.bundles:
        for tool in bundle.tools():
            effect = guard.decision(tool, bundle).effect
            if effect != "deny" and tool.name not in lines:
                text = tool.description.strip().split("\n", 1)[0]
                lines[tool.name] = ToolLine(tool.name, text, effect == "ask", tool.name not in off)
    return [lines[name] for name in sorted(lines)]
