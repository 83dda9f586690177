"""Read the chunks of streamGenerateContent: https://ai.google.dev/api/generate-content."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

from toolloop.events import ProviderEvent, ReasoningDelta, TextDelta, ToolArgumentsDelta, ToolCallStarted
from toolloop.messages import Citation, ToolCall
from toolloop.providers._common import mapping, new_call_id, number, objects, parse_arguments, string
from toolloop.service import tier_used
from toolloop.tokens import Usage

_READ = "URL_RETRIEVAL_STATUS_SUCCESS"


class GeminiReader:
    """Fold the chunks of one answer; ``text`` is always exactly what was yielded as deltas."""

    def __init__(self) -> None:
        self.text = ""
        self.reasoning = ""
        self.parts: list[dict[str, Any]] = []
        self.calls: list[ToolCall] = []
        self.finish_reason = ""
        self.finish_message = ""
        self.block_reason = ""
        self.block_message = ""
        self.response_id = ""
        self._grounding: dict[str, Any] = {}
        self._pages: list[dict[str, Any]] = []
        self.usage = Usage(requests=1)
        self.service_tier = ""  # In which the answer was served, in our words.

    def read(self, chunk: dict[str, Any]) -> list[ProviderEvent]:
        """Take one chunk and return the deltas it means."""
        self.response_id = self.response_id or string(chunk.get("responseId"))
        if chunk.get("usageMetadata"):
            counted = mapping(chunk["usageMetadata"])
            self.usage = _usage(counted)
            self.service_tier = tier_used(string(counted.get("serviceTier"))) or self.service_tier
        feedback = mapping(chunk.get("promptFeedback"))
        self.block_reason = self.block_reason or string(feedback.get("blockReason"))
        self.block_message = self.block_message or string(feedback.get("blockReasonMessage"))
        candidate = next(iter(objects(chunk.get("candidates"))), {})
        self.finish_reason = string(candidate.get("finishReason")) or self.finish_reason
        self.finish_message = string(candidate.get("finishMessage")) or self.finish_message
        # Each chunk that has any repeats what is known so far.
        self._grounding |= mapping(candidate.get("groundingMetadata"))
        pages = mapping(candidate.get("urlContextMetadata")).get("urlMetadata")
        self._pages = objects(pages) or self._pages
        events: list[ProviderEvent] = []
        for part in objects(mapping(candidate.get("content")).get("parts")):
            self._keep(part)
            events += self._events(part)
        return events

    def citations(self) -> tuple[Citation, ...]:
        """Return what the provider's own searches found and the text rests on; without a span what supports all of it.

        Of pages that were read without a search the wire says no more than that they were read.
        """
        sources = [_source(chunk) for chunk in objects(self._grounding.get("groundingChunks"))]
        supports = objects(self._grounding.get("groundingSupports"))
        found: list[Citation] = []
        for support in supports:
            start, end = _span(mapping(support.get("segment")), self.text)
            found += [
                replace(sources[index], start=start, end=end)
                for index in support.get("groundingChunkIndices") or ()
                if isinstance(index, int) and 0 <= index < len(sources)
            ]
        if supports or sources:
            return tuple(found) if supports else tuple(sources)
        read = (page for page in self._pages if page.get("urlRetrievalStatus") == _READ)
        return tuple(Citation(url=string(page.get("retrievedUrl"))) for page in read)

    def total_usage(self) -> Usage:
        """Return the usage with what the provider ran: searches, pages, programs."""
        queries = self._grounding.get("webSearchQueries")
        searches = len(queries) if isinstance(queries, list) else 0
        searches += bool(self._grounding.get("groundingChunks")) and not searches
        programs = sum("executableCode" in part for part in self.parts)
        return replace(self.usage, server_tools=searches + len(self._pages) + programs)

    def _events(self, part: dict[str, Any]) -> list[ProviderEvent]:
        text = string(part.get("text"))
        if part.get("thought"):
            self.reasoning += text
            return [ReasoningDelta(text)] if text else []
        if "functionCall" in part:
            return self._call(mapping(part["functionCall"]))
        self.text += text
        return [TextDelta(text)] if text else []

    def _call(self, data: dict[str, Any]) -> list[ProviderEvent]:
        given = data.get("args")
        arguments = {} if given is None else given
        raw = json.dumps(arguments, ensure_ascii=False)
        call_id = string(data.get("id"))
        if not call_id or any(call.id == call_id for call in self.calls):
            call_id = new_call_id()
        name = string(data.get("name"))
        # Read again from the text: what a lenient reader let pass (NaN) is no JSON.
        found, problem = parse_arguments(raw)
        call = ToolCall(call_id, name, found, raw, problem)
        self.calls.append(call)
        return [ToolCallStarted(call_id, name), ToolArgumentsDelta(call_id, raw)]

    def _keep(self, part: dict[str, Any]) -> None:
        """Append a part for the echo; pieces of plain text become one, a part with anything else stays as it came."""
        plain = set(part) <= {"text", "thought"} and "text" in part
        if plain and not part["text"]:
            return
        if plain and self.parts:
            last = self.parts[-1]
            if set(last) == set(part) and last.get("thought") == part.get("thought"):
                self.parts[-1] = {**last, "text": string(last["text"]) + string(part["text"])}
                return
        self.parts.append(part)


def _usage(data: dict[str, Any]) -> Usage:
    thoughts = number(data.get("thoughtsTokenCount"))
    return Usage(
        # What tools of the provider read for the model is counted apart from the prompt.
        input_total=number(data.get("promptTokenCount")) + number(data.get("toolUsePromptTokenCount")),
        cached_read=number(data.get("cachedContentTokenCount")),
        output_total=number(data.get("candidatesTokenCount")) + thoughts,
        reasoning=thoughts,
        requests=1,
    )


def _source(chunk: dict[str, Any]) -> Citation:
    web, stored = mapping(chunk.get("web")), mapping(chunk.get("retrievedContext"))
    source = web or stored
    return Citation(
        url=string(source.get("uri")),
        title=string(source.get("title")),
        quote=string(stored.get("text")),
        file_id=string(stored.get("fileSearchStore")),
    )


def _span(segment: dict[str, Any], text: str) -> tuple[int | None, int | None]:
    """Turn a segment, which counts bytes, into characters of the text; (None, None) when it does not fit."""
    wanted = string(segment.get("text"))
    begin, end = number(segment.get("startIndex")), number(segment.get("endIndex"))
    encoded = text.encode()
    try:
        start = len(encoded[:begin].decode())
        found = encoded[begin:end].decode()
    except UnicodeDecodeError:
        start, found = -1, ""
    if found and (not wanted or found == wanted):
        return start, start + len(found)
    # A segment may count from the start of its own part.
    start = text.find(wanted) if wanted else -1
    return (start, start + len(wanted)) if start >= 0 else (None, None)
