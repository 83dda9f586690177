"""An answer that is none: models that plan sometimes write a plan where their answer is asked for."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import AsyncGenerator, Callable, Iterator, Mapping, Sequence
from contextlib import aclosing
from dataclasses import replace
from typing import Any, cast

from toolloop.errors import MalformedResponse
from toolloop.events import ProviderEvent, StepReset, TextDelta, TurnFinished
from toolloop.messages import Turn, UserMessage
from toolloop.providers.base import ModelRequest, Provider
from toolloop.tokens import Usage

INVALID_PLAN = "invalid_plan"
"""Reason of the ``StepReset`` that takes back what was streamed of a plan that cannot be used."""

_ATTEMPTS = 3
_NO_PLAN = (
    "[This is a plan, and no tool can be used any more. Answer the user in words now, from what is known, and say plainly "
    "what could not be found.]"
)
_DECODER = json.JSONDecoder()
_BEFORE_OBJECT = re.compile(r"\s*(?:```[a-zA-Z0-9_-]*\s*)?")
_LOOKED_AT = 200


def objects_in(text: str) -> Iterator[Mapping[str, Any]]:
    """Yield the JSON objects of a text one after another, up to the first that cannot be read."""
    at = 0
    while True:
        starts = [place for place in (text.find("{", at), text.find("[", at)) if place >= 0]
        if not starts:
            return
        try:
            value, at = _DECODER.raw_decode(text, min(starts))
        except (ValueError, RecursionError):
            return
        if isinstance(value, Mapping):
            yield value


def may_begin_with(text: str, keys: Sequence[str]) -> bool:
    """Tell whether a text that is still being written may be an object whose first name is one of these."""
    found = _BEFORE_OBJECT.match(text)
    rest = "".join(text[found.end() if found else 0 :][:_LOOKED_AT].split())
    wanted = [f'{{"{key}"' for key in keys]
    return any(begun.startswith(rest) or rest.startswith(begun) for begun in wanted)


async def words_only(
    provider: Provider,
    request: ModelRequest,
    *,
    keys: Sequence[str],
    answer_in: Callable[[Mapping[str, Any]], str | None],
) -> AsyncGenerator[ProviderEvent, None]:
    """Ask for an answer, and again where the model writes a plan instead.

    What may be the beginning of a plan is held back until it is clear.

    Args:
        provider: asked with the request as it is.
        request: for the answer; its ``timeout_s`` is for all attempts.
        keys: names that a plan may begin with.
        answer_in: given an object of the text, returns the answer that is written in this plan, "" for a plan without
            one, None for an object that is no plan.

    Raises:
        MalformedResponse: there was a plan each time.
    """
    usage = Usage()
    clock = asyncio.get_running_loop().time
    end = clock() + request.timeout_s
    for _ in range(_ATTEMPTS):
        turn: Turn | None = None
        held, shown = "", False
        stream = cast(AsyncGenerator[ProviderEvent, None], provider.stream(request))
        async with aclosing(stream):
            async for event in stream:
                if isinstance(event, TurnFinished):
                    turn = event.turn
                elif isinstance(event, TextDelta) and not shown:
                    held += event.text
                    if not may_begin_with(held, keys):
                        shown = True
                        yield TextDelta(held)
                else:
                    yield event
        if turn is None:
            raise MalformedResponse("the model's stream ended before its turn")
        usage += turn.usage
        plan = next((a for o in objects_in(turn.text) if (a := answer_in(o)) is not None), None)
        if plan is None or turn.tool_calls or turn.stop != "end":
            if turn.text and not shown:
                yield TextDelta(turn.text)
            yield TurnFinished(turn if usage == turn.usage else replace(turn, usage=usage))
            return
        if shown:
            yield StepReset(INVALID_PLAN)
        if plan:
            yield TextDelta(plan)
            yield TurnFinished(replace(turn, text=plan, native=None, usage=usage))
            return
        said = Turn(turn.provider, turn.model, text=turn.text)
        messages = [*request.messages, said, UserMessage(_NO_PLAN, notice=True)]
        request = replace(request, messages=messages, timeout_s=max(0.1, end - clock()))
    failed = MalformedResponse(
        f"The model was asked for its answer {_ATTEMPTS} times and wrote a plan each time.", retryable=False
    )
    failed.usage = usage
    raise failed
