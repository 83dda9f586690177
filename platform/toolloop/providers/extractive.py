"""A provider without a language model: it searches with the real tool and quotes the best sentences, marked as quotes.

It exists so that the whole path (loop, tools, citations, streaming) works where no key is set, and says of itself what it
is. It is deterministic: equal history, equal answer.
"""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import AsyncGenerator, Sequence
from dataclasses import dataclass
from typing import Any

from toolloop.best_sentences import Quote, RankedPassage, best_quotes, content_terms
from toolloop.events import ProviderEvent, TextDelta, ToolArgumentsDelta, ToolCallStarted, TurnFinished
from toolloop.evidence import Evidence, evidence_of
from toolloop.messages import ModelMessage, ToolCall, ToolResult, Turn, UserMessage
from toolloop.providers._media import NO_MEDIA, media_check
from toolloop.providers._server_tools import server_tools_check
from toolloop.providers.base import ModelRequest, ToolSpec
from toolloop.providers.profiles import Profile, profile_for
from toolloop.service import service_checked
from toolloop.tokens import Usage

SEARCH_TOOL = "search_documents"
ATTACHED_TOOL = "read_attached_files"
"""What this tool has found is quoted from too, whatever question it was read for."""
_INTRO = "These passages answer your question best (quoted by the extractive mode, no language model):"
_NOT_FOUND = (
    "I did not find this in your documents. (Extractive mode, no language model: it can only quote passages that "
    "share words with the question.)"
)
_NEAR = "Your documents may not answer this. The nearest passage says (quotes only, no AI model):"
_NO_SEARCH = "I have no documents to search here. (Extractive mode, no language model.)"
_NOT_ALLOWED = "I can't search your documents here: {why}. (Quotes only, no AI model.)"
_SEARCH_FAILED = "The search failed, so I cannot quote anything: "
_MOST_QUOTES = 5
_DELTA_CHARS = 24
# A question with so few words of its own ("and for tablets?") goes on with the one before it.
_SHORT_QUESTION_TERMS = 2
_POINTS_BACK = re.compile(
    r"\b(it|its|that|this|those|these|they|them|their|he|she|his|her|same|too|also|else|there)\b|^\s*(and|or|but|what about|how about|why)\b",
    re.IGNORECASE,
)
_SHORT_QUESTION_CHARS = 80


class ExtractiveProvider:
    """Answers with quotes from ``search_documents``; see the module's text."""

    def __init__(self) -> None:
        self.name = "extractive"

    async def stream(self, request: ModelRequest) -> AsyncGenerator[ProviderEvent, None]:
        """Call the search tool first; then quote what it found. It can neither see images nor search elsewhere."""
        media_check(request, NO_MEDIA, provider=self.name, profile=Profile())
        profile = request.profile or profile_for(self.name, request.model)
        server_tools_check(request, profile, self.name)
        service_checked(request.options, profile, request.model)
        if request.meter is not None:
            # Nothing is billed here, so nothing need be estimated when the answer is stopped.
            request.meter.begin(self.name, request.model, Usage, is_exact=True)
        questions, searched, attached = _current(request.messages)
        tool = next((spec for spec in request.tools if spec.name == SEARCH_TOOL), None)
        query = search_query(questions)
        if tool is not None and not searched and request.tool_choice != "none" and query:
            call = _search_call(tool, query, len(request.messages))
            yield ToolCallStarted(call.id, call.name)
            yield ToolArgumentsDelta(call.id, call.raw)
            yield TurnFinished(self._turn(request, "", (call,)))
            return
        results = [*attached, *searched]
        if results:
            text = answer_write(query, results)
        elif tool is None and (why := request.withheld(SEARCH_TOOL)):
            text = _NOT_ALLOWED.format(why=why)
        else:
            text = _NO_SEARCH
        for start in range(0, len(text), _DELTA_CHARS):
            yield TextDelta(text[start : start + _DELTA_CHARS])
            # Nothing here waits for a network: let a stop and the other runs of this event loop in.
            await asyncio.sleep(0)
        yield TurnFinished(self._turn(request, text, ()))

    async def aclose(self) -> None:
        """Close; nothing is held open."""

    def _turn(self, request: ModelRequest, text: str, calls: tuple[ToolCall, ...]) -> Turn:
        return Turn(
            provider=self.name,
            model=request.model,
            text=text,
            tool_calls=calls,
            stop="tools" if calls else "end",
            usage=Usage(requests=1),
        )


def search_query(questions: Sequence[str]) -> str:
    """Return what to search for: the last question, with the one before it when the last only follows it up.

    Args:
        questions: what the user said, oldest first.
    """
    if not questions:
        return ""
    last = " ".join(questions[-1].split())
    is_follow_up = len(last) <= _SHORT_QUESTION_CHARS and (
        len(content_terms(last)) <= _SHORT_QUESTION_TERMS or bool(_POINTS_BACK.search(last))
    )
    if is_follow_up and len(questions) > 1:
        return f"{' '.join(questions[-2].split())} {last}"
    return last


