"""A provider that follows a script, for tests and demonstrations: it reads like a dialogue.

provider = ScriptedProvider([
    says("Let me look.", call("search", query="duty")),
    says("It is 5 %.", expect="5 %"),
])
"""

from __future__ import annotations

import asyncio
import itertools
import json
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from toolloop.errors import ConfigurationError, ProviderError
from toolloop.events import (
    ProviderEvent,
    ReasoningDelta,
    TextDelta,
    ToolArgumentsDelta,
    ToolCallStarted,
    TurnFinished,
)
from toolloop.messages import StopReason, ToolCall, ToolResult, Turn, UserMessage
from toolloop.providers.base import ModelRequest
from toolloop.tokens import Usage

Expectation = str | Callable[[ModelRequest], bool]


@dataclass(frozen=True, slots=True)
class ScriptedCall:
    """A call the script makes. ``raw`` replaces the arguments by text that may be no JSON at all."""

    name: str
    arguments: Mapping[str, Any] = field(default_factory=dict)
    id: str = ""
    raw: str | None = None


@dataclass(frozen=True, slots=True)
class ScriptedTurn:
    """What one model call answers.

    Attributes:
        chunks: text deltas, in order.
        calls: tool calls after the text.
        reasoning: one reasoning delta before the text.
        delay_s: seconds before the first delta.
        chunk_delay_s: seconds before each text delta.
        hangs: after the text, say nothing more until the stream is closed.
        error: raised after the text (before anything, when there is no text).
        stop: the turn's stop reason; "tools" with calls and "end" without, when None.
        usage: tokens of the call.
        expect: text that the last message must contain, or a check of the request.
        native: the provider's own items to store with the turn.
    """

    chunks: tuple[str, ...] = ()
    calls: tuple[ScriptedCall, ...] = ()
    reasoning: str = ""
    delay_s: float = 0.0
    chunk_delay_s: float = 0.0
    hangs: bool = False
    error: Exception | None = None
    stop: StopReason | None = None
    usage: Usage = field(default_factory=lambda: Usage(10, 0, 0, 5, 0, 1))
    expect: Expectation | None = None
    native: list[dict[str, Any]] | None = None


def call(name: str, /, **arguments: Any) -> ScriptedCall:
    """Make a call with these arguments."""
    return ScriptedCall(name, arguments)


def says(text: str | Sequence[str], /, *calls: ScriptedCall, **settings: Any) -> ScriptedTurn:
    """Make a turn that says something (a string, or its deltas) and may call tools."""
    chunks = (text,) if isinstance(text, str) else tuple(text)
    return ScriptedTurn(tuple(c for c in chunks if c), calls, **settings)


def calls(*made: ScriptedCall, **settings: Any) -> ScriptedTurn:
    """Make a turn that only calls tools."""
    return ScriptedTurn((), made, **settings)


def fails(error: ProviderError, *, after: str = "", **settings: Any) -> ScriptedTurn:
    """Make a turn that breaks, after some text when given."""
    return ScriptedTurn((after,) if after else (), error=error, **settings)


def hangs(*, after: str = "", **settings: Any) -> ScriptedTurn:
    """Make a turn that falls silent and stays so."""
    return ScriptedTurn((after,) if after else (), hangs=True, **settings)


class ScriptedProvider:
    """Plays a script; see the module's text.

    Args:
        turns: one entry a model call, or a function of the request.
        name: provider name the turns carry.
        by_history: pick the entry by the number of turns since the user's last message instead of counting calls, so
            that a new instance goes on where a resumed run stands.

    Attributes:
        requests: every request it got.
        open_streams: streams begun and not yet closed.
    """

    def __init__(
        self,
        turns: Sequence[ScriptedTurn] | Callable[[ModelRequest], ScriptedTurn],
        *,
        name: str = "scripted",
        by_history: bool = False,
    ) -> None:
        self.name = name
        self._turns = turns
        self._by_history = by_history
        self._ids = itertools.count(1)
        self.requests: list[ModelRequest] = []
        self.open_streams = 0
        self.closed = False

    async def stream(self, request: ModelRequest) -> AsyncGenerator[ProviderEvent, None]:
        """Play the next turn.

        Raises:
            ConfigurationError: the script has no further turn, or does not get what it expects.
            ProviderError: the turn's own.
        """
        number = len(self.requests)
        self.requests.append(request)
        turn = self._turn(request, number)
        self._check(turn, request, number)
        self.open_streams += 1
        try:
            if turn.delay_s:
                await asyncio.sleep(turn.delay_s)
            if turn.reasoning:
                yield ReasoningDelta(turn.reasoning)
            for chunk in turn.chunks:
                if turn.chunk_delay_s:
                    await asyncio.sleep(turn.chunk_delay_s)
                yield TextDelta(chunk)
            if turn.error is not None:
                raise turn.error
            if turn.hangs:
                await asyncio.Event().wait()
            made = tuple(self._call(scripted, request) for scripted in turn.calls)
            for tool_call in made:
                yield ToolCallStarted(tool_call.id, tool_call.name)
                yield ToolArgumentsDelta(tool_call.id, tool_call.raw)
            yield TurnFinished(
                Turn(
                    provider=self.name,
                    model=request.model,
                    text="".join(turn.chunks),
                    reasoning=turn.reasoning,
                    tool_calls=made,
                    stop=turn.stop or ("tools" if made else "end"),
                    native=turn.native,
                    usage=turn.usage,
                )
            )
        finally:
            self.open_streams -= 1

    async def aclose(self) -> None:
        """Close; nothing is held open."""
        self.closed = True

    def _turn(self, request: ModelRequest, number: int) -> ScriptedTurn:
        if callable(self._turns):
            return self._turns(request)
        index = _turns_since_user(request) if self._by_history else number
        if index >= len(self._turns):
            raise ConfigurationError(
                f"the script has {len(self._turns)} turns and is asked for turn {index + 1}"
            )
        return self._turns[index]

    @staticmethod
    def _check(turn: ScriptedTurn, request: ModelRequest, number: int) -> None:
        if turn.expect is None:
            return
        last = request.messages[-1] if request.messages else UserMessage("")
        seen = last.content if isinstance(last, ToolResult) else last.text
        met = turn.expect in seen if isinstance(turn.expect, str) else turn.expect(request)
        if not met:
            raise ConfigurationError(
                f"turn {number + 1} of the script expects {turn.expect!r}; the last message is {seen!r}"
            )

    def _call(self, scripted: ScriptedCall, request: ModelRequest) -> ToolCall:
        arguments: dict[str, Any] | None = dict(scripted.arguments)
        raw, problem = json.dumps(arguments), ""
        if scripted.raw is not None:
            raw = scripted.raw
            try:
                parsed = json.loads(raw)
                arguments = parsed if isinstance(parsed, dict) else None
                problem = "" if isinstance(parsed, dict) else f"it is a {type(parsed).__name__}"
            except ValueError as error:
                arguments, problem = None, str(error)
        return ToolCall(self._call_id(scripted, request), scripted.name, arguments, raw, problem)

    def _call_id(self, scripted: ScriptedCall, request: ModelRequest) -> str:
        if scripted.id:
            return scripted.id
        if self._by_history:
            # A later instance must not give out an id that the history already holds.
            return f"call_{len(request.messages)}_{next(self._ids)}"
        return f"call_{next(self._ids)}"


def _turns_since_user(request: ModelRequest) -> int:
    count = 0
    for message in reversed(request.messages):
        if isinstance(message, UserMessage) and not message.notice:
            break
        count += isinstance(message, Turn)
    return count
