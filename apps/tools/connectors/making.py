"""From a source and its current versions to tools that can be called, whatever the kind."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from apps.tools.connectors.base import kind_get
from apps.tools.connectors.version_tool import version_tool
from toolloop.tools import Tool, ToolError

if TYPE_CHECKING:
    from apps.tools.models import ToolSource, ToolVersion


def source_tools(source: ToolSource, versions: Sequence[ToolVersion]) -> list[Tool]:
    """Return a tool for each version; one that its source lost is there too, and says so when it is called.

    Touches neither network nor database.

    Raises:
        SourceError: this installation cannot use sources of that kind.
    """
    here = [v for v in versions if not v.is_gone]
    gone = [_gone(source, v) for v in versions if v.is_gone]
    return [*kind_get(source.kind).make(source, here), *gone]


def _gone(source: ToolSource, version: ToolVersion) -> Tool:
    def refuse(**arguments: Any) -> None:
        raise ToolError(
            f"{version.tool_name} is no longer offered by “{source.title or source.name}”. Don't call it again; an admin can "
            "remove it or refresh the source.",
            severity="fatal",
        )

    return version_tool(source, version, refuse, timeout_s=None)
