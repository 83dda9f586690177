"""What a tool is: a function with a name, a schema for the model, and facts about how it may be run."""

from __future__ import annotations

import functools
import inspect
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, get_type_hints, overload

from toolloop.deferred import SELF, Approval
from toolloop.providers.base import ToolSpec
from toolloop.tools.context import (
    CallRefused as CallRefused,
)
from toolloop.tools.context import (
    FromContext as FromContext,
)
from toolloop.tools.context import (
    NestedCaller as NestedCaller,
)
from toolloop.tools.context import (
    Severity as Severity,
)
from toolloop.tools.context import (
    ToolContext as ToolContext,
)
from toolloop.tools.context import (
    ToolDefinitionError as ToolDefinitionError,
)
from toolloop.tools.context import (
    ToolError as ToolError,
)
from toolloop.tools.context import (
    ToolOutput as ToolOutput,
)

_NAME = re.compile(r"[a-zA-Z_][a-zA-Z0-9_-]{0,63}")
_GROUP = re.compile(r"[a-zA-Z0-9_-]+(\.[a-zA-Z0-9_-]+)*")

ApprovalRule = bool | Callable[[Mapping[str, Any], ToolContext], bool]


@dataclass(frozen=True, slots=True)
class Verdict:
    """What the application's policy says about one call.

    Attributes:
        why: for who decides, or for the model when denied.
        rule: id of the policy's rule that decided, None when none did; for the journal.
        approval: who decides, when asked.
    """

    effect: Literal["allow", "ask", "deny"]
    why: str = ""
    rule: int | None = None
    approval: Approval = SELF


PermitRule = Callable[[Mapping[str, Any], ToolContext], Verdict]
AdmitRule = Callable[[Mapping[str, Any]], None]


@dataclass(frozen=True, eq=False)
class Tool:
    """One tool a model may call.

    Attributes:
        name: letters, digits, ``_`` and ``-``, at most 64, as every provider accepts.
        description: tells the model what the tool does and when to use it.
        parameters: JSON Schema of the arguments object.
        function: called with the validated arguments as keywords; plain or async. Returns a string, a ``ToolOutput``, or
            a value of a type that ``toolloop.tools.results`` knows; or yields it piece by piece, see
            ``toolloop.tools.streams``. Raises ``ToolError`` for what the model should read.
        side_effects: it changes something outside; never run twice for one call.
        idempotent: running the same call again does no harm (a crash in mid-call may repeat it).
        blocking: whether ``function`` runs in a thread, so that it may wait and compute without holding up the event loop
            and everybody in it. Plain functions do unless False is given, which is for those that end within a
            millisecond and ask nobody; async ones never do. After that it is True or False.
        sequential: never at the same time as another call of the same turn.
        timeout_s: seconds a call may take; None takes ``Limits.tool_timeout_s``.
        context_parameter: name of the parameter that takes the ``ToolContext``; found by its annotation when None, ""
            for none.
        converters: per parameter, what turns the validated JSON value into the type the function expects.
        injected: parameters the model never sees, and the key of ``ToolContext.data`` each is filled from. Where the
            key is absent the function's default applies.
        category, tags, group, version: for catalogs; a group is dotted, ``crm.contacts``.
        needs_approval: True, or a rule over arguments and context, for calls that somebody must approve first.
        permit: the application's policy over the call's JSON arguments and context, asked before every call, wherever it
            comes from, and again after arguments were edited. "deny" stands above any approval.
        admit: asked with a call's JSON arguments once it is about to run, off the event loop; raises
            ``CallRefused``. Here an application counts calls, and looks at rights once more. Not asked in mock mode, nor again for a tool that parked itself and goes on.
        external: never run here; the run parks until the call is answered from outside.
        mock: called instead of ``function`` in mock mode, with the same arguments.
        siblings: for a tool that is offered under a longer name than it was defined with: the names by which it calls
            the tools that it was defined with -> those under which they are offered.

    Raises:
        ToolDefinitionError: for a name, description or schema no provider would take.
    """

    name: str
    description: str
    parameters: Mapping[str, Any]
    function: Callable[..., Any]
    side_effects: bool = False
    idempotent: bool = True
    blocking: bool | None = None
    sequential: bool = False
    timeout_s: float | None = None
    context_parameter: str | None = None
    converters: Mapping[str, Callable[[Any], Any]] = field(default_factory=dict)
    injected: Mapping[str, str] = field(default_factory=dict)
    category: str = ""
    tags: tuple[str, ...] = ()
    group: str = ""
    version: str = ""
    needs_approval: ApprovalRule = False
    permit: PermitRule | None = None
    admit: AdmitRule | None = None
    external: bool = False
    mock: Callable[..., Any] | None = None
    siblings: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if not _NAME.fullmatch(self.name):
            raise ToolDefinitionError(
                f"tool name {self.name!r} must be 1 to 64 letters, digits, '_' or '-', beginning with a letter or '_'"
            )
        if not self.description.strip():
            raise ToolDefinitionError(f"tool {self.name!r} has no description: write a docstring")
        if self.parameters.get("type") != "object":
            raise ToolDefinitionError(f"tool {self.name!r}: parameters must be a JSON Schema of type object")
        if self.blocking is None:
            object.__setattr__(self, "blocking", not is_async(self.function))
        elif self.blocking and is_async(self.function):
            raise ToolDefinitionError(
                f"tool {self.name!r} is async and marked blocking: drop blocking, or make it a plain function"
            )
        if self.timeout_s is not None and self.timeout_s <= 0:
            raise ToolDefinitionError(f"tool {self.name!r}: timeout_s must be above 0")
        if self.group and not _GROUP.fullmatch(self.group):
            raise ToolDefinitionError(
                f"tool {self.name!r}: group {self.group!r} must be names joined by dots, e.g. 'crm.contacts'"
            )
        shown = [n for n in self.injected if n in self.parameters.get("properties", {})]
        if shown:
            raise ToolDefinitionError(
                f"tool {self.name!r}: {', '.join(shown)} is injected, so it must not be in the schema"
            )
        if self.context_parameter is None:
            object.__setattr__(self, "context_parameter", _context_parameter(self.function))

    def spec(self) -> ToolSpec:
        """Return the tool as providers must see it."""
        return ToolSpec(self.name, self.description, self.parameters)


