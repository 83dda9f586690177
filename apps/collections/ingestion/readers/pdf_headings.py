"""Headings of a PDF from its outline and from letter sizes: one probe per line, so that it costs almost nothing."""

from __future__ import annotations

import ctypes
import math
import re
from bisect import bisect_left
from collections import Counter, deque
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import pairwise

import pypdfium2
import pypdfium2.raw as pdfium_c

from apps.collections.ingestion.readers.base import clean_text
from apps.collections.ingestion.readers.pdf_text import CleanPage
from apps.collections.ingestion.types import Heading, PageText
from apps.collections.ingestion.word_parts import UNSPACED

_LOOK_AHEAD = 8  # pages read before the first is handed on: body size needs more than a title page
_LARGER = 1.15
_RUNNING_PAGES = 3
_RARE = 0.2  # of a page's letters: what is set larger than the page's own body and more common is no heading
_DISPLAY = 2.4  # times the body: a title on a cover, whose lines are fitted to its width
_SAME_SIZE = 0.1
_MAX_MERGED = 4  # lines: more in a row are a list of names or a pull quote
_MAX_HEADING_CHARS = 160
_MAX_HEADINGS_PER_PAGE = 12
_MAX_OUTLINE = 2000
_UNSPACED = re.compile(f"[{UNSPACED}]")
_LETTER = re.compile(r"[^\W_]")
_NOT_A_HEADING_END = (",", ";", "-", "–", "，", "、", "；", "،", "؛")
_A_SENTENCE_END = (".", ":", "。", "：", "۔", "।")
_MAX_UNSPACED = 30  # letters of a title in a script without blanks between its words
_BOLD = (b"bold", b"black", b"heavy", b"demi", b"sfbx", b"cmbx", b"-bd")
_BOLD_WEIGHT = 600


@dataclass(frozen=True, slots=True)
class SizedLine:
    """A line of a page's text with its letters' size in points and whether all of it is bold."""

    char_start: int
    char_end: int
    size: float
    is_bold: bool


def outline_titles(document: pypdfium2.PdfDocument) -> Mapping[int, Mapping[str, int]]:
    """Read the PDF's outline as {page index: {normalised title: level}}."""
    titles: dict[int, dict[str, int]] = {}
    for count, mark in enumerate(document.get_toc(max_depth=6)):
        if count >= _MAX_OUTLINE:
            break
        target = mark.get_dest()
        index = target.get_index() if target is not None else None
        key = _key(clean_text(mark.get_title() or ""))
        if index is not None and key:
            titles.setdefault(index, {})[key] = mark.level + 1
    return titles


