"""Tools: how to write them and how a run sees them."""

from toolloop.tools.tool import (
    FromContext,
    Tool,
    ToolContext,
    ToolDefinitionError,
    ToolError,
    ToolOutput,
    tool,
)
from toolloop.tools.toolset import Toolset

__all__ = [
    "FromContext",
    "Tool",
    "ToolContext",
    "ToolDefinitionError",
    "ToolError",
    "ToolOutput",
    "Toolset",
    "tool",
]
