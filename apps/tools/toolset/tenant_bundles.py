"""The bundles of a workspace's own tools: one a source, of what is accepted and switched on."""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from itertools import groupby
from typing import Any

import structlog

from apps.tools.connectors.base import IN_DB, SourceError
from apps.tools.connectors.making import source_tools
from apps.tools.connectors.version_tool import tool_refusing
from apps.tools.models import ToolSource, ToolVersion
from apps.tools.toolset.bundles import Bundle, CallScope, bundle_list
from basics.texts import english, kept
from tenancy.actors import Actor
from toolloop.tools import Tool
from toolloop.tools.context import ToolDefinitionError

log = structlog.get_logger(__name__)


def tenant_bundles(*, actor: Actor) -> tuple[Bundle, ...]:
    """Return the workspace's own tools, a bundle for each source with its name as the group; at most two queries.

    A source that has the name of a bundle of the code is left out: the grants of that group are not meant for it.
    """
    taken = {bundle.name.partition(".")[0] for bundle in bundle_list()}
    # Documents may have megabytes, and no tool is made of them.
    rows = ToolSource.objects.visible_to(actor).filter(is_enabled=True).defer("document")
    sources = {row.pk: row for row in rows if row.name not in taken}
    if not sources:
        return ()
    current = ToolVersion.objects.visible_to(actor).filter(
        source__in=sources, state=ToolVersion.State.CURRENT
    )
    found = []
    for pk, group in groupby(current.order_by("source_id", "tool_name"), lambda v: v.source_id):
        found.append(bundle_of(sources[pk], list(group)))
    return tuple(found)


def bundle_of(source: ToolSource, versions: Sequence[ToolVersion]) -> Bundle:
    """Return the bundle of a source's current versions."""
    return Bundle(source.name, functools.partial(_tools, source, versions), _context)


def _context(scope: CallScope) -> Mapping[str, Any]:
    return {IN_DB: scope.in_db}


def _tools(source: ToolSource, versions: Sequence[ToolVersion]) -> list[Tool]:
    """Make a source's tools; what cannot be made answers each call with the reason, and no run fails for it."""
    try:
        return source_tools(source, versions)
    except (SourceError, ToolDefinitionError) as error:
        if len(versions) > 1:
            return [tool for version in versions for tool in _tools(source, [version])]
        log.warning("tool_unusable", source=source.pk, tool=versions[0].tool_name, error=error.message)
        return _refusing(source, versions[0], english(kept(error.message)))


def _refusing(source: ToolSource, version: ToolVersion, why: str) -> list[Tool]:
    try:
        return [tool_refusing(source, version, why)]
    except ToolDefinitionError:
        return []  # Nothing that a model could be shown; the log says so.
