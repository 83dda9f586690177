"""From the journal of an answer to reasoning steps, the passages that were found, and the trace as messages. Pure."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from apps.datasets.records.parts import RecordSource, Step, ToolCall, TraceMessage
from toolloop.json_cut import text_cut
from toolloop.messages import ModelMessage, ToolResult, Turn, UserMessage
from toolloop.tokens import Usage

CostOf = Callable[[Usage, str], float | None]
MOST_OBSERVED = 4000
"""Characters of an observation that a row keeps, JSON cut between its values; the run's journal has all of it."""
_MARK = re.compile(r"\s?\[c(\d+)\]")


@dataclass(frozen=True, slots=True)
class Trace:
    """What an answer came from.

    Attributes:
        steps: their ``sources`` are ids of chunks here, which a row turns into numbers of its own sources.
        sources: every passage that a tool returned, once, in the order in which they came.
        cited: ids of the chunks that the answer names, in order.
    """

    steps: tuple[Step, ...]
    sources: tuple[RecordSource, ...]
    cited: tuple[int, ...]
    messages: tuple[TraceMessage, ...]


def trace_of(history: Sequence[ModelMessage], cost_of: CostOf | None = None) -> Trace:
    """Read the history of an answer, from its question to its last turn.

    Args:
        cost_of: returns what a turn's tokens cost in USD in its service tier, None where that is not known.
    """
    results = {m.call_id: m for m in history if isinstance(m, ToolResult)}
    steps: list[Step] = []
    messages: list[TraceMessage] = []
    text = ""
    for message in history:
        if isinstance(message, UserMessage) and not message.notice:
            messages.append(TraceMessage("user", message.text))
        elif isinstance(message, ToolResult):
            messages.append(
                TraceMessage("tool", text_cut(message.content, MOST_OBSERVED), (), message.call_id)
            )
        elif isinstance(message, Turn):
            text = message.text
            thought = (message.text if message.tool_calls else message.reasoning) or message.reasoning
            cost = cost_of(message.usage, message.service_tier) if cost_of else None
            asked = tuple(ToolCall(c.id, c.name, c.arguments or {}) for c in message.tool_calls)
            messages.append(TraceMessage("assistant", message.text, asked))
            for place, call in enumerate(message.tool_calls):
                result = results.get(call.id)
                steps.append(
                    Step(
                        len(steps) + 1,
                        thought.strip() if place == 0 else "",
                        call.name,
                        call.arguments or {},
                        "" if result is None else text_cut(result.content, MOST_OBSERVED),
                        cost if place == 0 else None,
                        () if result is None else tuple(_found([result])),
                    )
                )
            if not message.tool_calls and thought.strip():
                told = Step(len(steps) + 1, thought.strip(), cost_usd=cost, sources=_cited(text))
                steps.append(told)
    return Trace(tuple(steps), tuple(_found(results.values()).values()), _cited(text), tuple(messages))


def _cited(text: str) -> tuple[int, ...]:
    return tuple(dict.fromkeys(int(pk) for pk in _MARK.findall(text)))


def without_marks(text: str) -> str:
    """Return an answer without the markers of its passages."""
    return _MARK.sub("", text).strip()


def _found(results: Iterable[ToolResult]) -> dict[int, RecordSource]:
    found: dict[int, RecordSource] = {}
    for result in results:
        payload: Any = result.payload
        rows = payload.get("results", ()) if isinstance(payload, dict) and not result.is_error else ()
        for row in rows:
            text = str(row["text"])
            found.setdefault(
                int(row["chunk_id"]),
                RecordSource(
                    document=str(row["document"]),
                    quote=text,
                    collection=str(row.get("collection") or ""),
                    document_id=int(row["document_id"]),
                    chunk_id=int(row["chunk_id"]),
                    start=int(row.get("char_start") or 0),
                    end=int(row.get("char_start") or 0) + len(text),
                    page=row.get("page") or None,
                ),
            )
    return found
