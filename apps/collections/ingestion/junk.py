"""Recognise pages that only add noise to search: blank, contents, index, header-only. Each rule has a reason code."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

from apps.collections.ingestion.identifiers import identifier_list
from apps.collections.ingestion.types import JunkReason, PageText

_MIN_CHARS = 40
_BLANK_NOTE_MAX = 400
_RUNNING_SHARE = 0.5  # of the pages
_RUNNING_MIN_PAGES = 4
_EDGE_LINES = 3
_MAX_LINE = 300

_BLANK_NOTE = re.compile(
    r"\b(?:page|sheet)?\s*(?:is\s+)?(?:intentionally|deliberately)\s+(?:left\s+)?blank\b", re.I
)
_CONTENTS_TITLE = re.compile(
    r"^\s*(?:table\s+of\s+)?contents\b|^\s*(?:list\s+of\s+(?:figures|tables))\b|^\s*inhalt(?:sverzeichnis)?\s*$",
    re.I,
)
_INDEX_TITLE = re.compile(r"^\s*(?:subject\s+|general\s+)?index\s*$", re.I)
_LEADER = re.compile(r"(?:\.[ ]?){4,}\s*[\divxlcIVXLC\-]{1,8}\s*$|…{2,}\s*\d{1,4}\s*$")
_ENDS_IN_PAGE = re.compile(r"[^\W\d_].*\s[\divxlc]{1,4}\s*$")
_INDEX_ENTRY = re.compile(
    r"^\s*[^\W\d_][^.!?]{1,70}?,?\s+\d{1,4}(?:\s*[-–]\s*\d{1,4})?(?:,\s*\d{1,4}(?:\s*[-–]\s*\d{1,4})?)*\s*$"
)
_INDEX_LIST = re.compile(
    r",\s*\d{1,4}(?:\s*[-–]\s*\d{1,4})?(?:,\s*\d{1,4}(?:\s*[-–]\s*\d{1,4})?)*\s*$"
)


def mark_junk(pages: Sequence[PageText]) -> tuple[PageText, ...]:
    """Set ``junk`` on the pages of a paged document.

    A page that carries an identifier found on no kept page is never junk: leaving it out would lose a fact. If
    every page would go, all stay: a short document is not noise.

    Args:
        pages: all pages of the document, in order.
    """
    running = _running_lines(pages)
    reasons = [junk_reason(page, running) for page in pages]
    if not any(reasons):
        return tuple(pages)
    if all(reasons):
        return tuple(replace(page, junk=None) for page in pages)
    kept: set[str] = set()
    for page, reason in zip(pages, reasons, strict=True):
        if reason is None:
            kept.update(identifier_list(page.text))
    marked: list[PageText] = []
    for page, reason in zip(pages, reasons, strict=True):
        if reason is not None and not set(identifier_list(page.text)) <= kept:
            reason = None
        marked.append(replace(page, junk=reason) if reason != page.junk else page)
    return tuple(marked)


def junk_reason(page: PageText, running: frozenset[str] = frozenset()) -> JunkReason | None:
    """Judge one page.

    Args:
        page: the page.
        running: keys of lines that repeat at the edges of many pages (``mark_junk`` finds them).
    """
    lines = [_short(line.strip()) for line in page.text.split("\n") if line.strip()]
    text = " ".join(lines)
    if len(text) <= _BLANK_NOTE_MAX and _BLANK_NOTE.search(text):
        return JunkReason.INTENTIONALLY_BLANK
    own = [line for line in lines if _line_key(line) not in running]
    if lines and not any(ch.isalnum() for line in own for ch in line):
        return JunkReason.HEADER_ONLY if running else JunkReason.TOO_SHORT
    if sum(len(line) for line in own) < _MIN_CHARS:
        return JunkReason.HEADER_ONLY if len(own) < len(lines) else JunkReason.TOO_SHORT
    if _is_contents(own):
        return JunkReason.TABLE_OF_CONTENTS
    if _is_index(own):
        return JunkReason.INDEX
    return None


def _short(line: str) -> str:
    """Keep both ends of a line: the rules look there, and their patterns must not meet a line without end."""
    return line if len(line) <= _MAX_LINE else line[: _MAX_LINE // 2] + line[-_MAX_LINE // 2 :]


def _is_contents(lines: list[str]) -> bool:
    if len(lines) < 4:
        return False
    dotted = [line for line in lines if ".." in line or ". ." in line or "…" in line]
    leaders = sum(1 for line in dotted if _LEADER.search(line))
    if leaders >= 4 and leaders >= len(lines) * 0.4:
        return True
    titled = any(_CONTENTS_TITLE.search(line) for line in lines[:4])
    return titled and sum(1 for line in lines if _ENDS_IN_PAGE.search(line)) >= len(lines) * 0.5


def _is_index(lines: list[str]) -> bool:
    if len(lines) < 12:
        return False
    numbered = [line for line in lines if line[-1:].isdigit()]
    if len(numbered) < len(lines) * 0.4:
        return False
    entries = sum(1 for line in numbered if _INDEX_ENTRY.match(line))
    listed = sum(1 for line in numbered if _INDEX_LIST.search(line))
    if any(_INDEX_TITLE.match(line) for line in lines[:3]):
        return entries >= len(lines) * 0.4
    return entries >= len(lines) * 0.7 and listed >= len(lines) * 0.5


def _running_lines(pages: Sequence[PageText]) -> frozenset[str]:
    if len(pages) < _RUNNING_MIN_PAGES:
        return frozenset()
    counts: Counter[str] = Counter()
    for page in pages:
        lines = [line for line in page.text.split("\n") if line.strip()]
        edges = (*lines[:_EDGE_LINES], *lines[-_EDGE_LINES:])
        counts.update({key for line in edges if (key := _line_key(line))})
    least = max(_RUNNING_MIN_PAGES, len(pages) * _RUNNING_SHARE)
    return frozenset(key for key, count in counts.items() if count >= least) | {""}


def _line_key(line: str) -> str:
    """Reduce a line to its letters, so that page numbers and dates in a running header do not matter."""
    return "".join(filter(str.isalpha, line.lower()))
