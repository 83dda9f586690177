"""Tools that change which tools a model has: they browse the catalog, and load and unload for its next turn."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Protocol

from toolloop.tools.catalog import Catalog, CatalogEntry, Page
from toolloop.tools.context import ToolError, ToolOutput
from toolloop.tools.session import Loaded, ToolSession
from toolloop.tools.tool import Tool, tool

META_TOOLS = frozenset(
    {"browse_toolkit", "load_tools", "load_tool_group", "unload_tool_group", "unload_tools", "find_tools"}
)
Chooser = Callable[[str, Sequence[CatalogEntry]], Awaitable[Sequence[str]]]
"""Picks the names of fitting tools for an intent, the best first; asks a cheap model, say."""

_MOST_ON_PAGE = 50
_FOUND = 5
_SHOWN_DESCRIPTION = 200


class ChangeableToolset(Protocol):
    """What the meta-tools need of the toolset they change; see ``toolloop.tools.dynamic``."""

    @property
    def catalog(self) -> Catalog: ...
    @property
    def session(self) -> ToolSession: ...
    def may_load(self, name: str) -> bool: ...
    def is_fixed(self, name: str) -> bool: ...
    def load(self, names: Sequence[str]) -> Loaded: ...


def meta_tools_make(toolset: ChangeableToolset, chooser: Chooser | None) -> tuple[Tool, ...]:
    """Make the meta-tools of one toolset."""
    return (*_reading_tools(toolset, chooser), *_changing_tools(toolset))


def _reading_tools(toolset: ChangeableToolset, chooser: Chooser | None) -> tuple[Tool, ...]:
    catalog = toolset.catalog

    @tool
    async def browse_toolkit(
        query: str = "", category: str = "", group: str = "", limit: int = 10, offset: int = 0
    ) -> ToolOutput:
        """Browse the catalog of further tools, page by page. Found tools must be loaded before they can be called.

        Args:
            query: what the tool should do; empty lists all.
            category: only this category.
            group: only this group and those below it.
            limit: tools per page.
            offset: tools to skip.
        """
        limit = max(1, min(limit, _MOST_ON_PAGE))
        offset = max(0, offset)
        found = await catalog.find(query, category=category, group=group, limit=len(catalog))
        allowed = [hit for hit in found.hits if toolset.may_load(hit.entry.name)]
        page = Page(tuple(allowed[offset : offset + limit]), len(allowed), offset)
        shown: dict[str, Any] = {
            "tools": [_shown(toolset, hit.entry) for hit in page.hits],
            "total": page.total,
        }
        if page.has_more:
            shown["next_offset"] = offset + limit
        if found.note:
            shown["note"] = found.note
        if not page.hits:
            shown["groups"], shown["categories"] = catalog.groups(), catalog.categories()
        return _output(shown)

    @tool
    async def find_tools(intent: str) -> ToolOutput:
        """Find the tools that fit what you want to do, by meaning. Then load them with load_tools.

        Args:
            intent: what you want to do, in one sentence.
        """
        entries = [entry for entry in catalog if toolset.may_load(entry.name)]
        note = ""
        if chooser is not None:
            known = {entry.name: entry for entry in entries}
            names = [name for name in await chooser(intent, entries) if name in known]
            chosen = [known[name] for name in dict.fromkeys(names)]
        else:
            page = await catalog.find(intent, limit=len(catalog))
            note = page.note
            chosen = [hit.entry for hit in page.hits if toolset.may_load(hit.entry.name)]
        shown = [_shown(toolset, entry) for entry in chosen[:_FOUND]]
        if not shown:
            note = f"Nothing fits. Try other words, or browse_toolkit. {note}".strip()
        return _output({"tools": shown} | ({"note": note} if note else {}))

    return browse_toolkit, find_tools


def _changing_tools(toolset: ChangeableToolset) -> tuple[Tool, ...]:
    session = toolset.session

    def members(group: str) -> list[str]:
        names = [e.name for e in toolset.catalog.in_group(group) if toolset.may_load(e.name)]
        if not names:
            groups = ", ".join(toolset.catalog.groups()) or "none"
            raise ToolError(f"There is no group {group!r}. Groups: {groups}.")
        return names

    def dropped(names: Sequence[str]) -> ToolOutput:
        fixed = [name for name in dict.fromkeys(names) if toolset.is_fixed(name)]
        gone = session.unload(name for name in names if name not in fixed)
        shown: dict[str, Any] = {"unloaded": list(gone)}
        if fixed:
            shown["kept"] = dict.fromkeys(fixed, "a core tool cannot be unloaded")
        return _output(shown | _state(toolset))

    # In one turn a model may load and unload: these run one after the other, in the order of the calls.
    @tool(blocking=False, sequential=True)
    def load_tools(tool_names: list[str]) -> ToolOutput:
        """Load tools of the catalog by name. They can be called from your next turn on.

        Args:
            tool_names: exact names, as browse_toolkit and find_tools give them.
        """
        return _loaded(toolset, toolset.load(tool_names))

    @tool(blocking=False, sequential=True)
    def load_tool_group(group: str) -> ToolOutput:
        """Load all tools of a group and of the groups below it, as far as they fit.

        Args:
            group: dotted name of the group.
        """
        return _loaded(toolset, toolset.load(members(group)))

    @tool(blocking=False, sequential=True)
    def unload_tool_group(group: str) -> ToolOutput:
        """Unload all tools of a group that you no longer need.

        Args:
            group: dotted name of the group.
        """
        return dropped([name for name in members(group) if session.is_active(name)])

    @tool(blocking=False, sequential=True)
    def unload_tools(tool_names: list[str]) -> ToolOutput:
        """Unload tools that you no longer need, to make room for others.

        Args:
            tool_names: names of loaded tools.
        """
        return dropped(tool_names)

    return load_tools, load_tool_group, unload_tool_group, unload_tools


def _loaded(toolset: ChangeableToolset, outcome: Loaded) -> ToolOutput:
    shown: dict[str, Any] = {"loaded": list(outcome.loaded)}
    if outcome.present:
        shown["already_loaded"] = list(outcome.present)
    if outcome.refused:
        shown["not_loaded"] = dict(outcome.refused)
    return _output(shown | _state(toolset))


def _state(toolset: ChangeableToolset) -> dict[str, Any]:
    session = toolset.session
    state: dict[str, Any] = {"active": len(session.active), "max_active": session.max_tools}
    if session.token_budget is not None:
        state |= {"tokens_used": session.tokens_used, "token_budget": session.token_budget}
    return state


def _shown(toolset: ChangeableToolset, entry: CatalogEntry) -> dict[str, Any]:
    text = " ".join(entry.description.split())
    if len(text) > _SHOWN_DESCRIPTION:
        text = f"{text[: _SHOWN_DESCRIPTION - 1]}…"
    shown: dict[str, Any] = {"name": entry.name, "description": text}
    if entry.group:
        shown["group"] = entry.group
    if toolset.is_fixed(entry.name) or toolset.session.is_active(entry.name):
        shown["loaded"] = True
    return shown


def _output(shown: dict[str, Any]) -> ToolOutput:
    return ToolOutput(json.dumps(shown, ensure_ascii=False), shown)
