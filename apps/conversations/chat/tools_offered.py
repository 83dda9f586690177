"""Which tools the next answer of a conversation may use, as the composer lists them."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from apps.conversations.assistants.selectors import version_tools
from apps.conversations.models import AssistantVersion
from apps.conversations.transcript.selectors import scope_names
from apps.tools.models import ToolEntry
from apps.tools.toolset.selectors import guard_for
from apps.tools.toolset.words import tool_words
from tenancy.actors import Actor


@dataclass(frozen=True, slots=True)
class ToolLine:
    """A tool that may be used, in words for people.

    Attributes:
        name: by which models call it.
        title: the workspace's own for it, ours, or else its name.
        asks: some call of it waits for somebody's word.
        is_on: it is not switched off.
    """

    name: str
    title: str
    description: str
    asks: bool
    is_on: bool


def tool_lines(*, actor: Actor, version: AssistantVersion | None, off: Collection[str]) -> list[ToolLine]:
    """Return the tools that some call of the actor could be allowed, by title.

    Args:
        version: the assistant that answers, with its toolkit; None for the model alone.
        off: names of those that are switched off.
    """
    scope = scope_names(actor=actor, conversation=None)
    tools = None if version is None else version_tools(version, scope)
    guard = guard_for(actor=actor, scope=scope, tools=tools)
    stated = {
        row.name: row for row in ToolEntry.objects.visible_to(actor).only("name", "title", "description")
    }
    lines: dict[str, ToolLine] = {}
    for bundle in guard.bundles:
        for tool in bundle.tools():
            effect = guard.decision(tool, bundle).effect
            if effect == "deny" or tool.name in lines:
                continue
            entry, words = stated.get(tool.name), tool_words(tool.name, bundle)
            title = tool.name if words is None else str(words.title)
            text = tool.description if words is None else str(words.description)
            if entry is not None:
                title, text = entry.title or title, entry.description or text
            first = text.strip().split("\n", 1)[0]
            lines[tool.name] = ToolLine(tool.name, title, first, effect == "ask", tool.name not in off)
    return sorted(lines.values(), key=lambda line: (line.title.casefold(), line.name))
