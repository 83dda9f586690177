"""Recognise pages that only add noise to search: blank, contents, index, header-only. Each rule has a reason code."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

from apps.collections.ingestion.identifiers import identifier_list
from apps.collections.ingestion.types import JunkReason, PageText, Region

_MIN_CHARS = 40
_BLANK_NOTE_MAX = 400
_RUNNING_SHARE = 0.5  # of the pages
_RUNNING_MIN_PAGES = 4
_EDGE_LINES = 3
_MAX_LINE = 300

_NO_WORDS = re.compile(r"[\W_]*\d{0,4}[\W_]*\Z")
_PAGE_NUMBER = re.compile(r"[\s\-–—|(\[]*(\d{1,4})[\s\-–—|)\].]*\Z")
_SECTION_NUMBER = re.compile(r"^\s*(?:[A-Z]\.)?\d{1,2}(?:\.\d{1,2}){1,4}(?=\s)", re.MULTILINE)

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
_INDEX_LIST = re.compile(r",\s*\d{1,4}(?:\s*[-–]\s*\d{1,4})?(?:,\s*\d{1,4}(?:\s*[-–]\s*\d{1,4})?)*\s*$")


def mark_junk(pages: Sequence[PageText]) -> tuple[PageText, ...]:
    """Set ``junk`` on the pages of a paged document, and mark the running headers and footers of the others.

    A page that carries an identifier found on no kept page is never junk: leaving it out would lose a fact. If
    every page would go, all stay: a short document is not noise. Running lines become regions of the kind
    ``furniture`` from their second time on: the first may be the only place that names the issue and its date.

    Args:
        pages: all pages of the document, in order.
    """
    running = _running_lines(pages)
    shift = _page_number_shift(pages)
    reasons = [junk_reason(page, running) for page in pages]
    seen: set[str] = set()
    if not any(reasons):
        return tuple(_with_furniture(page, running, shift, seen) for page in pages)
    if all(reasons):
        return tuple(replace(page, junk=None) for page in pages)
    kept: set[str] = set()
    for page, reason in zip(pages, reasons, strict=True):
        if reason is None:
            kept.update(identifier_list(page.text))
    marked: list[PageText] = []
    for page, reason in zip(pages, reasons, strict=True):
        if reason is not None and not _own_identifiers(page, reason) <= kept:
            reason = None
        page = replace(page, junk=reason) if reason != page.junk else page
        marked.append(_with_furniture(page, running, shift, seen) if reason is None else page)
    return tuple(marked)


def _own_identifiers(page: PageText, reason: JunkReason) -> set[str]:
    """Collect what would be lost with a page; the numbers of sections that contents list are no facts."""
    text = page.text
    if reason is JunkReason.TABLE_OF_CONTENTS:
        text = _SECTION_NUMBER.sub("", text)
    return set(identifier_list(text))


def _with_furniture(page: PageText, running: frozenset[str], shift: int | None, seen: set[str]) -> PageText:
    """Mark the lines at the top and the bottom of a page's text that other pages carry too, and its printed number."""
    if not running:
        return page
    lines: list[tuple[int, int, str]] = []
    position = 0
    for line in page.text.split("\n"):
        if line.strip():
            lines.append((position, min(position + len(line) + 1, len(page.text)), line))
        position += len(line) + 1
    edges = {*range(min(_EDGE_LINES, len(lines))), *range(max(0, len(lines) - _EDGE_LINES), len(lines))}
    # Headings that the reader found are content, even where every chapter has the same.
    taken = [(r.char_start, r.char_end) for r in page.regions]
    taken += [(h.char_start, h.char_end) for h in page.headings]
    found = [
        Region("furniture", start, end)
        for start, end, line in (lines[i] for i in sorted(edges))
        if _is_furniture(line, page.number, running, shift, seen)
        and not any(a < end and start < b for a, b in taken)
    ]
    if not found:
        return page
    regions = sorted((*page.regions, *found), key=lambda r: r.char_start)
    return replace(page, regions=tuple(regions))


def _is_furniture(line: str, number: int, running: frozenset[str], shift: int | None, seen: set[str]) -> bool:
    key = _line_key(line)
    if any(map(str.isalpha, key)):
        is_again = key in seen
        seen.add(key)
        return is_again and key in running
    # A lone figure may be a cell of a table: only the page's own number goes.
    printed = _PAGE_NUMBER.match(line)
    return printed is not None and shift is not None and int(printed.group(1)) == number + shift


def _page_number_shift(pages: Sequence[PageText]) -> int | None:
    """Find out by how much printed page numbers differ from ours, None where pages are not numbered."""
    shifts: Counter[int] = Counter()
    for page in pages:
        lines = [line for line in page.text.split("\n") if line.strip()]
        edges = (*lines[:_EDGE_LINES], *lines[-_EDGE_LINES:])
        found = {int(m.group(1)) - page.number for line in edges if (m := _PAGE_NUMBER.match(line))}
        shifts.update(found)
    if not shifts:
        return None
    shift, count = shifts.most_common(1)[0]
    return shift if count >= max(_RUNNING_MIN_PAGES, len(pages) * _RUNNING_SHARE) else None


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
    """Reduce a line to its letters, so that page numbers and dates in a running header do not matter.

    A line without letters has the key "" only if it is as short as a page number: a line of codes is content.
    """
    letters = "".join(filter(str.isalpha, line.lower()))
    return letters if letters or _NO_WORDS.match(line) else line.strip()
