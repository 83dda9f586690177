"""OpenTelemetry spans of runs, model calls and tool calls, after the GenAI semantic conventions. Off unless asked for.

https://opentelemetry.io/docs/specs/semconv/gen-ai/ (status: development; names as of version 1.41). ``opentelemetry-api`` is
imported when a ``Telemetry`` is made, not before. Spans hold names, ids, counts and times. What people, models and tools
said goes in only with ``record_content=True``.
"""

from __future__ import annotations

import json
import time
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import aclosing
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final, cast

from toolloop.deferred import PendingCall
from toolloop.errors import ConfigurationError, ProviderError
from toolloop.events import Event, ProviderEvent, RunFinished, TurnFinished
from toolloop.journal import Journal
from toolloop.loop import run_loop
from toolloop.loop_values import LoopInput, LoopServices
from toolloop.masking import masked
from toolloop.messages import ModelMessage, ToolCall, ToolResult, Turn, UserMessage
from toolloop.providers.base import ModelRequest, Provider
from toolloop.service import STANDARD
from toolloop.tokens import Usage
from toolloop.usage import CACHED

if TYPE_CHECKING:
    from opentelemetry.context import Context
    from opentelemetry.trace import Span, TracerProvider

    from toolloop.tools.tool import Tool, Verdict

_PROVIDERS: Final = {"google": "gcp.gemini", "xai": "x_ai"}
_FINISH: Final = {"end": "stop", "tools": "tool_calls", "filter": "content_filter"}


class Telemetry:
    """Where spans go and what they may hold; make one per process.

    Args:
        tracer_provider: the application's; the global one when None.
        record_content: put prompts, answers, arguments and results into spans. They may hold anything that users and
            documents do: switch it on only where whoever reads the spans may read that too.

    Raises:
        ConfigurationError: without ``opentelemetry-api``.
    """

    def __init__(
        self, *, tracer_provider: TracerProvider | None = None, record_content: bool = False
    ) -> None:
        try:
            from opentelemetry import trace
        except ImportError as error:
            raise ConfigurationError(
                "Telemetry needs the package opentelemetry-api: pip install opentelemetry-api"
            ) from error
        self.trace = trace
        self.tracer = trace.get_tracer("toolloop", tracer_provider=tracer_provider)
        self.record_content = record_content


def run_traced(
    telemetry: Telemetry | None,
    asked: LoopInput,
    services: LoopServices,
    *,
    agent_name: str = "",
    conversation_id: str = "",
) -> AsyncGenerator[Event, None]:
    """Run the loop under a span, with a span for each model call and each tool call below it.

    Args:
        telemetry: None runs the loop as it is.
        asked, services: as for ``run_loop``.
        agent_name: names the run's span, "" for none.
        conversation_id: ties the spans of several runs together, "" for none.
    """
    if telemetry is None:
        return run_loop(asked, services)
    return _RunTrace(telemetry, services.provider.name, asked.model, agent_name, conversation_id).events(
        asked, services
    )


class _RunTrace:
    """The spans of one run."""

    def __init__(
        self, telemetry: Telemetry, provider: str, model: str, agent_name: str, conversation_id: str
    ) -> None:
        self._telemetry, self._model, self._agent = telemetry, model, agent_name
        self.shared: dict[str, Any] = {"gen_ai.provider.name": _PROVIDERS.get(provider, provider)}
        if conversation_id:
            self.shared["gen_ai.conversation.id"] = conversation_id
        self._context: Context | None = None

    async def events(self, asked: LoopInput, services: LoopServices) -> AsyncGenerator[Event, None]:
        """Yield the run's events."""
        attributes = {"gen_ai.request.model": self._model}
        if self._agent:
            attributes["gen_ai.agent.name"] = self._agent
        run = self.span_begin("invoke_agent", self._agent, attributes)
        self._context = self._telemetry.trace.set_span_in_context(run)
        calls = _TracedJournal(services.journal, self)
        provider = _TracedProvider(services.provider, self)
        stream = run_loop(asked, replace(services, provider=provider, journal=calls))
        is_ended = False
        try:
            async with aclosing(stream) as events:
                async for event in events:
                    if isinstance(event, RunFinished):
                        is_ended = True  # Now: many a reader goes away with this event.
                        self._run_ended(run, event)
                    yield event
        except BaseException as error:
            if not is_ended:
                self.failed(run, _error_type(error))
            raise
        finally:
            calls.close()
            run.end()

    def span_begin(
        self,
        operation: str,
        subject: str,
        attributes: Mapping[str, Any],
        *,
        parent: Span | None = None,
        start_ns: int | None = None,
    ) -> Span:
        """Begin a span below ``parent``, below the run's own when None."""
        trace = self._telemetry.trace
        kind = trace.SpanKind.CLIENT if operation == "chat" else trace.SpanKind.INTERNAL
        context = self._context if parent is None else trace.set_span_in_context(parent)
        return self._telemetry.tracer.start_span(
            f"{operation} {subject}".strip(),
            context=context,
            kind=kind,
            attributes={"gen_ai.operation.name": operation, **self.shared, **attributes},
            start_time=start_ns,
        )

    def failed(self, span: Span, error_type: str) -> None:
        """Mark a span as failed; texts of errors may hold content, so only the type is kept."""
        span.set_attribute("error.type", error_type)
        span.set_status(self._telemetry.trace.Status(self._telemetry.trace.StatusCode.ERROR))

    def content_set(self, span: Span, key: str, value: Any) -> None:
        """Record content where that is switched on."""
        if self._telemetry.record_content:
            text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
            span.set_attribute(key, text)

    def _run_ended(self, span: Span, end: RunFinished) -> None:
        span.set_attributes(_usage_attributes(end.usage))
        span.set_attribute("gen_ai.response.finish_reasons", [_FINISH.get(end.stop, end.stop)])
        span.set_attribute("toolloop.status", end.status)
        if end.limit:
            span.set_attribute("toolloop.limit", end.limit)
        if end.data.get("cost_usd") is not None:
            span.set_attribute("toolloop.cost_usd", end.data["cost_usd"])
        if end.status == "failed":
            self.failed(span, end.error_code)
        self.content_set(span, "gen_ai.output.messages", [{"role": "assistant", "parts": _text(end.text)}])


