"""Events that ``run_loop`` yields, in the order in which things happen.

``step`` counts model turns of the run from 0 (a resumed run goes on counting). Provider adapters yield only
``TextDelta``, ``ReasoningDelta``, ``ToolCallStarted``, ``ToolArgumentsDelta`` (with step 0; the loop renumbers) and at
last exactly one ``TurnFinished``. A provider that asks its model again by itself yields ``StepReset`` in between.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal

from toolloop.deferred import PendingCall
from toolloop.messages import ToolCall, ToolResult, Turn
from toolloop.tokens import Usage

RunStatus = Literal["completed", "stopped", "failed", "parked"]


@dataclass(frozen=True, slots=True)
class TextDelta:
    text: str
    step: int = 0


@dataclass(frozen=True, slots=True)
class ReasoningDelta:
    text: str
    step: int = 0


@dataclass(frozen=True, slots=True)
class ToolCallStarted:
    """The model began to write a call; its arguments are not complete yet."""

    call_id: str
    name: str
    step: int = 0


@dataclass(frozen=True, slots=True)
class ToolArgumentsDelta:
    call_id: str
    delta: str
    step: int = 0


@dataclass(frozen=True, slots=True)
class TurnFinished:
    turn: Turn
    step: int = 0


@dataclass(frozen=True, slots=True)
class StepReset:
    """Everything streamed of this step so far is void: the model is asked again for the same step."""

    reason: str
    step: int = 0


@dataclass(frozen=True, slots=True)
class ToolRunning:
    """Execution of a complete, validated and permitted call begins (already journalled)."""

    call: ToolCall
    step: int = 0


@dataclass(frozen=True, slots=True)
class ToolProgress:
    """A call that runs has yielded a piece of its result, as text; ``ToolFinished`` brings the whole."""

    call: ToolCall
    text: str
    step: int = 0


@dataclass(frozen=True, slots=True)
class ToolFinished:
    call: ToolCall
    result: ToolResult
    duration_s: float
    step: int = 0


@dataclass(frozen=True, slots=True)
class CallParked:
    """A call waits for a decision; the run ends as "parked" once the other calls of the turn have ended."""

    pending: PendingCall
    step: int = 0


@dataclass(frozen=True, slots=True)
class LimitReached:
    """A limit of the run was met; one final answer without tools follows where that is possible."""

    limit: str
    detail: str
    step: int = 0


@dataclass(frozen=True, slots=True)
class RunFinished:
    """The last event of every run.

    Attributes:
        text: the final answer (partial when stopped or failed).
        usage: tokens of the whole run, those of earlier attempts included.
        stop: why the last turn ended, normalised (see ``messages.StopReason``).
        limit: name of the field of ``Limits`` that ended the run, "" for none.
        retryable: whether running again from the journal may succeed (failed runs only).
        data: ``cost_usd`` (None when the price is unknown), ``notes``, a list of sentences worth showing, and
            ``output_problem`` when a completed answer does not have the form asked for.
        tools: per tool that was called in this attempt ``calls``, ``errors`` and ``seconds``.
        output: with ``LoopInput(output=...)``, the checked value of a completed run.
        has_output: there is one; it may be None.
        pending: when parked, the calls that wait for a decision.
        step: the last step of the run.
    """

    status: RunStatus
    text: str
    usage: Usage
    stop: str = "end"
    limit: str = ""
    error_code: str = ""
    error_message: str = ""
    retryable: bool = False
    data: dict[str, Any] = field(default_factory=dict)
    step: int = 0
    tools: dict[str, dict[str, Any]] = field(default_factory=dict)
    pending: tuple[PendingCall, ...] = ()
    output: Any = None
    has_output: bool = False


ProviderEvent = TextDelta | ReasoningDelta | ToolCallStarted | ToolArgumentsDelta | StepReset | TurnFinished
Event = ProviderEvent | ToolRunning | ToolProgress | ToolFinished | CallParked | LimitReached | RunFinished
