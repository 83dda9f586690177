"""What passes between a run and a tool's function: the context it is given, what it returns, what it raises."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

from toolloop.deferred import Decision
from toolloop.errors import ConfigurationError, ToolloopError
from toolloop.media import Media
from toolloop.messages import ToolResult

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
        data: the ``context`` mapping of ``LoopInput``.
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