class _TracedProvider:
    """A provider each of whose calls has a span; attempts that fail have one of their own."""

    def __init__(self, provider: Provider, run: _RunTrace) -> None:
        self.name = provider.name
        self._provider, self._run = provider, run

    async def aclose(self) -> None:
        """Close the provider."""
        await self._provider.aclose()

    async def stream(self, request: ModelRequest) -> AsyncGenerator[ProviderEvent, None]:
        """See ``Provider``."""
        attributes = _request_attributes(request)
        tier = request.options.get("service_tier")
        if tier and isinstance(tier, str):
            attributes["toolloop.request.service_tier"] = tier
            if self.name == "openai":
                attributes["openai.request.service_tier"] = _wire_tier(tier)
        span = self._run.span_begin("chat", request.model, attributes)
        self._run.content_set(span, "gen_ai.system_instructions", _text(request.system))
        self._run.content_set(
            span, "gen_ai.input.messages", [_message(message) for message in request.messages]
        )
        begun, turn = time.monotonic(), None
        is_first = True
        events = cast(AsyncGenerator[ProviderEvent, None], self._provider.stream(request))
        try:
            async with aclosing(events) as stream:
                async for event in stream:
                    if is_first:
                        is_first = False
                        waited = time.monotonic() - begun
                        span.set_attribute("gen_ai.response.time_to_first_chunk", waited)
                    if isinstance(event, TurnFinished):
                        turn = event.turn
                        self._turn_ended(span, turn)
                    yield event
        except BaseException as error:
            if turn is None:  # Behind its turn a stream is closed, which is no failure.
                if isinstance(error, ProviderError) and error.usage is not None:
                    span.set_attributes(_usage_attributes(error.usage))
                self._run.failed(span, _error_type(error))
            raise
        finally:
            span.end()

    def _turn_ended(self, span: Span, turn: Turn) -> None:
        span.set_attributes(_usage_attributes(turn.usage))
        span.set_attribute("gen_ai.response.model", turn.model)
        span.set_attribute("gen_ai.provider.name", _PROVIDERS.get(turn.provider, turn.provider))
        span.set_attribute("gen_ai.response.finish_reasons", [_FINISH.get(turn.stop, turn.stop)])
        if turn.service_tier:
            span.set_attribute("toolloop.response.service_tier", turn.service_tier)
            if turn.provider == "openai":
                span.set_attribute("openai.response.service_tier", _wire_tier(turn.service_tier))
        if turn.request_id:
            span.set_attribute("gen_ai.response.id", turn.request_id)
        if turn.stop_detail == CACHED:
            span.set_attribute("toolloop.cached", True)
        if turn.stop == "error":
            self._run.failed(span, "malformed_response")
        self._run.content_set(span, "gen_ai.output.messages", [_message(turn)])


