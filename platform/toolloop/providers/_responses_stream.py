"""Read the event stream of the Responses API: https://platform.openai.com/docs/api-reference/responses-streaming."""

from __future__ import annotations

from typing import Any

from toolloop.events import ProviderEvent, ReasoningDelta, TextDelta, ToolArgumentsDelta, ToolCallStarted
from toolloop.messages import Citation, ToolCall
from toolloop.providers._common import make_call, mapping, new_call_id, number, objects, raw_arguments, string
from toolloop.tokens import Usage

_ENDS = frozenset({"response.completed", "response.incomplete", "response.failed", "response.cancelled"})


class ResponsesReader:
    """Fold the events of one response; ``text`` is always exactly what was yielded as deltas."""

    def __init__(self, provider: str) -> None:
        self._provider = provider
        self.text = ""
        self.reasoning = ""
        self.refused = False
        self.items: list[dict[str, Any]] = []
        self.response: dict[str, Any] | None = None
        self.failure: dict[str, Any] | None = None
        self._call_ids: dict[object, str] = {}
        self._streamed: set[object] = set()
        self._reasoned: set[object] = set()
        self._text_of: object = None
        self._summary_of: object = None
        self._text_begins: dict[object, int] = {}

    def read(self, event: dict[str, Any]) -> list[ProviderEvent]:
        """Take one event and return the deltas it means."""
        kind = string(event.get("type"))
        place = event.get("output_index", event.get("item_id"))
        if kind in {"response.output_text.delta", "response.refusal.delta"}:
            return self._add_text(place, string(event.get("delta")), "refusal" in kind)
        if kind in {"response.reasoning_summary_text.delta", "response.reasoning_text.delta"}:
            return self._add_reasoning(place, event.get("summary_index"), string(event.get("delta")))
        if kind == "response.output_item.added":
            return self._start(place, mapping(event.get("item")))
        if kind == "response.function_call_arguments.delta":
            delta = string(event.get("delta"))
            call_id = self._call_ids.get(place)
            return [ToolArgumentsDelta(call_id, delta)] if call_id and delta else []
        if kind == "response.output_item.done":
            return self._finish(place, mapping(event.get("item")))
        if kind in _ENDS:
            response = mapping(event.get("response"))
            status = string(response.get("status")) or kind.rpartition(".")[2]
            self.response = {**response, "status": status}
        elif kind == "error" or event.get("error"):
            self.response = {"status": "failed"}
            self.failure = mapping(event.get("error")) or event
        return []

    def read_whole(self, response: dict[str, Any]) -> None:
        """Take a response that came in one piece: its items, and what the last event of a stream would say."""
        for index, item in enumerate(objects(response.get("output"))):
            self._finish(index, item)
        self.read({"type": "response.completed", "response": response})

    def calls(self, items: list[dict[str, Any]]) -> tuple[tuple[ToolCall, ...], bool]:
        """Return the calls among the items, and whether the items can be echoed as they are."""
        calls: list[ToolCall] = []
        reliable = True
        for index, item in enumerate(items):
            if item.get("type") != "function_call":
                continue
            call_id = string(item.get("call_id"))
            # A server that gives no id (or gives one twice) gets ours, which its own items do not carry.
            if not call_id or any(call.id == call_id for call in calls):
                call_id = self._call_ids.get(index) or new_call_id()
                reliable = False
            calls.append(make_call(call_id, string(item.get("name")), raw_arguments(item.get("arguments"))))
        return tuple(calls), reliable

    def citations(self, items: list[dict[str, Any]]) -> tuple[Citation, ...]:
        """Return what the messages among the items cite; their offsets count from the start of their own part."""
        found: list[Citation] = []
        for index, item in enumerate(items):
            if item.get("type") != "message":
                continue
            begin = self._text_begins.get(index, self._text_begins.get(item.get("id")))
            for part in objects(item.get("content")):
                found += [_citation(note, begin) for note in objects(part.get("annotations"))]
                if begin is not None:
                    begin += len(string(part.get("text")))
        return tuple(citation for citation in found if citation.url or citation.file_id)

    def _add_text(self, place: object, delta: str, refusal: bool) -> list[ProviderEvent]:
        if not delta:
            return []
        if self.text and place != self._text_of:
            delta = f"\n\n{delta}"
        if place not in self._streamed:
            self._text_begins[place] = len(self.text) + (2 if self.text else 0)
        self._text_of = place
        self._streamed.add(place)
        self.refused = self.refused or refusal
        self.text += delta
        return [TextDelta(delta)]

    def _add_reasoning(self, place: object, part: object, delta: str) -> list[ProviderEvent]:
        if not delta:
            return []
        if self.reasoning and (place, part) != self._summary_of:
            delta = f"\n\n{delta}"
        self._summary_of = (place, part)
        self._reasoned.add(place)
        self.reasoning += delta
        return [ReasoningDelta(delta)]

    def _start(self, place: object, item: dict[str, Any]) -> list[ProviderEvent]:
        if item.get("type") != "function_call":
            return []
        call_id = string(item.get("call_id")) or new_call_id()
        if call_id in self._call_ids.values():
            call_id = new_call_id()
        self._call_ids[place] = call_id
        return [ToolCallStarted(call_id, string(item.get("name")))]

    def _finish(self, place: object, item: dict[str, Any]) -> list[ProviderEvent]:
        if not item:
            return []
        self.items.append(item)
        events: list[ProviderEvent] = []
        if item.get("type") == "function_call" and place not in self._call_ids:
            events += self._start(place, item)
        if item.get("type") == "message" and place not in self._streamed:
            # Some servers send a message only when it is complete.
            for part in objects(item.get("content")):
                refusal = part.get("type") == "refusal"
                text = string(part.get("refusal" if refusal else "text"))
                events += self._add_text(place, text, refusal)
        if item.get("type") == "reasoning" and place not in self._reasoned:
            for index, part in enumerate(objects(item.get("summary"))):
                events += self._add_reasoning(place, index, string(part.get("text")))
            for part in objects(item.get("content")):
                events += self._add_reasoning(place, None, string(part.get("text")))
        return events


def responses_usage(response: dict[str, Any], items: list[dict[str, Any]]) -> Usage:
    """Return the usage of a finished response; what the provider ran is counted by its items where it does not say."""
    data = mapping(response.get("usage"))
    inputs = mapping(data.get("input_tokens_details"))
    outputs = mapping(data.get("output_tokens_details"))
    kinds = [item.get("type") for item in items]
    kept = mapping(inputs.get("cache_write_tokens_details"))
    searches = mapping(mapping(response.get("tool_usage")).get("web_search")).get("num_requests")
    if searches is None:
        searches = kinds.count("web_search_call")
    return Usage(
        input_total=number(data.get("input_tokens")),
        cached_read=number(inputs.get("cached_tokens")),
        cache_write=number(inputs.get("cache_write_tokens")),
        output_total=number(data.get("output_tokens")),
        reasoning=number(outputs.get("reasoning_tokens")),
        requests=1,
        server_tools=number(searches)
        + kinds.count("file_search_call")
        + kinds.count("code_interpreter_call"),
        cache_write_long=number(kept.get("ttl_12h_tokens")),
    )


def _citation(note: dict[str, Any], begin: int | None) -> Citation:
    start, end = note.get("start_index"), note.get("end_index")
    known = isinstance(start, int) and isinstance(end, int)
    return Citation(
        url=string(note.get("url")),
        title=string(note.get("title")) or string(note.get("filename")),
        start=begin + number(start) if begin is not None and known else None,
        end=begin + number(end) if begin is not None and known else None,
        file_id=string(note.get("file_id")),
    )