class HeadingFinder:
    """Holds back the first pages until the body's letter size is known, then marks headings page by page."""

    def __init__(self, outline: Mapping[int, Mapping[str, int]]) -> None:
        self._outline = outline
        self._sizes: Counter[float] = Counter()
        self._heading_sizes: Counter[float] = Counter()
        self._bold_chars = 0
        self._edge_lines: Counter[str] = Counter()
        self._outline_found = self._outline_missed = 0
        self._waiting: deque[tuple[PageText, list[SizedLine]]] = deque()
        self._started = False

    def measure(self, textpage: pypdfium2.PdfTextPage, raw: str, clean: CleanPage) -> list[SizedLine]:
        """Probe the first letter of each line for its size and weight, and the last where it could be a heading."""
        probe = Probe(textpage, raw)
        lines: list[SizedLine] = []
        position = 0
        for line in clean.text.split("\n"):
            letter = _LETTER.search(line)
            if letter is not None:
                size, bold = probe.at(clean.raw_offset(position + letter.start()))
                if (bold or size < 8) and len(line) <= _MAX_HEADING_CHARS:
                    # "Name: what is said of it" begins bold only; a small "Chapter 1." may open a large title.
                    last = len(line.rstrip()) - 1
                    if line[last].isalnum():
                        last_size, last_bold = probe.at(clean.raw_offset(position + last))
                        size, bold = max(size, last_size), bold and last_bold
                lines.append(SizedLine(position, position + len(line), size, bold))
            position += len(line) + 1
        return lines

    def add(self, page: PageText, lines: list[SizedLine]) -> None:
        """Take a page in and count its letter sizes."""
        for line in lines:
            length = line.char_end - line.char_start
            self._sizes[line.size] += length
            self._bold_chars += length if line.is_bold else 0
        titles = [page.text[line.char_start : line.char_end] for line in lines]
        self._edge_lines.update({_running_key(t) for t in (*titles[:2], *titles[-2:])})
        if wanted := self._outline.get(page.number - 1):
            seen = len(wanted.keys() & {_key(t) for t in titles})
            self._outline_found += seen
            self._outline_missed += len(wanted) - seen
        self._waiting.append((page, lines))

    def ready(self) -> Iterator[PageText]:
        """Yield the pages whose headings can be told by now."""
        if self._started or len(self._waiting) >= _LOOK_AHEAD:
            yield from self.rest()

    def rest(self) -> Iterator[PageText]:
        """Yield all pages still held."""
        if not self._started:
            self._started = True
            # Levels follow from the sizes in use: a title page that grows line by line must not rank its lines alike.
            for page, lines in self._waiting:
                self._headings(page, lines)
        while self._waiting:
            page, lines = self._waiting.popleft()
            yield replace(page, headings=tuple(self._headings(page, lines)))

    def _headings(self, page: PageText, lines: list[SizedLine]) -> list[Heading]:
        if not lines:
            return []
        body = self._sizes.most_common(1)[0][0]
        on_page: Counter[float] = Counter()
        for line in lines:
            on_page[line.size] += line.char_end - line.char_start
        local = on_page.most_common(1)[0][0]
        rare = _RARE * sum(on_page.values())
        bold_is_rare = self._bold_chars < sum(self._sizes.values()) * 0.25
        outline = self._outline.get(page.number - 1, {})
        found: list[tuple[SizedLine, str, int]] = []
        cells = page.regions
        for i, line in enumerate(lines):
            if any(r.char_start <= line.char_start < r.char_end for r in cells):
                continue  # what a table says in bold names its columns
            title = " ".join(page.text[line.char_start : line.char_end].split())
            level = outline.get(_key(title), 0)
            if not level and not self._outline_rules() and not self._is_running(title):
                # On a page in small print, headings may be no larger than the body elsewhere.
                is_small = line.size < body * _LARGER and _is_short(title)
                base = local if is_small and on_page[line.size] < rare else body
                level = self._level_by_size(line, lines, i, title, min(base, body), bold_is_rare)
            if level:
                found.append((line, title, level))
        headings = _merge_lines(found, body)
        return headings if len(headings) <= _MAX_HEADINGS_PER_PAGE else []

    def _outline_rules(self) -> bool:
        """Trust an outline alone that matches the text: letter sizes would add captions and pull quotes."""
        return self._outline_found >= 5 and self._outline_found > self._outline_missed

    def _is_running(self, title: str) -> bool:
        """Recognise running headers and footers: the same words at the edge of three pages or more."""
        return self._edge_lines[_running_key(title)] >= _RUNNING_PAGES

    def _level_by_size(
        self, line: SizedLine, lines: list[SizedLine], i: int, title: str, body: float, bold_is_rare: bool
    ) -> int:
        words = title.split()
        if (
            len(title) > _MAX_HEADING_CHARS
            or not (any(len(word) > 2 and word[0].isalpha() for word in words) or _is_unspaced(title))
            or title.endswith(_NOT_A_HEADING_END)
        ):
            return 0
        if line.size >= body * _LARGER:
            self._heading_sizes[line.size] += 1
            larger = sum(1 for size in self._heading_sizes if size > line.size * 1.02)
            return min(1 + larger, 6)
        # Same size as the body: a short bold line that does not run on into another bold line.
        if (
            line.is_bold
            and bold_is_rare
            and line.size >= body * 0.98
            and len(words) <= 12
            and (title[0].isupper() or title[0].isdigit() or _is_uncased(title))
            and not title.endswith(_A_SENTENCE_END)
            and not (i + 1 < len(lines) and lines[i + 1].is_bold)
        ):
            return min(2 + len(self._heading_sizes), 6)
        return 0


