"""What an agent does about a question, step by step."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from toolloop.events import Event, RunFinished, ToolFinished, TurnFinished
from toolloop.messages import ModelMessage, ToolCall, ToolResult, Turn
from toolloop.tokens import Usage


@dataclass(frozen=True, slots=True)
class AgentStep:
    """One action and what came of it.

    Attributes:
        thought: what the model said before it acted, "" for nothing.
        action: name of the tool.
        input: arguments; None when the model wrote none that can be read.
        observation: what the model reads; None while the call runs.
        is_error: the call failed.
        payload: the application's part of the result.
        call_id: of the call.
    """

    thought: str
    action: str
    input: dict[str, Any] | None
    observation: str | None = None
    is_error: bool = False
    payload: Any = None
    call_id: str = ""


@dataclass(slots=True)
class AgentExchange:
    """What happened since the question, in the order a history needs."""

    messages: list[ModelMessage]
    steps: list[AgentStep] = field(default_factory=list)
    end: RunFinished | None = None
    _results: dict[str, ToolResult] = field(default_factory=dict)

    @property
    def turns(self) -> int:
        return sum(isinstance(message, Turn) for message in self.messages)

    @property
    def usage(self) -> Usage:
        turns = (message for message in self.messages if isinstance(message, Turn))
        return sum((turn.usage for turn in turns), Usage())

    def take(self, event: Event) -> None:
        if isinstance(event, TurnFinished):
            self._close_turn()
            self.messages.append(event.turn)
        elif isinstance(event, ToolFinished):
            self._results[event.call.id] = event.result
            self.steps.append(self.step(event.call, event.result))
        elif isinstance(event, RunFinished):
            self._close_turn()
            self.end = event

    def _close_turn(self) -> None:
        """Put the results of the last turn into call order."""
        turn = self._last_turn()
        calls = turn.tool_calls if turn is not None else ()
        self.messages += [self._results[c.id] for c in calls if c.id in self._results]
        self._results.clear()

    def _last_turn(self) -> Turn | None:
        turns = (m for m in reversed(self.messages) if isinstance(m, Turn))
        return next(turns, None)

    def step(self, call: ToolCall, result: ToolResult | None = None) -> AgentStep:
        turn = self._last_turn()
        thought = (turn.text or turn.reasoning).strip() if turn is not None else ""
        if result is None:
            return AgentStep(thought, call.name, call.arguments, call_id=call.id)
        return AgentStep(
            thought, call.name, call.arguments, result.content, result.is_error, result.payload, call.id
        )
