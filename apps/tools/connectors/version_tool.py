"""The tool of an accepted version, as every kind of source makes it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from apps.tools.connectors.base import FoundTool
from apps.tools.models import ToolSource, ToolVersion
from toolloop.tools import Tool, ToolError


def version_tool(
    source: ToolSource, version: ToolVersion, function: Callable[..., Any], **facts: Any
) -> Tool:
    """Return the tool of a version, with the version's number.

    Args:
        function: called with the arguments as keywords.
        facts: further attributes of ``Tool``, or others than the version's.

    Raises:
        ToolDefinitionError: what is stored makes no tool.
    """
    found = FoundTool.from_json(version.spec)
    stated: dict[str, Any] = {
        "name": found.name,
        "description": found.description or found.title or f"A tool of {source}.",
        "parameters": found.parameters,
        "side_effects": found.side_effects,
        "idempotent": found.idempotent,
        "timeout_s": found.timeout_s,
        "category": found.category,
        "tags": tuple(found.tags),
        "group": source.name,
        "version": str(version.number),
        # Stated, because looking for it costs more than all the rest.
        "context_parameter": "",
    }
    return Tool(function=function, **{**stated, **facts})


def tool_refusing(source: ToolSource, version: ToolVersion, why: str) -> Tool:
    """Return a tool in place of one that cannot be made: each call is answered with the reason.

    Raises:
        ToolDefinitionError: what is stored does not even have a name and a schema.
    """

    async def refuse(**arguments: Any) -> None:
        raise ToolError(f"The tools of “{source}” cannot be used: {why}", "fatal")

    return version_tool(source, version, refuse)
