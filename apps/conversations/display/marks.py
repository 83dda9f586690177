"""Marks of sentences that a reader should check: how every door of an answer reads, places and words them. Pure.

They are stored on a message as ``[start, end]`` or ``[start, end, reason]``, offsets in its text with its markers as ``[1]``;
two numbers mean "unsupported". "language" is no doubt: such a sentence was not compared, as its source is in another
language. See ``support`` for what makes a mark.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from django.utils.translation import gettext_lazy

from apps.conversations.citations.markers import Cited, NumberedQuote, Piece
from apps.conversations.support.sentences import LANGUAGE, reason_of, statements_of, unsupported_find

UNSUPPORTED = "unsupported"
LABELS = {
    UNSUPPORTED: gettext_lazy("unsupported"),
    "number": gettext_lazy("number not in the source"),
    "name": gettext_lazy("name not in the source"),
    "polarity": gettext_lazy("source may say the opposite"),
    LANGUAGE: gettext_lazy("not checked: other language"),
}
"""What stands behind a marked sentence, by reason."""
NOTES = {
    UNSUPPORTED: gettext_lazy("No source of this answer says this: check it yourself."),
    "number": gettext_lazy("A number in this sentence isn't in any of its sources. Check it yourself."),
    "name": gettext_lazy("A name in this sentence isn't in any of its sources. Check it yourself."),
    "polarity": gettext_lazy("A source of this sentence may say the opposite: check it yourself."),
    LANGUAGE: gettext_lazy("The source is in another language, so this sentence was not compared with it."),
}
"""The same as a sentence."""
_DRESS = re.compile(r"[*_`|]+|\s*\[\d{1,4}\]")


@dataclass(frozen=True, slots=True)
class Mark:
    """A sentence of an answer that a reader should check.

    Attributes:
        start, end: characters of the answer's text, end exclusive.
        reason: a key of ``LABELS``.
        text: the sentence.
    """

    start: int
    end: int
    reason: str
    text: str = ""

    @property
    def is_doubt(self) -> bool:
        """Whether it was compared with its sources and did not pass; otherwise it was not compared."""
        return self.reason != LANGUAGE

    @property
    def plain(self) -> str:
        """The sentence without its markers and Markdown."""
        return _DRESS.sub("", self.text).strip()

    @property
    def label(self) -> str:
        """What stands behind the sentence."""
        return str(LABELS[self.reason])

    @property
    def note(self) -> str:
        """The same as a sentence."""
        return str(NOTES[self.reason])

    def to_json(self) -> dict[str, Any]:
        """Return the mark as exports and APIs give it."""
        return {**asdict(self), "note": self.note}


def statements_count(text: str) -> int:
    """Return how many sentences of an answer state something, marked or not."""
    return len(statements_of(text))


def marks_read(spans: Iterable[Sequence[Any]], text: str) -> list[Mark]:
    """Return stored marks in the order of the text; a reason from a later version reads as "unsupported".

    Args:
        text: the answer that the offsets count in. A mark that ends outside of it is of another text and is left out.
    """
    marks = []
    for span in spans:
        start, end, reason = span[0], span[1], reason_of(span)
        reason = reason if reason in LABELS else UNSUPPORTED
        if 0 <= start < end <= len(text):
            marks.append(Mark(start, end, reason, text[start:end]))
    return sorted(marks, key=lambda mark: (mark.end, mark.start))


def marks_of(message: Any) -> list[Mark]:
    """Return the marks of a stored answer; none of None, which is an answer that was never written."""
    return [] if message is None else marks_read(message.unsupported, message.text)


def compared_of(message: Any) -> str:
    """Return the line that says what the sentences of a stored answer were compared with; "" where none is kept."""
    line: str = getattr(message, "compared", "") or ""
    return line


def text_marked(text: str, marks: Iterable[Mark]) -> str:
    """Return an answer with words in brackets behind each marked sentence: ``[△ unsupported]``. Also plain without Markdown."""
    parts, at = [], 0
    for mark in marks:
        parts += [text[at : mark.end], f" [{_sign(mark.reason)}{mark.label}]"]
        at = mark.end
    return "".join([*parts, text[at:]])


def marks_legend(marks: Iterable[Mark]) -> str:
    """Return what the words in brackets mean, a line for each kind that is there; "" for none."""
    reasons = {mark.reason for mark in marks}
    return "\n".join(
        f"- [{_sign(reason)}{LABELS[reason]}] {NOTES[reason]}" for reason in LABELS if reason in reasons
    )


def named_around(question: str, sources: Iterable[NumberedQuote]) -> str:
    """Return what an answer may name though its passages do not: its question and the names of its documents."""
    return ". ".join([question, *dict.fromkeys(s.passage.document_name for s in sources)])


def question_of(request: Mapping[str, Any]) -> str:
    """Return what a run was asked last, from its stored request; "" where that is not kept."""
    asked = [m for m in request.get("history") or () if m.get("role") == "user"]
    return str(asked[-1].get("text", "")) if asked else ""


def marks_found(text: str, sources: Sequence[NumberedQuote], question: str = "") -> list[Mark]:
    """Return the marks of an answer that is stored as no message; of an answer in JSON, those of its texts.

    Args:
        text: with markers as ``[1]``.
        sources: what the markers name.
        question: what was asked; the answer may name what is in it.
    """
    around = named_around(question, sources)
    passages = {source.number: source.passage.text for source in sources}
    return marks_read(unsupported_find(Cited([Piece(_prose(text))]), passages, around), text)


_TEXT_IN_JSON = re.compile(r'"((?:[^"\\]|\\.)*)"(?!\s*:)')
_ESCAPES = re.compile(r"\\u[0-9a-fA-F]{4}|\\(.)")


def _prose(text: str) -> str:
    """Return an answer in JSON with line ends in place of all but its texts, every character in its place; other text as it is."""
    try:
        if not isinstance(json.loads(text), dict | list):
            return text
    except (ValueError, RecursionError):
        return text
    shown = ["\n"] * len(text)
    for found in _TEXT_IN_JSON.finditer(text):
        said = _ESCAPES.sub(
            lambda escape: ("\n" if escape[1] == "n" else escape[1] or "").rjust(len(escape[0])), found[1]
        )
        shown[found.start(1) : found.end(1)] = said
    return "".join(shown)


def _sign(reason: str) -> str:
    return "" if reason == LANGUAGE else "△ "