class _TracedJournal:
    """A journal that opens and closes the spans of tool calls, those that tools make included."""

    def __init__(self, journal: Journal, run: _RunTrace) -> None:
        self._journal, self._run = journal, run
        self._open: dict[str, Span] = {}

    def close(self) -> None:
        """End what is open: calls of which no end was recorded."""
        for span in self._open.values():
            self._run.failed(span, "cancelled")
            span.end()
        self._open.clear()

    async def turn_started(self, step: int) -> None:
        """See ``Journal``."""
        await self._journal.turn_started(step)

    async def turn_finished(self, step: int, turn: Turn) -> None:
        """See ``Journal``."""
        await self._journal.turn_finished(step, turn)

    async def call_started(self, step: int, call: ToolCall, tool: Tool | None) -> ToolResult | None:
        """See ``Journal``; a call that has its result already is not executed and has no span."""
        result = await self._journal.call_started(step, call, tool)
        if result is None:
            self._open[call.id] = self._begin(call, tool)
        return result

    async def call_finished(self, step: int, call: ToolCall, result: ToolResult, duration_s: float) -> None:
        """See ``Journal``."""
        span = self._open.pop(call.id, None) or self._begin(call, None)
        if result.is_error:
            self._run.failed(span, result.error_code or "tool_error")
        self._run.content_set(span, "gen_ai.tool.call.result", result.content)
        span.end()
        await self._journal.call_finished(step, call, result, duration_s)

    def call_judged(self, step: int, call: ToolCall, verdict: Verdict) -> None:
        """See ``JudgingJournal``."""
        judged = getattr(self._journal, "call_judged", None)
        if judged is not None:
            judged(step, call, verdict)

    def calls_made(self, step: int, call_id: str) -> Mapping[str, tuple[str, Any]]:
        """See ``KnowingJournal``."""
        made = getattr(self._journal, "calls_made", None)
        found: Mapping[str, tuple[str, Any]] = {} if made is None else made(step, call_id)
        return found

    async def response_started(self, step: int, response_id: str) -> None:
        """See ``RememberingJournal``."""
        started = getattr(self._journal, "response_started", None)
        if started is not None:
            await started(step, response_id)

    def response_of(self, step: int) -> str | None:
        """See ``RememberingJournal``."""
        known = getattr(self._journal, "response_of", None)
        found: str | None = None if known is None else known(step)
        return found

    async def call_parked(self, step: int, pending: PendingCall) -> None:
        """See ``ParkingJournal``."""
        span = self._open.pop(pending.call.id, None)
        if span is not None:
            span.set_attribute("toolloop.status", "parked")
            span.end()
        parked = getattr(self._journal, "call_parked", None)
        if parked is not None:
            await parked(step, pending)

    def _begin(self, call: ToolCall, tool: Tool | None) -> Span:
        attributes = {
            "gen_ai.tool.name": call.name,
            "gen_ai.tool.call.id": call.id,
            "gen_ai.tool.type": "function",
        }
        if tool is not None:
            attributes["gen_ai.tool.description"] = tool.description
        span = self._run.span_begin("execute_tool", call.name, attributes, parent=self._parent(call.id))
        arguments = call.raw if call.arguments is None else call.arguments
        schema = None if tool is None else tool.parameters
        self._run.content_set(span, "gen_ai.tool.call.arguments", masked(arguments, schema))
        return span

    def _parent(self, call_id: str) -> Span | None:
        """Return the span of the tool that made a call: ids of nested calls begin with the parent's."""
        while "." in call_id:
            call_id = call_id.rpartition(".")[0]
            if call_id in self._open:
                return self._open[call_id]
        return None


def _error_type(error: BaseException) -> str:
    if isinstance(error, ProviderError):
        return error.code
    # A task that is cancelled, or a stream whose reader went away.
    return "cancelled" if not isinstance(error, Exception) else type(error).__qualname__


def _wire_tier(tier: str) -> str:
    """Return a service tier by the name that OpenAI and its semantic conventions have for it."""
    return "default" if tier == STANDARD else tier


def _request_attributes(request: ModelRequest) -> dict[str, Any]:
    found: dict[str, Any] = {
        "gen_ai.request.model": request.model,
        "gen_ai.request.stream": True,
        "gen_ai.output.type": "text" if request.response_schema is None else "json",
    }
    if request.max_output_tokens is not None:
        found["gen_ai.request.max_tokens"] = request.max_output_tokens
    for name in ("temperature", "top_p"):
        if isinstance(request.options.get(name), int | float):
            found[f"gen_ai.request.{name}"] = float(request.options[name])
    return found


def _usage_attributes(usage: Usage) -> dict[str, Any]:
    return {
        "gen_ai.usage.input_tokens": usage.input_total,
        "gen_ai.usage.output_tokens": usage.output_total,
        "gen_ai.usage.cache_read.input_tokens": usage.cached_read,
        "gen_ai.usage.cache_creation.input_tokens": usage.cache_write,
        "gen_ai.usage.reasoning.output_tokens": usage.reasoning,
    }


def _text(text: str) -> list[dict[str, Any]]:
    return [{"type": "text", "content": text}] if text else []


def _message(message: ModelMessage) -> dict[str, Any]:
    if isinstance(message, UserMessage):
        return {"role": "user", "parts": _text(message.text)}
    if isinstance(message, ToolResult):
        part = {"type": "tool_call_response", "id": message.call_id, "response": message.content}
        return {"role": "tool", "parts": [part]}
    calls: Sequence[dict[str, Any]] = [
        {"type": "tool_call", "id": call.id, "name": call.name, "arguments": masked(call.arguments)}
        for call in message.tool_calls
    ]
    return {"role": "assistant", "parts": [*_text(message.text), *calls]}
