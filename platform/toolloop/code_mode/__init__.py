"""Programmatic tool calling: programs of a model, run in a sandbox, calling tools under the rules of the run.

Importing this package loads neither the sandbox nor a provider; the first program does.
"""

from toolloop.code_mode.limits import CodeLimits
from toolloop.code_mode.mode import CodeMode
from toolloop.code_mode.result import CallRecord, CodeResult, Ending
from toolloop.code_mode.running import Called, CodeEvent, Ended, Printed
from toolloop.code_mode.state import StateRefused
from toolloop.code_mode.toolset import CodeToolset

__all__ = [
    "CallRecord",
    "Called",
    "CodeEvent",
    "CodeLimits",
    "CodeMode",
    "CodeResult",
    "CodeToolset",
    "Ended",
    "Ending",
    "Printed",
    "StateRefused",
]