def wide_letters(raw: str) -> list[int]:
    """Return the offsets of letters past the first plane.

    Raw offsets count characters, PDFium's text index counts UTF-16 units: they differ behind these only.
    """
    if raw.isascii() or max(raw) <= "\uffff":
        return []
    return [i for i, ch in enumerate(raw) if ch > "\uffff"]


class Probe:
    """Asks PDFium for the font size and weight at an offset of a page's raw text."""

    def __init__(self, textpage: pypdfium2.PdfTextPage, raw: str) -> None:
        self._raw_page = textpage.raw
        self._wide = wide_letters(raw)
        self._matrix = pdfium_c.FS_MATRIX()
        self._name = ctypes.create_string_buffer(128)
        self._flags = ctypes.c_int()

    def at(self, offset: int) -> tuple[float, bool]:
        """Give (font size in points as shown, rounded to halves; is bold)."""
        unit = offset + (bisect_left(self._wide, offset) if self._wide else 0)
        index = pdfium_c.FPDFText_GetCharIndexFromTextIndex(self._raw_page, unit)
        if index < 0 or not pdfium_c.FPDFText_GetMatrix(self._raw_page, index, self._matrix):
            return 0.0, False
        # Files differ in where they put the size: into the font, or into the matrix of a font of size 1.
        scale = math.hypot(self._matrix.b, self._matrix.d)
        size = round(pdfium_c.FPDFText_GetFontSize(self._raw_page, index) * scale * 2) / 2
        length = pdfium_c.FPDFText_GetFontInfo(
            self._raw_page, index, self._name, len(self._name), self._flags
        )
        name = self._name.raw[: max(0, min(length, len(self._name)) - 1)].lower()
        if any(mark in name for mark in _BOLD):
            return size, True
        return size, pdfium_c.FPDFText_GetFontWeight(self._raw_page, index) >= _BOLD_WEIGHT


def _merge_lines(found: list[tuple[SizedLine, str, int]], body: float) -> list[Heading]:
    """Join heading lines of one size that follow each other directly: a long title set in several lines.

    Longer runs are lists of names or pull quotes, and no heading at all.
    """
    runs: list[list[tuple[SizedLine, str, int]]] = []
    for item in found:
        last = runs[-1][-1] if runs else None
        if (
            last is not None
            and item[0].char_start == last[0].char_end + 1
            and abs(item[0].size - last[0].size)
            <= (_SAME_SIZE * last[0].size if item[0].size >= _DISPLAY * body else 0.5)
            and item[0].is_bold == last[0].is_bold
        ):
            runs[-1].append(item)
        else:
            runs.append([item])
    return [heading for run in runs if len(run) <= _MAX_MERGED for heading in _joined(run)]


def _joined(run: list[tuple[SizedLine, str, int]]) -> Iterator[Heading]:
    start, title, level = run[0][0].char_start, run[0][1], run[0][2]
    for (before, _, _), (line, more, other) in pairwise(run):
        if len(title) + len(more) <= _MAX_HEADING_CHARS:
            title, level = f"{title} {more}", min(level, other)
            continue
        yield Heading(title, level, start, before.char_end + 1)
        start, title, level = line.char_start, more, other
    yield Heading(title, level, start, run[-1][0].char_end + 1)


def _is_short(title: str) -> bool:
    return len(title.split()) <= 12 and not title.endswith(_A_SENTENCE_END)


def _is_uncased(title: str) -> bool:
    """Tell whether a title begins with a letter of a script without capitals, and is short in a script without blanks."""
    is_uncased = title[0].isalpha() and title[0].lower() == title[0].upper()
    return is_uncased and (len(title) <= _MAX_UNSPACED or not _is_unspaced(title))


def _is_unspaced(title: str) -> bool:
    """Tell whether a title is of two letters or more of a script whose words have no blanks between them."""
    return len(_UNSPACED.findall(title)) > 1


def _running_key(title: str) -> str:
    return "".join(filter(str.isalpha, title.lower()))


def _key(title: str) -> str:
    return "".join(filter(str.isalnum, title.lower()))
