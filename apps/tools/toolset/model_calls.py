"""The toolset of a run that a model drives: all tools while they are few, else a catalog to load from; and programs."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from apps.tools.policy.engine import ToolFacts
from apps.tools.toolset.bundles import Bundle, bundle_list
from apps.tools.toolset.guard import Guard
from apps.tools.toolset.vectors import tool_meaning
from basics.errors import Conflict
from basics.texts import gettext as _
from runs.models import Run
from runs.sandbox import code_mode_for
from toolloop.code_mode.toolset import CodeToolset
from toolloop.tools import Tool, Toolset
from toolloop.tools.catalog import Catalog
from toolloop.tools.dynamic import DynamicToolset
from toolloop.tools.session import ToolSession
from toolloop.tools.specs import spec_tokens

CODE_MODE = "code_mode"
"""Group by which programs are granted; nobody may run them unless a grant says so."""
PROGRAMS = Bundle(CODE_MODE, tuple)
PROGRAM_TOOL = "execute_tools"
SHOWN_TOOLS, SHOWN_TOKENS = 40, 12_000
"""Up to so many tools of its own, with declarations of so many estimated tokens, are shown to a model at once."""
LOADED_TOOLS, LOADED_TOKENS = 40, 16_000


def run_toolset(
    guard: Guard,
    run: Run,
    *,
    theirs: Sequence[Tool] = (),
    native: bool = False,
    loaded: Callable[[], Iterable[Mapping[str, Any]]] = tuple,
    brought: Callable[[], Iterable[str]] = tuple,
) -> Toolset:
    """Return what a run's model may call.

    Tools of the code are always shown, those of the workspace as long as they are few. Where they are many, the model
    finds them in a catalog and loads what it needs, so that its first request stays small.

    Args:
        theirs: tools of whoever asks, run where they are; ours of the same names are left out.
        native: the model's provider searches tools by itself.
        loaded: gives what earlier runs of the conversation loaded and unloaded, in order: payloads of ``META_TOOLS``.
        brought: gives the names of tools that are loaded from the start, such as those of the collections' toolkits.
    """
    of_code = {bundle.name for bundle in bundle_list()}
    core = guard.tools(b for b in guard.bundles if b.name in of_code)
    taken = {tool.name for tool in theirs}
    core = [tool for tool in core if tool.name not in taken]
    names = taken | {tool.name for tool in core}
    rest = [t for t in guard.tools(b for b in guard.bundles if b.name not in of_code) if t.name not in names]
    programs = guard.judge(ToolFacts(PROGRAM_TOOL, CODE_MODE), PROGRAMS)
    if PROGRAM_TOOL not in taken and programs.effect != "deny":
        core += _programs(guard, run, [*core, *rest])
    core += theirs
    if len(rest) <= SHOWN_TOOLS and sum(spec_tokens(t.spec()) for t in rest) <= SHOWN_TOKENS:
        return Toolset([*core, *rest], withheld=guard.withheld)
    session = ToolSession(max_tools=LOADED_TOOLS, token_budget=LOADED_TOKENS)
    toolset = DynamicToolset(_catalog(run, rest), session, core, native=native)
    toolset.withheld = guard.withheld
    toolset.load(sorted(brought()))
    for change in loaded():
        session.unload(change.get("unloaded", ()))
        toolset.load(change.get("loaded", ()))
    return toolset


def _catalog(run: Run, tools: Sequence[Tool]) -> Catalog:
    found = tool_meaning(run.tenant, tools)
    if found is None:
        return Catalog(tools)
    embedder, known = found
    return Catalog(tools, embedder=embedder, vectors=known)


def code_toolset(guard: Guard, run: Run, *, theirs: Sequence[Tool] = ()) -> Toolset:
    """Return the toolset of a run whose model reaches its tools through programs alone.

    Args:
        theirs: tools of whoever asks, which are called directly.

    Raises:
        Conflict: ``programs_not_allowed``.
    """
    inner = guard.tools()
    shown = guard.offered([code_mode_for(run, inner).tool()], PROGRAMS)
    if not shown:
        raise Conflict(
            "programs_not_allowed",
            _(
                "This assistant answers with programs, and you can't run any. Ask an owner of the workspace to allow "
                "you the group %(group)s under Tools, or choose another assistant."
            )
            % {"group": CODE_MODE},
        )
    return CodeToolset([*shown, *theirs], inner)


def _programs(guard: Guard, run: Run, tools: list[Tool]) -> list[Tool]:
    """Return the tool that runs programs, whose calls are calls of the run like any other."""
    # The model sees the declarations beside it, and of a catalog those that it loads.
    return guard.offered([code_mode_for(run, tools, described=False).tool()], PROGRAMS)
