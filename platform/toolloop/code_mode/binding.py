"""Between a program's calls and tool calls: names, arguments, results."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from keyword import iskeyword
from typing import Any

from toolloop.code_mode.names import PARALLEL
from toolloop.messages import ToolResult
from toolloop.tools.tool import Tool
from toolloop.tools.toolset import Toolset

_NO_OUTPUT = "Done; there is no output."


def python_names(toolset: Toolset) -> dict[str, str]:
    """Return the names by which programs call the tools: those of the tools, made identifiers where they are none."""
    names: dict[str, str] = {}
    for name in toolset.names():
        python = name.replace("-", "_")
        if iskeyword(python) or python == PARALLEL:
            python += "_"
        while python in names:
            python += "_"
        names[python] = name
    return names


def parallel_specs(args: Sequence[Any]) -> list[Any]:
    """Return the calls of ``parallel(...)``; one list of tuples is as good as many tuples."""
    if len(args) == 1 and isinstance(args[0], list):
        first = args[0][0] if args[0] else None
        if not args[0] or isinstance(first, list | tuple | dict):
            return list(args[0])
    return list(args)


def arguments_bound(tool: Tool, args: Sequence[Any], kwargs: Mapping[str, Any]) -> dict[str, Any]:
    """Give positional arguments their names. Raises TypeError with the text Python would use."""
    order = list(tool.parameters.get("properties", {}))
    if len(args) > len(order):
        raise TypeError(f"{tool.name}() takes {len(order)} positional arguments but {len(args)} were given")
    bound = dict(zip(order, args, strict=False))
    for name, value in kwargs.items():
        if name in bound:
            raise TypeError(f"{tool.name}() got multiple values for argument {name!r}")
        bound[name] = value
    return bound


def result_value(result: ToolResult) -> Any:
    """Return what a program gets: never more than a model would see of the same result."""
    if result.payload is None:
        return None if result.content == _NO_OUTPUT else result.content
    try:
        return json.loads(result.content)
    except ValueError:
        return result.content


def shortened(value: Any) -> Any:
    """Return arguments for the log, with long texts and lists cut."""
    if isinstance(value, str):
        return value if len(value) <= 200 else value[:200] + "…"
    if isinstance(value, dict):
        return {str(k)[:100]: shortened(v) for k, v in list(value.items())[:20]}
    if isinstance(value, list):
        return [shortened(item) for item in value[:20]]
    return value
