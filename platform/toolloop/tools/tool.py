"""What a tool is: a function with a name, a schema for the model, and facts about how it may be run."""

from __future__ import annotations

import inspect
import re
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, get_type_hints, overload

from toolloop.errors import ConfigurationError, ToolloopError
from toolloop.providers.base import ToolSpec

_NAME = re.compile(r"[a-zA-Z_][a-zA-Z0-9_-]{0,63}")

Severity = Literal["non_fatal", "fatal"]


class ToolDefinitionError(ConfigurationError):
    """A tool was defined in a way no model could use correctly; raised when it is defined, never in a run."""

    code = "tool_definition"


class ToolError(ToolloopError):
    """Raise inside a tool to tell the model what went wrong.

    Args:
        message: what the model reads; say what it can do about it.
        severity: "non_fatal" when another attempt or other arguments may work, "fatal" when they cannot. Told to the
            application in the payload; the loop itself goes on in both cases.
    """

    code = "tool_error"

    def __init__(self, message: str, severity: Severity = "non_fatal") -> None:
        super().__init__(message)
        self.severity: Severity = severity


@dataclass(frozen=True, slots=True)
class ToolOutput:
    """What a tool returns when the model and the application need different things.

    Attributes:
        content: text for the model.
        payload: JSON value that stays with the application.
    """

    content: str
    payload: Any = None


@dataclass(frozen=True, slots=True)
class ToolContext:
    """What the application hands to a tool; a parameter of this type is filled in and never shown to the model.

    Attributes:
        data: the ``context`` mapping given to ``run_loop``.
        call_id: id of the call being answered; with the run's id it makes an idempotency key.
        step: model turn of the run that asked for the call.
        cancelled: set when the call timed out or the run was stopped. A thread cannot be ended from outside, so a
            long blocking tool looks at it now and then and returns.
    """

    data: Mapping[str, Any] = field(default_factory=dict)
    call_id: str = ""
    step: int = 0
    cancelled: threading.Event = field(default_factory=threading.Event)


@dataclass(frozen=True, eq=False)
class Tool:
    """One tool a model may call.

    Attributes:
        name: letters, digits, ``_`` and ``-``, at most 64, as every provider accepts.
        description: tells the model what the tool does and when to use it.
        parameters: JSON Schema of the arguments object.
        function: called with the validated arguments as keywords; plain or async. Returns a string, a JSON-able value
            or a ``ToolOutput``; raises ``ToolError`` for what the model should read.
        side_effects: it changes something outside; never run twice for one call.
        idempotent: running the same call again does no harm (a crash in mid-call may repeat it).
        blocking: a plain function that waits; it runs in a thread.
        sequential: never at the same time as another call of the same turn.
        timeout_s: seconds a call may take; None takes ``Limits.tool_timeout_s``.
        context_parameter: name of the parameter that takes the ``ToolContext``; found by its annotation when None, ""
            for none.
        converters: per parameter, what turns the validated JSON value into the type the function expects.

    Raises:
        ToolDefinitionError: for a name, description or schema no provider would take.
    """

    name: str
    description: str
    parameters: Mapping[str, Any]
    function: Callable[..., Any]
    side_effects: bool = False
    idempotent: bool = True
    blocking: bool = False
    sequential: bool = False
    timeout_s: float | None = 60.0
    context_parameter: str | None = None
    converters: Mapping[str, Callable[[Any], Any]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if not _NAME.fullmatch(self.name):
            raise ToolDefinitionError(
                f"tool name {self.name!r} must be 1 to 64 letters, digits, '_' or '-', beginning with a letter or '_'"
            )
        if not self.description.strip():
            raise ToolDefinitionError(f"tool {self.name!r} has no description: write a docstring")
        if self.parameters.get("type") != "object":
            raise ToolDefinitionError(
                f"tool {self.name!r}: parameters must be a JSON Schema of type object"
            )
        if self.blocking and inspect.iscoroutinefunction(self.function):
            raise ToolDefinitionError(
                f"tool {self.name!r} is async and marked blocking: drop blocking, or make it a plain function"
            )
        if self.timeout_s is not None and self.timeout_s <= 0:
            raise ToolDefinitionError(f"tool {self.name!r}: timeout_s must be above 0")
        if self.context_parameter is None:
            object.__setattr__(self, "context_parameter", _context_parameter(self.function))

    def spec(self) -> ToolSpec:
        """Return the tool as providers must see it."""
        return ToolSpec(self.name, self.description, self.parameters)


def _context_parameter(function: Callable[..., Any]) -> str:
    target = function if inspect.isroutine(function) else type(function).__call__
    try:
        hints = get_type_hints(target)
    except NameError as error:
        raise ToolDefinitionError(
            f"the annotations of {function!r} cannot be resolved ({error}): "
            "use types that its module imports at run time"
        ) from error
    except TypeError:
        return ""
    return next((n for n, hint in hints.items() if hint is ToolContext and n != "return"), "")


@overload
def tool(function: Callable[..., Any], /) -> Tool: ...


@overload
def tool(
    *,
    name: str = "",
    description: str = "",
    side_effects: bool = False,
    idempotent: bool | None = None,
    blocking: bool = False,
    sequential: bool = False,
    timeout_s: float | None = 60.0,
) -> Callable[[Callable[..., Any]], Tool]: ...


def tool(
    function: Callable[..., Any] | None = None,
    /,
    *,
    name: str = "",
    description: str = "",
    side_effects: bool = False,
    idempotent: bool | None = None,
    blocking: bool = False,
    sequential: bool = False,
    timeout_s: float | None = 60.0,
) -> Tool | Callable[[Callable[..., Any]], Tool]:
    """Make a ``Tool`` from a function's type hints and Google docstring.

    Args:
        function: the function, when used as a bare decorator.
        name: name for the model; the function's own by default.
        description: replaces the docstring's text.
        side_effects, idempotent, blocking, sequential, timeout_s: see ``Tool``. ``idempotent`` defaults to the opposite
            of ``side_effects``.

    Raises:
        ToolDefinitionError: for a parameter without a usable type hint, or a docstring that does not fit the signature.
    """

    def make(target: Callable[..., Any]) -> Tool:
        # Imported here because schema.py needs the classes of this module.
        from toolloop.tools.schema import signature_read

        signature = signature_read(target)
        return Tool(
            name=name or target.__name__,
            description=description or signature.description,
            parameters=signature.parameters,
            function=target,
            side_effects=side_effects,
            idempotent=not side_effects if idempotent is None else idempotent,
            blocking=blocking,
            sequential=sequential,
            timeout_s=timeout_s,
            context_parameter=signature.context_parameter,
            converters=signature.converters,
        )

    return make if function is None else make(function)
