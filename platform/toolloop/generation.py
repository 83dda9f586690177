"""What came of a run, as one value: gathered from its events."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Mapping, Sequence
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any, Self, cast

from toolloop.deferred import PendingCall
from toolloop.errors import ConfigurationError, GenerationFailed
from toolloop.events import Event, RunFinished, RunStatus, StepReset, ToolFinished, TurnFinished
from toolloop.history import histories_merge
from toolloop.messages import Citation, ModelMessage, ToolResult, Turn, message_from_json
from toolloop.output import Output
from toolloop.partial_output import PartialOutput
from toolloop.tokens import Usage


@dataclass(frozen=True, slots=True)
class Payload:
    """What a tool gave to the application besides its text for the model."""

    call_id: str
    name: str
    payload: Any


@dataclass(frozen=True, slots=True)
class Generation:
    """What came of a run.

    Attributes:
        text: the answer; what there was of it when stopped or parked.
        status: "completed", "stopped", or "parked" when calls wait for a decision. Failed runs are raised.
        output: the checked value, where a form was asked for.
        payloads: of tool calls that worked, in call order.
        messages: the whole history, question and answer included; give it as ``history`` to go on.
        usage, cost_usd: of the whole run; the cost is None where a price is unknown.
        limit: the field of ``Limits`` that ended the run, "" for none.
        pending: calls that wait; decide about each and give the generation back with ``decisions``.
        stop: why the last turn ended; "refusal", "filter" and "length" are no whole answers.
        steps: model turns of this run that ``messages`` holds.
        tools: per tool ``calls``, ``errors`` and ``seconds`` of this attempt.
        notes: sentences about what could not be enforced or done.
    """

    text: str
    status: RunStatus = "completed"
    output: Any = None
    payloads: tuple[Payload, ...] = ()
    messages: tuple[ModelMessage, ...] = ()
    usage: Usage = field(default_factory=Usage)
    cost_usd: float | None = None
    limit: str = ""
    pending: tuple[PendingCall, ...] = ()
    stop: str = "end"
    steps: int = 0
    tools: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    notes: tuple[str, ...] = ()

    @property
    def citations(self) -> tuple[Citation, ...]:
        """Return the sources that the provider named for this run's text."""
        turns = [message for message in self.messages if isinstance(message, Turn)]
        own = turns[len(turns) - self.steps :]
        return tuple(citation for turn in own for citation in turn.citations)

    def to_json(self) -> dict[str, Any]:
        """Return the generation as JSON values, to go on with it in another process."""
        return {
            "text": self.text,
            "status": self.status,
            "output": _plain(self.output),
            "payloads": [[p.call_id, p.name, p.payload] for p in self.payloads],
            "messages": [message.to_json() for message in self.messages],
            "usage": self.usage.to_json(),
            "cost_usd": self.cost_usd,
            "limit": self.limit,
            "pending": [pending.to_json() for pending in self.pending],
            "stop": self.stop,
            "steps": self.steps,
            "tools": {name: dict(figures) for name, figures in self.tools.items()},
            "notes": list(self.notes),
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Generation:
        """Rebuild the generation that ``to_json`` wrote; ``output`` is the plain JSON value then."""
        return cls(
            text=data["text"],
            status=data["status"],
            output=data["output"],
            payloads=tuple(Payload(*payload) for payload in data["payloads"]),
            messages=tuple(message_from_json(message) for message in data["messages"]),
            usage=Usage.from_json(data["usage"]),
            cost_usd=data["cost_usd"],
            limit=data["limit"],
            pending=tuple(PendingCall.from_json(pending) for pending in data["pending"]),
            stop=data["stop"],
            steps=data["steps"],
            tools=data["tools"],
            notes=tuple(data["notes"]),
        )


def _plain(value: Any) -> Any:
    """Return a checked value as JSON values."""
    if value is None or type(value) in (str, bool, int, float):
        return value
    from pydantic_core import to_jsonable_python

    return to_jsonable_python(value, by_alias=False)


class RunFailed(GenerationFailed):
    """A run that came to no answer.

    Attributes:
        code, retryable, usage: see ``GenerationFailed``.
        generation: what there is: partial text, messages so far, usage and cost. Give it back to try again from there.
    """

    def __init__(self, message: str, code: str, *, retryable: bool, generation: Generation) -> None:
        super().__init__(message, code, retryable=retryable, usage=generation.usage)
        self.generation = generation


class Gatherer:
    """Gathers a generation from the events of a run.

    Args:
        history: what the run was given.
        first_step: turns of the run that it holds already.
    """

    def __init__(self, history: Sequence[ModelMessage], first_step: int) -> None:
        self._messages: list[ModelMessage] = list(history)
        self._steps = first_step
        self._results: list[ToolResult] = []
        self._end: RunFinished | None = None

    def see(self, event: Event) -> None:
        """Take note of an event."""
        if isinstance(event, TurnFinished):
            self._messages.append(event.turn)
            self._steps += 1
        elif isinstance(event, ToolFinished):
            self._messages.append(event.result)
            self._results.append(event.result)
        elif isinstance(event, RunFinished):
            self._end = event

    @property
    def is_ended(self) -> bool:
        """Tell whether the run's last event was seen."""
        return self._end is not None

    def generation(self) -> Generation:
        """Return what came of the run; of one that was left before its end, what there was."""
        end = self._end or RunFinished("stopped", "", Usage(), stop="stopped")
        messages = tuple(histories_merge(self._messages))
        order = [message.call_id for message in messages if isinstance(message, ToolResult)]
        worked = [r for r in self._results if not r.is_error and r.payload is not None]
        worked.sort(key=lambda result: order.index(result.call_id))
        return Generation(
            text=end.text,
            status=end.status,
            output=end.output,
            payloads=tuple(Payload(r.call_id, r.name, r.payload) for r in worked),
            messages=messages,
            usage=end.usage,
            cost_usd=cast("float | None", end.data.get("cost_usd")),
            limit=end.limit,
            pending=end.pending,
            stop=end.stop,
            steps=self._steps,
            tools=end.tools,
            notes=tuple(end.data.get("notes", ())),
        )

    def answer(self, *, has_form: bool) -> Generation:
        """Return what came of the run.

        Raises:
            RunFailed: the run failed, or it has no value although a form was asked for.
        """
        made = self.generation()
        if self._end is not None and self._end.status == "failed":
            raise RunFailed(
                self._end.error_message, self._end.error_code, retryable=self._end.retryable, generation=made
            )
        if has_form and made.status == "completed" and not (self._end and self._end.has_output):
            text = f"The model gave no answer in the requested form (it stopped with {made.stop!r})."
            raise RunFailed(text, "no_answer", retryable=False, generation=made)
        return made


class GenerationStream:
    """The events of a run, and what came of it in the end. Close it, or use it in ``async with``, to leave early."""

    def __init__(
        self, events: AsyncGenerator[Event, None], gatherer: Gatherer, *, form: Output | None
    ) -> None:
        self._events, self._gatherer, self._form = events, gatherer, form

    def __aiter__(self) -> AsyncIterator[Event]:
        return self

    async def __anext__(self) -> Event:
        return await anext(self._events)

    async def outputs(self) -> AsyncGenerator[Any, None]:
        """Yield the structured answer as it comes: read the stream with this, or event by event.

        Yields:
            JSON values in the shape of the answer, each with more in it than the one before; see
            ``toolloop.partial_output``. The last one is the checked value itself. After an answer that did not fit it begins
            with little again. A run that parks or is stopped ends without the last one.

        Raises:
            ConfigurationError: no form was asked for.
            RunFailed: as for ``Client.generate``.
        """
        if self._form is None:
            raise ConfigurationError("structured values need output=")
        partial = PartialOutput(self._form)
        async for event in self:
            if partial.see(event) and not isinstance(event, StepReset):
                yield partial.value
        self._gatherer.answer(has_form=True)

    async def aclose(self) -> None:
        """Leave the run: the provider's stream is closed, tools are cancelled."""
        await self._events.aclose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.aclose()

    @property
    def generation(self) -> Generation:
        """Return what came of the run, as ``Client.generate`` does; read all events first.

        Raises:
            RunFailed: as for ``Client.generate``.
            RuntimeError: the last event was not read.
        """
        if not self._gatherer.is_ended:
            raise RuntimeError("read the stream to its end before getting its result")
        return self._gatherer.answer(has_form=self._form is not None)
