"""What the modes share: where a run stands, turns that no model writes, and the request for the answer."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass, replace
from typing import Any, cast

from toolloop.errors import MalformedResponse
from toolloop.events import (
    ProviderEvent,
    ReasoningDelta,
    TextDelta,
    ToolArgumentsDelta,
    ToolCallStarted,
    TurnFinished,
)
from toolloop.messages import ModelMessage, ToolCall, Turn, UserMessage
from toolloop.output import Output, request_structured
from toolloop.planner_prompts import plain_history
from toolloop.providers._common import new_call_id
from toolloop.providers.base import ModelRequest, Provider
from toolloop.providers.profiles import Profile, profile_for
from toolloop.tokens import Usage
from toolloop.usage import BY_RULE


@dataclass(frozen=True, slots=True)
class Standing:
    """A history taken apart at the question that is being answered.

    Attributes:
        past: what was before it.
        question: what the user said last; empty when they said nothing.
        own: what the run has done about it so far, notices of the loop included.
    """

    past: tuple[ModelMessage, ...]
    question: UserMessage
    own: tuple[ModelMessage, ...]


def standing(messages: Sequence[ModelMessage]) -> Standing:
    """Find where a run stands."""
    for index in range(len(messages) - 1, -1, -1):
        message = messages[index]
        if isinstance(message, UserMessage) and not message.notice:
            return Standing(tuple(messages[:index]), message, tuple(messages[index + 1 :]))
    return Standing((), UserMessage(""), tuple(messages))


def profile_of(request: ModelRequest, provider: Provider) -> Profile:
    """Return what is known about the model that a request asks."""
    return request.profile or profile_for(provider.name, request.model)


def noted(request: ModelRequest, text: str) -> ModelRequest:
    """Add what the mode says to the model; a paused turn must stay the last message."""
    if request.messages and isinstance(request.messages[-1], Turn):
        return request
    return replace(request, messages=[*request.messages, UserMessage(text, notice=True)])


def answer_request(request: ModelRequest, output: Output | None, profile: Profile) -> ModelRequest:
    """Ask for the answer: no tools any more, and in the form it must have.

    The tools stay declared, so that the cached prefix holds. Where a model takes a form only without tools, the history is
    written in words instead.
    """
    if request.tools:
        request = replace(request, tool_choice="none")
    if output is None:
        return request
    if request.tools and profile.structured_output == "without_tools":
        words = plain_history(request.messages, as_plans=False)
        request = replace(request, messages=words, tools=(), tool_choice="auto")
    return request_structured(request, output, profile)


def call_make(name: str, arguments: Mapping[str, Any]) -> ToolCall:
    """Return a call of a tool, as a model would have written it."""
    values = dict(arguments)
    return ToolCall(new_call_id(), name, values, json.dumps(values, ensure_ascii=False))


def call_events(call: ToolCall) -> list[ProviderEvent]:
    """Return the deltas of a call."""
    return [ToolCallStarted(call.id, call.name), ToolArgumentsDelta(call.id, call.raw)]


async def by_rule(
    request: ModelRequest, provider: Provider, call: ToolCall
) -> AsyncGenerator[ProviderEvent, None]:
    """Make a turn of one call that no model was asked for; nothing is billed."""
    if request.meter is not None:
        request.meter.begin(provider.name, request.model, Usage, is_exact=True)
    for event in call_events(call):
        yield event
    yield TurnFinished(
        Turn(provider.name, request.model, tool_calls=(call,), stop="tools", stop_detail=BY_RULE)
    )


async def thinking(provider: Provider, request: ModelRequest) -> AsyncGenerator[ProviderEvent, None]:
    """Ask a model for a turn that is no answer: what it says is shown as its reasoning."""
    stream = cast(AsyncGenerator[ProviderEvent, None], provider.stream(request))
    async with aclosing(stream):
        async for event in stream:
            yield ReasoningDelta(event.text) if isinstance(event, TextDelta) else event


async def turn_of(provider: Provider, request: ModelRequest) -> Turn:
    """Ask a model for a turn that nobody watches.

    Raises:
        MalformedResponse: the stream ended before its turn.
    """
    turn: Turn | None = None
    stream = cast(AsyncGenerator[ProviderEvent, None], provider.stream(request))
    async with aclosing(stream):
        async for event in stream:
            if isinstance(event, TurnFinished):
                turn = event.turn
    if turn is None:
        raise MalformedResponse("the model's stream ended before its turn")
    return turn
