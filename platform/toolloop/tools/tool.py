"""What a tool is: a function with a name, a schema for the model, and facts about how it may be run."""

from __future__ import annotations

import functools
import inspect
import re
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol, get_type_hints, overload

from toolloop.deferred import SELF, Approval, Decision
from toolloop.errors import ConfigurationError, ToolloopError
from toolloop.media import Media
from toolloop.messages import ToolResult
from toolloop.providers.base import ToolSpec

_NAME = re.compile(r"[a-zA-Z_][a-zA-Z0-9_-]{0,63}")
_GROUP = re.compile(r"[a-zA-Z0-9_-]+(\.[a-zA-Z0-9_-]+)*")

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


class CallRefused(ToolError):
    """Raise in ``Tool.admit`` to refuse a call before it runs.

    Args:
        code: the result's error code.
        data: JSON values for the application, in the result's payload.
    """

    def __init__(
        self, code: str, message: str, severity: Severity = "fatal", *, data: Mapping[str, Any]
    ) -> None:
        super().__init__(message, severity)
        self.code, self.data = code, dict(data)


@dataclass(frozen=True, slots=True)
class ToolOutput:
    """What a tool returns when the model and the application need different things.

    Attributes:
        content: text for the model.
        payload: JSON value that stays with the application.
        parts: images and PDF files for the model; a run whose model takes none fails, so offer such a tool only to
            models that do.
    """

    content: str
    payload: Any = None
    parts: tuple[Media, ...] = ()


class NestedCaller(Protocol):
    """Runs a call that a tool makes; the loop gives one to every tool it runs."""

    async def __call__(
        self,
        parent: ToolContext,
        name: str,
        arguments: Mapping[str, Any],
        call_id: str,
        decision: Decision | None,
    ) -> ToolResult: ...


@dataclass(frozen=True, slots=True)
class ToolContext:
    """What the application hands to a tool; a parameter of this type is filled in and never shown to the model.

    Attributes:
        data: the ``context`` mapping given to ``run_loop``.
        call_id: id of the call being answered; with the run's id it makes an idempotency key.
        step: model turn of the run that asked for the call.
        cancelled: set when the call timed out or the run was stopped. A thread cannot be ended from outside, so a
            long blocking tool looks at it now and then and returns.
        depth: 0 for a call of the model, 1 for a call of such a tool, and so on.
        decision: what was decided about this very call, when it was parked before; see ``toolloop.deferred``.
        nested: runs the calls that this tool makes; use ``call``.
        on_piece: told of each piece that a tool which yields its result has yielded, as text; None where nobody listens.
        siblings: the names by which this tool calls others that are offered under longer ones; see ``Tool``.
    """

    data: Mapping[str, Any] = field(default_factory=dict)
    call_id: str = ""
    step: int = 0
    cancelled: threading.Event = field(default_factory=threading.Event)
    depth: int = 0
    decision: Decision | None = None
    nested: NestedCaller | None = None
    on_piece: Callable[[str], None] | None = None
    siblings: Mapping[str, str] = field(default_factory=dict)

    async def call(
        self, name: str, arguments: Mapping[str, Any], *, call_id: str = "", decision: Decision | None = None
    ) -> ToolResult:
        """Call another tool of the run, under the same checks, approvals, journal and limits as a call of the model.

        Args:
            name: of the tool; one of the same plug-in also by the name that it has there.
            arguments: as a model would write them: JSON values.
            call_id: "" counts the calls of this tool: ``<own id>.1`` and so on. When the tool runs again, after it
                waited or after a crash, a call is known by what it asks for, so that calls that are made at once
                (``asyncio.gather``) may come in another order. Give an id where arguments differ from one time to the
                next (they hold the time) and calls are made at once.
            decision: about this call, when the tool itself keeps where it was parked.

        Returns:
            The result; look at ``is_error``.

        Raises:
            ParkCall: the call needs a decision. Let it pass: the run parks (also where the tool catches it), and when it
                goes on, this tool runs from the start, while the calls it made before get the results they had.
            ConfigurationError: outside of a run, or after this tool has ended.
            NoJsonForm: an argument is no JSON value, and of no type that ``toolloop.tools.results`` knows.
        """
        if self.nested is None:
            raise ConfigurationError("tools can call tools only inside a run")
        return await self.nested(self, self.siblings.get(name, name), arguments, call_id, decision)


@dataclass(frozen=True, slots=True)
class FromContext:
    """Mark a parameter, ``Annotated[str, FromContext("tenant_slug")]``, that the application fills in.

    Such a parameter is never shown to the model, and a model that sends it is told that it may not.

    Attributes:
        key: key of ``ToolContext.data``; "" takes the parameter's own name.
    """

    key: str = ""


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
        admit: asked with a call's JSON arguments once it is about to run, where blocking functions run; raises
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
    """Make a ``Tool`` from a function's type hints and its docstring (Google style, or the compact form).

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
