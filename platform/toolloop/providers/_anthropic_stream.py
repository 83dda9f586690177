"""Read the raw event stream of the Messages API: https://platform.claude.com/docs/en/build-with-claude/streaming."""

from __future__ import annotations

from typing import Any

from toolloop.events import ProviderEvent, ReasoningDelta, TextDelta, ToolArgumentsDelta, ToolCallStarted
from toolloop.messages import Citation, ToolCall
from toolloop.providers._anthropic_citations import Marking, passage_cited
from toolloop.providers._common import (
    joined,
    make_call,
    mapping,
    number,
    objects,
    parse_arguments,
    raw_arguments,
    string,
)
from toolloop.service import tier_used
from toolloop.tokens import Usage


class MessageReader:
    """Fold the raw events of one message; ``text`` is always exactly what was yielded as deltas.

    Args:
        ids: of the passages that may be cited; where a text cites one, its mark follows in ``text``.
    """

    def __init__(self, ids: frozenset[str] = frozenset()) -> None:
        self._marking = Marking(ids)
        self.text = ""
        self.reasoning = ""
        self.blocks: list[dict[str, Any]] = []
        self.calls: list[ToolCall] = []
        self.citations: list[Citation] = []
        self.stop_reason = ""
        self.stop_detail = ""
        self.response_id = ""
        self.done = False
        # False once something came that could not be rebuilt exactly: an altered echo would be refused.
        self.faithful = True
        self._usage: dict[str, Any] = {}
        self._block: dict[str, Any] = {}
        self._raw = ""
        self._previous_kind = ""
        self._pages: dict[
            str, str
        ] = {}  # Addresses of the pages read, by title: citations name the title alone.

    def read(self, event: dict[str, Any]) -> list[ProviderEvent]:
        """Take one event and return the deltas it means."""
        kind = event.get("type")
        if kind == "content_block_delta":
            return self._delta(mapping(event.get("delta")))
        if kind == "content_block_start":
            return self._begin(mapping(event.get("content_block")))
        if kind == "content_block_stop":
            return self._end()
        if kind == "message_start":
            message = mapping(event.get("message"))
            self.response_id = string(message.get("id"))
            self._count(message.get("usage"))
        elif kind == "message_delta":
            delta = mapping(event.get("delta"))
            details = mapping(delta.get("stop_details"))
            self.stop_reason = string(delta.get("stop_reason")) or self.stop_reason
            self.stop_detail = joined(
                self.stop_reason, string(details.get("category")), string(details.get("explanation"))
            )
            self._count(event.get("usage"))
        elif kind == "message_stop":
            self.done = True
        return []

    def read_whole(self, message: dict[str, Any]) -> None:
        """Take a message that came in one piece, as the events that a stream would have brought it in."""
        self.read({"type": "message_start", "message": message})
        for block in objects(message.get("content")):
            given = block.get("input")
            # In a stream the input of a call follows as text, which is where empty and broken ones are told apart.
            begun = {**block, "input": {}} if given else block
            self.read({"type": "content_block_start", "content_block": begun})
            if given:
                delta = {"type": "input_json_delta", "partial_json": raw_arguments(given)}
                self.read({"type": "content_block_delta", "delta": delta})
            self.read({"type": "content_block_stop"})
        self.read({"type": "message_delta", "delta": message})
        self.read({"type": "message_stop"})

    def usage(self) -> Usage:
        """Return the usage; Anthropic counts cached input apart from the rest."""
        data = self._usage
        read = number(data.get("cache_read_input_tokens"))
        written = number(data.get("cache_creation_input_tokens"))
        details = mapping(data.get("output_tokens_details"))
        served = mapping(data.get("server_tool_use"))
        kept = mapping(data.get("cache_creation"))
        return Usage(
            input_total=number(data.get("input_tokens")) + read + written,
            cached_read=read,
            cache_write=written,
            output_total=number(data.get("output_tokens")),
            reasoning=number(details.get("thinking_tokens")),
            requests=1,
            # Programs are billed by the time of their sandbox, and not counted there.
            server_tools=sum(number(count) for count in served.values())
            + sum(_is_program(block) for block in self.blocks),
            cache_write_long=number(kept.get("ephemeral_1h_input_tokens")),
        )

    @property
    def service_tier(self) -> str:
        """Return in which tier the answer was served, in our words."""
        return tier_used(string(self._usage.get("service_tier")))

    def _count(self, usage: object) -> None:
        # message_delta repeats the counts cumulatively, some of them as null
        self._usage |= {key: value for key, value in mapping(usage).items() if value is not None}

    def _begin(self, block: dict[str, Any]) -> list[ProviderEvent]:
        self._block = dict(block)
        self._raw = ""
        kind = block.get("type")
        if kind == "tool_use":
            return [ToolCallStarted(string(block.get("id")), string(block.get("name")))]
        if kind == "text":
            return self._add_text(self._marking.add(string(block.get("text"))))
        if kind == "thinking":
            return self._add_reasoning(string(block.get("thinking")))
        return []

    def _delta(self, delta: dict[str, Any]) -> list[ProviderEvent]:
        kind = delta.get("type")
        block = self._block
        if kind == "text_delta":
            text = string(delta.get("text"))
            block["text"] = string(block.get("text")) + text
            return self._add_text(self._marking.add(text))
        if kind == "thinking_delta":
            thinking = string(delta.get("thinking"))
            block["thinking"] = string(block.get("thinking")) + thinking
            return self._add_reasoning(thinking)
        if kind == "signature_delta":
            block["signature"] = string(block.get("signature")) + string(delta.get("signature"))
            return []
        if kind == "input_json_delta":
            piece = string(delta.get("partial_json"))
            self._raw += piece
            is_call = block.get("type") == "tool_use" and piece
            return [ToolArgumentsDelta(string(block.get("id")), piece)] if is_call else []
        if kind == "citations_delta":
            block["citations"] = [*(block.get("citations") or []), delta.get("citation")]
            return []
        self.faithful = False
        return []

    def _end(self) -> list[ProviderEvent]:
        block = self._block
        self._block = {}
        kind = string(block.get("type"))
        self._previous_kind = kind
        if kind == "tool_use":
            self._end_call(block)
        elif self._raw:
            # The input of a tool that the provider runs itself: a search.
            given, _ = parse_arguments(self._raw)
            self.faithful = self.faithful and given is not None
            block["input"] = given or {}
        if kind == "web_fetch_tool_result":
            page = mapping(block.get("content"))
            self._pages[string(mapping(page.get("content")).get("title"))] = string(page.get("url"))
        if kind == "text" and block.get("citations"):
            self._cite(block)
        # An empty text block comes back at times but may not be sent.
        if block and not (kind == "text" and not block.get("text")):
            self.blocks.append(block)
        return self._add_text(self._marking.close(block)) if kind == "text" else []

    def _end_call(self, block: dict[str, Any]) -> None:
        if self._raw:
            call = make_call(string(block.get("id")), string(block.get("name")), self._raw)
            block["input"] = call.arguments if call.arguments is not None else {}
        else:
            given = block.get("input")
            arguments = given if isinstance(given, dict) else {}
            block["input"] = arguments
            call = ToolCall(string(block.get("id")), string(block.get("name")), arguments)
        self.faithful = self.faithful and call.arguments is not None
        self.calls.append(call)

    def _cite(self, block: dict[str, Any]) -> None:
        """Take over what a text block cites: all of its text rests on each of its sources."""
        end = len(self.text)
        start = max(0, end + self._marking.size - len(string(block.get("text"))))
        for source in objects(block["citations"]):
            ours = passage_cited(source, start, end)
            if ours is not None:
                self.citations.append(ours)
                continue
            title = string(source.get("title")) or string(source.get("document_title"))
            url = string(source.get("url")) or string(source.get("source"))
            self.citations.append(
                Citation(
                    url=url or self._pages.get(title, ""),
                    title=title,
                    start=start,
                    end=end,
                    quote=string(source.get("cited_text")),
                    file_id=string(source.get("file_id")),
                )
            )

    def _add_text(self, text: str) -> list[ProviderEvent]:
        if not text:
            return []
        # Text blocks that follow one another are one text cut at its citations; others are apart.
        if self.text and self._previous_kind not in {"", "text"}:
            text = f"\n\n{text}"
        self._previous_kind = "text"
        self.text += text
        return [TextDelta(text)]

    def _add_reasoning(self, thinking: str) -> list[ProviderEvent]:
        if not thinking:
            return []
        if self.reasoning and self._previous_kind:
            thinking = f"\n\n{thinking}"
        self._previous_kind = ""
        self.reasoning += thinking
        return [ReasoningDelta(thinking)]


def _is_program(block: dict[str, Any]) -> bool:
    return block.get("type") == "server_tool_use" and "code_execution" in string(block.get("name"))
