"""The one tool-calling loop over every model provider. Plain Python: no Django, no ORM, no provider SDK at import.

The names below are loaded when they are first asked for (PEP 562), so that importing the package stays cheap.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from toolloop.client import Client as Client
    from toolloop.deferred import Decision as Decision
    from toolloop.deferred import PendingCall as PendingCall
    from toolloop.errors import ConfigurationError as ConfigurationError
    from toolloop.errors import ProviderError as ProviderError
    from toolloop.errors import ToolloopError as ToolloopError
    from toolloop.generation import Generation as Generation
    from toolloop.generation import RunFailed as RunFailed
    from toolloop.history import histories_merge as histories_merge
    from toolloop.json_reading import clean_json as clean_json
    from toolloop.json_reading import extract_json as extract_json
    from toolloop.limits import Limits as Limits
    from toolloop.loop import run_loop as run_loop
    from toolloop.loop_values import LoopInput as LoopInput
    from toolloop.loop_values import LoopServices as LoopServices
    from toolloop.messages import ToolCall as ToolCall
    from toolloop.messages import ToolResult as ToolResult
    from toolloop.messages import Turn as Turn
    from toolloop.messages import UserMessage as UserMessage
    from toolloop.metering import UsageEvent as UsageEvent
    from toolloop.response_cache import MemoryCache as MemoryCache
    from toolloop.telemetry import Telemetry as Telemetry
    from toolloop.tokens import Usage as Usage
    from toolloop.tools import FromContext as FromContext
    from toolloop.tools import Tool as Tool
    from toolloop.tools import ToolContext as ToolContext
    from toolloop.tools import ToolError as ToolError
    from toolloop.tools import ToolOutput as ToolOutput
    from toolloop.tools import Toolset as Toolset
    from toolloop.tools import tool as tool
    from toolloop.tools.builtins import builtin_tools as builtin_tools
    from toolloop.tools.catalog import Catalog as Catalog
    from toolloop.tools.classes import ToolClass as ToolClass
    from toolloop.tools.session import ToolSession as ToolSession

_HOMES = {
    "client": ("Client",),
    "deferred": ("Decision", "PendingCall"),
    "errors": ("ConfigurationError", "ProviderError", "ToolloopError"),
    "generation": ("Generation", "RunFailed"),
    "history": ("histories_merge",),
    "json_reading": ("clean_json", "extract_json"),
    "limits": ("Limits",),
    "loop": ("run_loop",),
    "loop_values": ("LoopInput", "LoopServices"),
    "messages": ("ToolCall", "ToolResult", "Turn", "UserMessage"),
    "metering": ("UsageEvent",),
    "response_cache": ("MemoryCache",),
    "telemetry": ("Telemetry",),
    "tokens": ("Usage",),
    "tools": ("FromContext", "Tool", "ToolContext", "ToolError", "ToolOutput", "Toolset", "tool"),
    "tools.builtins": ("builtin_tools",),
    "tools.catalog": ("Catalog",),
    "tools.classes": ("ToolClass",),
    "tools.session": ("ToolSession",),
}
_HOME = {name: home for home, names in _HOMES.items() for name in names}

__all__ = list(_HOME)


def __getattr__(name: str) -> Any:
    home = _HOME.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(importlib.import_module(f"{__name__}.{home}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
