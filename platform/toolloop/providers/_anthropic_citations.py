"""Passages that Claude cites by itself, on the wire of the Messages API, and the marks that stand for its citations.

Wire facts: https://platform.claude.com/docs/en/build-with-claude/search-results, and the types of the installed SDK. A
tool's result that has one ``search_result`` block may have no others; its text blocks are what can be cited, none of them
blank; citations are on for all search results of a request or for none, and never together with a schema for the answer.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import Any, Final

from toolloop.messages import Citation, ModelMessage, ToolResult, Turn
from toolloop.passages import Passages, marks_of, passages_read, pieces_of
from toolloop.providers._common import objects, string
from toolloop.providers.base import ModelRequest
from toolloop.providers.profiles import Profile

_LOCATION: Final = "search_result_location"
_ABOUT: Final = "(about)"  # no passage can have it as its id
_FENCE: Final = ("```", "~~~")
_MARK: Final = re.compile(r"[ \t]*\[([^\s\[\],;]{1,64})\]")
_MARK_BEGUN: Final = re.compile(r"[ \t]{0,8}(?:\[[^\s\[\],;]{0,64})?")


class Cited:
    """Which passages of a request Claude may cite by itself.

    Args:
        request: its whole history counts. None of its passages is citable where the model has no such blocks, where the
            answer must have a form (the API refuses both together), or beside documents: whether these, of which none
            may be cited, would have to be citable too is nowhere said.
        profile: of its model.
    """

    def __init__(self, request: ModelRequest, profile: Profile) -> None:
        self._results: dict[int, Passages] = {}
        # A model without schemas may have been told the form in words, where no mark may stand between.
        if not profile.cites_passages or profile.structured_output != "always":
            return
        if request.response_schema is not None or _has_documents(request.messages):
            return
        for message in request.messages:
            if isinstance(message, ToolResult) and not message.is_error and not message.parts:
                found = passages_read(message.content)
                if found is not None:
                    self._results[id(message)] = found

    def content(self, result: ToolResult) -> str | list[dict[str, Any]]:
        """Return the content of a result's block."""
        found = self._results.get(id(result))
        if found is None:
            return result.content
        blocks = [_block(p.id, p.title or p.id, pieces_of(p.text)) for p in found.passages]
        more: dict[str, Any] = {p.id: dict(p.beside) for p in found.passages if p.beside}
        more |= found.beside
        if more:
            # Here and not in a text behind the results: it is a tool's word, never the user's.
            told = json.dumps(more, ensure_ascii=False)
            blocks.append(_block(_ABOUT, f"About the results of {result.name}", [told]))
        return blocks

    def echoed(self, blocks: list[dict[str, Any]]) -> list[dict[str, Any]]:
        """Return a turn's own blocks as they go back: verbatim, or, where no passage is sent as one, with marks in place
        of citations that would name nothing."""
        return blocks if self._results else [_marked(block) for block in blocks]


class Marking:
    """Put marks behind the text blocks that cite passages, while the text streams.

    The end of a block is held back while it may still turn out that marks belong before it, and the beginning of the next
    one while it may be a mark that the model writes in words behind the one it has just been given.

    Args:
        ids: of the passages that may be cited; without any, all text passes as it is.
    """

    def __init__(self, ids: frozenset[str]) -> None:
        self._ids = ids
        self._held = ""
        # What the block before cites; empty once other text has followed.
        self._given: list[str] = []

    @property
    def size(self) -> int:
        """Characters of the present block that are held back."""
        return len(self._held)

    def add(self, text: str) -> str:
        """Take more of the present block's text; return what can be shown of it by now."""
        if not self._ids:
            return text
        whole = self._held + text
        while self._given:
            again = _MARK.match(whole)
            if again is None or again[1] not in self._given:
                break
            whole = whole[again.end() :]
        if self._given and _MARK_BEGUN.fullmatch(whole):
            self._held = whole
            return ""
        self._given = []
        shown = whole.rstrip(" \t\r\n|")  # a mark behind the end of a table's row would be a cell
        self._held = whole[len(shown) :]
        return shown

    def close(self, block: dict[str, Any]) -> str:
        """Return what is left to show of a block that has ended: its marks, and what was held back."""
        held, self._held = self._held, ""
        text = string(block.get("text"))
        named = [name for name in _named(block) if name in self._ids]
        if not named or not text.strip():
            return held
        self._given = named
        marks = marks_of(named, text)
        return f"{_gap(text)}{marks}{held}" if marks else held


def ids_sent(body: dict[str, Any]) -> frozenset[str]:
    """Return the ids of the passages that a request's body has as search results."""
    results = (
        block
        for message in body["messages"]
        for block in message["content"]
        if block.get("type") == "tool_result" and isinstance(block["content"], list)
    )
    return frozenset(
        inner["source"]
        for block in results
        for inner in block["content"]
        if inner.get("type") == "search_result" and inner["source"] != _ABOUT
    )


def passage_cited(source: dict[str, Any], start: int, end: int) -> Citation | None:
    """Return a citation of one of our passages, None for one of anything else."""
    if source.get("type") != _LOCATION:
        return None
    return Citation(
        title=string(source.get("title")),
        start=start,
        end=end,
        quote=string(source.get("cited_text")),
        passage=string(source.get("source")),
    )


def _block(source: str, title: str, pieces: Sequence[str]) -> dict[str, Any]:
    return {
        "type": "search_result",
        "source": source,
        "title": title,
        "content": [{"type": "text", "text": piece} for piece in pieces],
        "citations": {"enabled": True},
    }


def _named(block: dict[str, Any]) -> list[str]:
    """Return the ids of the passages that a text block cites."""
    sources = objects(block.get("citations"))
    return [string(source.get("source")) for source in sources if source.get("type") == _LOCATION]


def _marked(block: dict[str, Any]) -> dict[str, Any]:
    ours = _named(block)
    if not ours:
        return block
    text = string(block.get("text"))
    body = text.rstrip(" \t\r\n|")
    marks = marks_of(ours, text)
    if marks:
        text = f"{body}{_gap(body)}{marks}{text[len(body) :]}"
    plain = {"type": "text", "text": text}
    sources = objects(block["citations"])
    others = [source for source in sources if source.get("type") != _LOCATION]
    return {**plain, "citations": others} if others else plain


def _gap(text: str) -> str:
    # Words behind a closing fence would keep the code open.
    last = text.rstrip().rpartition("\n")[2].strip()
    return "\n\n" if last.startswith(_FENCE) else " "


def _has_documents(messages: Sequence[ModelMessage]) -> bool:
    return any(
        part.kind != "image"
        for message in messages
        if not isinstance(message, Turn)
        for part in message.parts
    )
