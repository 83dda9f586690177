"""Tools: how to write them and how a run sees them."""

from toolloop.tools.context import FromContext, ToolContext, ToolDefinitionError, ToolError, ToolOutput
from toolloop.tools.tool import Tool, tool
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
