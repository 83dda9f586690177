"""Between OpenAI's responses and the loop's messages. Pure.

Wire format: https://platform.openai.com/docs/api-reference/responses (request, response and its streaming events).
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from apps.conversations.openai.follow import FollowEnd
from apps.conversations.openai.wire import RunAnswer
from apps.conversations.transcript.segments import response_id_of
from basics.errors import Invalid
from runs.models import RunStatus
from toolloop.media import Media
from toolloop.messages import ModelMessage, ToolResult, UserMessage

_INCOMPLETE = {"length": "max_output_tokens", "content_filter": "content_filter"}
_CODES = {"server_error": "server_error", "rate_limit_error": "rate_limit_exceeded"}
_TEXTS = ("input_text", "output_text", "text", "summary_text")


def input_read(given: Any) -> tuple[list[dict[str, Any]], list[str]]:
    """Return the items of ``input`` as messages of chat completions, and what each is called in errors.

    Raises:
        Invalid: an item cannot be used here; the error names its place.
    """
    if isinstance(given, str):
        return [{"role": "user", "content": given}], ["input"]
    messages: list[dict[str, Any]] = []
    places: list[str] = []
    for index, item in enumerate(given):
        where = f"input[{index}]"
        kind = item.get("type", "message")
        message: dict[str, Any]
        if kind == "message":
            role = item.get("role")
            message = {"role": role, "content": _content(item.get("content"), where)}
        elif kind == "function_call":
            call = {"name": item.get("name"), "arguments": item.get("arguments")}
            entry = {"id": item.get("call_id"), "type": "function", "function": call}
            if messages and messages[-1]["role"] == "assistant":
                messages[-1].setdefault("tool_calls", []).append(entry)
                continue
            message = {"role": "assistant", "content": None, "tool_calls": [entry]}
        elif kind == "function_call_output":
            output = _content(item.get("output"), where)
            message = {"role": "tool", "tool_call_id": item.get("call_id"), "content": output}
        elif kind == "reasoning":  # of another model perhaps, and never ours to show
            continue
        else:
            raise invalid(
                f"{where}.type",
                f"“{kind}” isn't one of message, function_call, function_call_output and reasoning.",
            )
        messages.append(message)
        places.append(where)
    return messages, places


def items_of(developer: str, messages: Sequence[ModelMessage]) -> list[dict[str, Any]]:
    """Return what a response answers as items of OpenAI's; of images and files their names only."""
    items: list[dict[str, Any]] = []

    def add(kind: str, **values: Any) -> None:
        items.append({"id": f"item_{len(items)}", "type": kind, "status": "completed", **values})

    if developer:
        add("message", role="developer", content=[{"type": "input_text", "text": developer}])
    for message in messages:
        if isinstance(message, UserMessage):
            parts = [_file(media) for media in message.parts]
            text = {"type": "input_text", "text": message.text}
            add("message", role="user", content=[*parts, text] if message.text else parts)
        elif isinstance(message, ToolResult):
            add("function_call_output", call_id=message.call_id, output=message.content)
        else:
            if message.text:
                said = {"type": "output_text", "text": message.text, "annotations": []}
                add("message", role="assistant", content=[said])
            for call in message.tool_calls:
                add("function_call", call_id=call.id, name=call.name, arguments=call.raw)
    return items


def _file(media: Media) -> dict[str, Any]:
    if media.kind == "image":
        return {"type": "input_image", "detail": "auto", "image_url": None}
    return {"type": "input_file", "filename": media.name}


def _content(given: Any, where: str) -> Any:
    if not isinstance(given, list):
        return given
    parts = []
    for number, part in enumerate(given):
        kind = part.get("type") if isinstance(part, dict) else None
        if kind in _TEXTS:
            parts.append({"type": "text", "text": part.get("text")})
        elif kind == "refusal":
            parts.append({"type": "text", "text": part.get("refusal")})
        elif kind == "input_image" and isinstance(part.get("image_url"), str):
            parts.append({"type": "image_url", "image_url": {"url": part["image_url"]}})
        elif kind == "input_file":
            parts.append({"type": "file", "file": part})
        else:
            raise invalid(
                f"{where}.content[{number}]",
                "Send parts of the types input_text, output_text, input_image (as a data: URL) and input_file.",
            )
    return parts


def invalid(place: str, problem: str) -> Invalid:
    """Return the refusal of a field, which its message names."""
    return Invalid("invalid", f"{place}: {problem}", data={"fields": {place: [problem]}})