def is_async(function: Callable[..., Any]) -> bool:
    """Tell whether a call of this gives something to await or to iterate over in the event loop."""
    while isinstance(function, functools.partial):
        function = function.func
    candidates = (function, vars(type(function)).get("__call__"))
    return any(
        inspect.iscoroutinefunction(candidate) or inspect.isasyncgenfunction(candidate)
        for candidate in candidates
    )


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
    blocking: bool | None = None,
    sequential: bool = False,
    timeout_s: float | None = None,
    category: str = "",
    tags: Sequence[str] = (),
    group: str = "",
    version: str = "",
    needs_approval: ApprovalRule = False,
    external: bool = False,
    mock: Callable[..., Any] | None = None,
    excluded: Sequence[str] = (),
) -> Callable[[Callable[..., Any]], Tool]: ...


def tool(
    function: Callable[..., Any] | None = None,
    /,
    *,
    name: str = "",
    description: str = "",
    side_effects: bool = False,
    idempotent: bool | None = None,
    blocking: bool | None = None,
    sequential: bool = False,
    timeout_s: float | None = None,
    category: str = "",
    tags: Sequence[str] = (),
    group: str = "",
    version: str = "",
    needs_approval: ApprovalRule = False,
    external: bool = False,
    mock: Callable[..., Any] | None = None,
    excluded: Sequence[str] = (),
) -> Tool | Callable[[Callable[..., Any]], Tool]:
    """Make a ``Tool`` from a function's type hints and its docstring (Google, NumPy or Sphinx style, or the compact form).

    Args:
        function: the function, when used as a bare decorator.
        name: name for the model; the function's own by default.
        description: replaces the docstring's text.
        side_effects, idempotent, blocking, sequential, timeout_s: see ``Tool``. ``idempotent`` defaults to the opposite
            of ``side_effects``.
        category, tags, group, version, needs_approval, external, mock: see ``Tool``.
        excluded: parameters the model must not see, filled from ``ToolContext.data`` by their own name where it is
            there, else by their default. ``FromContext`` marks one with another key.

    Raises:
        ToolDefinitionError: for a parameter without a usable type hint, or a docstring that does not fit the signature.
    """

    def make(target: Callable[..., Any]) -> Tool:
        # Imported here because schema.py needs the classes of this module.
        from toolloop.tools.schema import signature_read

        signature = signature_read(target, excluded=excluded)
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
            injected=signature.injected,
            category=category,
            tags=tuple(tags),
            group=group,
            version=version,
            needs_approval=needs_approval,
            external=external,
            mock=mock,
        )

    return make if function is None else make(function)