def answer_write(query: str, results: Sequence[ToolResult]) -> str:
    """Write the answer in Markdown: quotes grouped by document, each followed by its marker ``[c123]``.

    Args:
        query: what was searched for.
        results: results of the search tool; see ``passages_read`` for their form.

    Returns:
        The answer. Where the passages come near alone, it says so and quotes the nearest one; a plain sentence without
        markers when nothing found is relevant enough. Codes that are in no document are named.
    """
    passages: list[RankedPassage] = []
    evidence: Evidence = "none"
    missing: list[str] = []
    for result in results:
        if not result.is_error:
            found, head = passages_read(result.content), _head_read(result.content)
            codes = head.codes
            told = evidence_of(query, found, head.similarity, codes)
            evidence = max(evidence, told, key=("none", "near", "answer").index)
            passages += found
            missing += [code for code, found_as in codes.items() if found_as != "exact"]
    if not passages and results and all(result.is_error for result in results):
        return _SEARCH_FAILED + results[-1].content
    named = " and ".join(f"“{_escaped(code)}”" for code in dict.fromkeys(missing))
    absent = f"{named} {'is' if named.count('“') == 1 else 'are'} not in your documents." if named else ""
    quotes = best_quotes(query, passages, 1 if evidence == "near" else _MOST_QUOTES)
    if not quotes or evidence == "none":
        return f"{_NOT_FOUND} {absent}".strip()
    by_document: dict[str, list[Quote]] = {}
    for quote in quotes:
        by_document.setdefault(quote.passage.document, []).append(quote)
    parts = [*filter(None, [absent]), _INTRO if evidence == "answer" else _NEAR]
    for document, group in by_document.items():
        if document:
            parts.append(f"**{_escaped(document)}**")
        for quote in group:
            page = quote.passage.page
            where = f" (page {page})" if page is not None else ""
            parts.append(f"> {_escaped(quote.text)} [{quote.passage.id}]{where}")
    return "\n\n".join(parts)


@dataclass(frozen=True, slots=True)
class _Head:
    """What a search says of itself: see ``evidence_of``."""

    similarity: float | None
    codes: dict[str, str]


_RESULTS = re.compile(r',?\s*"results"\s*:')


def _head_read(content: str) -> _Head:
    """Read what stands before the passages, which a cut at the output limit leaves whole."""
    start = _RESULTS.search(content)
    try:
        data = json.loads(content[: start.start()] + "}") if start else {}
    except ValueError:
        data = {}
    near, codes = data.get("similarity"), data.get("codes") or ()
    return _Head(
        near if isinstance(near, float) else None,
        {
            str(c["code"]): str(c["found"])
            for c in codes
            if isinstance(c, dict) and {"code", "found"} <= c.keys()
        },
    )


def passages_read(content: str) -> list[RankedPassage]:
    """Read the search tool's content: ``{"results": [{"id", "document", "page", "headings", "text"}], "note"}``.

    Content that was cut at the run's output limit is read as far as it goes.
    """
    rows: list[Any]
    try:
        data = json.loads(content)
        told = data.get("results") if isinstance(data, dict) else None
        rows = told if isinstance(told, list) else []
    except ValueError:
        rows = _rows_salvaged(content)
    passages = []
    for row in rows:
        if isinstance(row, dict) and re.fullmatch(r"c\d+", str(row.get("id"))):
            headings = row.get("headings") or []
            passages.append(
                RankedPassage(
                    id=str(row["id"]),
                    document=str(row.get("document") or ""),
                    page=row.get("page"),
                    headings=" ".join(map(str, headings)) if isinstance(headings, list) else "",
                    text=str(row.get("text") or ""),
                )
            )
    return passages


def _rows_salvaged(content: str) -> list[Any]:
    start = re.search(r'"results"\s*:\s*\[', content)
    rows: list[Any] = []
    position = start.end() if start else len(content)
    decoder = json.JSONDecoder()
    while position < len(content):
        position += len(content[position:]) - len(content[position:].lstrip(" \n\t,"))
        try:
            row, position = decoder.raw_decode(content, position)
        except ValueError:
            break  # The row in which the text was cut.
        rows.append(row)
    return rows


# As few characters as safety needs, so that the quote stays findable in its chunk: what would be a marker of ours (a
# document may say "[c7]"), a link, a tag, code, emphasis or an escape.
_ACTIVE = re.compile(r"\](?=\()|<(?=[A-Za-z/!?])|[`*]|(?<!\w)_|_(?!\w)|\\(?=[!-/:-@\[-`{-~])")


def _escaped(text: str) -> str:
    """Keep a document's text from acting as Markdown or as a citation."""
    active = _ACTIVE.sub(lambda match: "\\" + match.group(), text)
    return re.sub(r"\[(c\d+)\]", r"\\[\1\\]", active)


def _current(messages: Sequence[ModelMessage]) -> tuple[list[str], list[ToolResult], list[ToolResult]]:
    """Return what the user said so far, the search results since they last spoke, and what attached files hold."""
    questions: list[str] = []
    results: list[ToolResult] = []
    attached: list[ToolResult] = []
    for message in messages:
        if isinstance(message, UserMessage) and not message.notice:
            questions.append(message.text)
            results = []
        elif isinstance(message, ToolResult) and message.name == SEARCH_TOOL:
            results.append(message)
        elif isinstance(message, ToolResult) and message.name == ATTACHED_TOOL:
            attached = [message]
    return questions, results, attached


def _search_call(tool: ToolSpec, query: str, number: int) -> ToolCall:
    properties = tool.parameters.get("properties", {})
    required = tool.parameters.get("required", ())
    parameter = "query"
    if parameter not in properties:
        parameter = next((name for name in required), parameter)
    arguments = {parameter: query}
    raw = json.dumps(arguments, ensure_ascii=False)
    return ToolCall(f"extractive_{number}", tool.name, arguments, raw)