@dataclass(slots=True)
class ResponseWriter:
    """One response, as JSON and as the events that build it up.

    Attributes:
        run_id, after: whose, and since which of its events.
        asked: the fields of the request that a response repeats.
    """

    run_id: int
    after: int
    created: int
    model: str
    asked: Mapping[str, Any]
    _sequence: int = 0
    _said: list[str] = field(default_factory=list)

    @property
    def id(self) -> str:
        return response_id_of(self.run_id, self.after)

    def begin(self) -> Iterator[dict[str, Any]]:
        """Yield the first events."""
        started = self._json("in_progress", [], None, {})
        yield self._event("response.created", response=started)
        yield self._event("response.in_progress", response=started)

    def text(self, delta: str) -> Iterator[dict[str, Any]]:
        """Yield the events of new text."""
        if not self._said:
            yield from self._message_begin()
        self._said.append(delta)
        yield self._event("response.output_text.delta", **self._part(), delta=delta, logprobs=[])

    def events(self, events: Sequence[Mapping[str, Any]]) -> Iterator[dict[str, Any]]:
        """Yield events of the run, which OpenAI has none for."""
        yield self._event("groundwork.events", events=list(events))

    def end(self, outcome: FollowEnd) -> Iterator[dict[str, Any]]:
        """Yield the last events: the items finished, then the whole response."""
        whole = self.whole(outcome)
        if outcome.problem is None:
            for index, item in enumerate(whole["output"]):
                yield from self._item_end(index, item)
        name = {"failed": "failed", "incomplete": "incomplete", "cancelled": "incomplete"}
        yield self._event(f"response.{name.get(whole['status'], 'completed')}", response=whole)

    def whole(self, outcome: FollowEnd) -> dict[str, Any]:
        """Return the response as it is now."""
        answer = outcome.answer
        output: list[dict[str, Any]] = []
        status, reason = _status(outcome)
        is_whole = status == "completed"
        if answer.shown or not (answer.calls or status == "in_progress"):
            output.append(self._message(answer, "completed" if is_whole else "incomplete"))
        output += [self._call(call) for call in answer.calls]
        error = outcome.problem and {
            "code": _CODES.get(outcome.problem["type"], "invalid_prompt"),
            "message": outcome.problem["message"],
        }
        return self._json(
            status,
            output,
            usage_json(answer.usage),
            answer.extension(),
            error=error,
            incomplete_details={"reason": reason} if reason else None,
            **answer.served(),
        )

    def _item_end(self, index: int, item: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
        if item["type"] == "message":
            part = item["content"][0]
            if not self._said:
                yield from self._message_begin()
            yield self._event("response.output_text.done", **self._part(), text=part["text"], logprobs=[])
            yield self._event("response.content_part.done", **self._part(), part=part)
        else:
            place = {"item_id": item["id"], "output_index": index}
            begun = {**item, "arguments": "", "status": "in_progress"}
            said = item["arguments"]
            yield self._event("response.output_item.added", output_index=index, item=begun)
            yield self._event("response.function_call_arguments.delta", **place, delta=said)
            yield self._event(
                "response.function_call_arguments.done", **place, name=item["name"], arguments=said
            )
        yield self._event("response.output_item.done", output_index=index, item=item)

    def _message_begin(self) -> Iterator[dict[str, Any]]:
        begun = {
            "id": self._message_id,
            "type": "message",
            "role": "assistant",
            "status": "in_progress",
            "content": [],
        }
        part = {"type": "output_text", "text": "", "annotations": [], "logprobs": []}
        yield self._event("response.output_item.added", output_index=0, item=begun)
        yield self._event("response.content_part.added", **self._part(), part=part)

    @property
    def _message_id(self) -> str:
        return f"msg_g{self.run_id}_{self.after}"

    def _part(self) -> dict[str, Any]:
        return {"item_id": self._message_id, "output_index": 0, "content_index": 0}

    def _message(self, answer: RunAnswer, status: str) -> dict[str, Any]:
        annotations = [
            {
                "type": "file_citation",
                "file_id": str(citation["document"]),
                "filename": citation["document_name"],
                "index": citation["number"] - 1,
            }
            for citation in answer.citations
        ]
        part = {"type": "output_text", "text": answer.shown, "annotations": annotations, "logprobs": []}
        return {
            "id": self._message_id,
            "type": "message",
            "role": "assistant",
            "status": status,
            "content": [part],
        }

    @staticmethod
    def _call(call: Mapping[str, Any]) -> dict[str, Any]:
        return {
            "id": f"fc_{call['id'].removeprefix('call_')}",
            "type": "function_call",
            "status": "completed",
            "call_id": call["id"],
            **call["function"],
        }

    def _json(
        self, status: str, output: list[Any], usage: Any, extension: Any, **more: Any
    ) -> dict[str, Any]:
        return {
            "id": self.id,
            "object": "response",
            "created_at": self.created,
            "status": status,
            "background": False,
            "error": None,
            "incomplete_details": None,
            "model": self.model,
            "output": output,
            "usage": usage,
            "truncation": "disabled",
            **self.asked,
            **more,
            "groundwork": extension,
        }

    def _event(self, kind: str, **data: Any) -> dict[str, Any]:
        event = {"type": kind, "sequence_number": self._sequence, **data}
        self._sequence += 1
        return event


def _status(outcome: FollowEnd) -> tuple[str, str]:
    """Return a response's status, and why it is incomplete; "" where OpenAI has no word for it."""
    answer = outcome.answer
    if outcome.problem is not None:
        return "failed", ""
    if answer.calls:
        return "completed", ""
    if answer.finish_reason in _INCOMPLETE:
        return "incomplete", _INCOMPLETE[answer.finish_reason]
    known = {RunStatus.COMPLETED: "completed", RunStatus.STOPPED: "cancelled", RunStatus.PARKED: "incomplete"}
    return known.get(RunStatus(answer.status), "in_progress"), ""


def usage_json(usage: Mapping[str, Any]) -> dict[str, Any]:
    """Return the usage of a chat completion in the words of responses."""
    cached = usage["prompt_tokens_details"]["cached_tokens"]
    reasoning = usage["completion_tokens_details"]["reasoning_tokens"]
    return {
        "input_tokens": usage["prompt_tokens"],
        "input_tokens_details": {"cached_tokens": cached, "cache_write_tokens": 0},
        "output_tokens": usage["completion_tokens"],
        "output_tokens_details": {"reasoning_tokens": reasoning},
        "total_tokens": usage["total_tokens"],
    }


def event_frame(event: Mapping[str, Any]) -> bytes:
    """Return a server-sent event as OpenAI writes it: its type is its name."""
    return f"event: {event['type']}\ndata: {json.dumps(event, ensure_ascii=False)}\n\n".encode()
