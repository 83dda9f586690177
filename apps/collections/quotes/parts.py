"""What may be quoted of a passage: its sentences, list items and rows as wholes, each with the page where it stands. Pure.

A reader's text has the lines of the page. Lines of one paragraph are joined here, running headers and footers between two
pages left out, headings and rows kept apart, and a sentence that the border of the chunk cuts is completed from what stands
around. Everything that shows a citation takes its words, its page and its mark from here.
"""

from __future__ import annotations

import json
import re
from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from itertools import pairwise
from typing import Any, Literal

from apps.collections.ingestion.types import PageMarks
from apps.collections.ingestion.word_parts import UNSPACED
from apps.collections.quotes.code import code_pieces
from apps.collections.quotes.marked_lines import MarkedLines
from apps.collections.quotes.markup import COMMENT, unmarked
from apps.collections.quotes.paragraphs import PageLine, is_row, paragraph_lines
from toolloop.sentences import sentence_spans

AROUND = 1_500
"""Characters before and after a chunk in which the rest of its first and last sentence is looked for."""
_HEADER_MOST = 400
_ROW_MOST = 700
Kind = Literal["sentence", "row", "line", "heading"]
Markup = Literal["none", "layout", "all"]
"""Which marks of Markdown a text has: none, of headings and tables alone, or all of them."""
_KINDS: tuple[Kind, ...] = ("sentence", "row", "line", "heading")
_KEPT = {"lead", "tail", "length", "units", "skips", "header", "is_markdown", "is_cut"}
_UNSPACED_BREAK = re.compile(
    rf"(?<=[{UNSPACED}\u3001-\u301b\uff01-\uff60])[ \t]*\n\s*(?=[{UNSPACED}\u3001-\u301b\uff01-\uff60])"
)
_HYPHEN_BREAK = re.compile(r"(?<=[^\W\d_])[-\u2010\u00ad][ \t]*\n\s*(?=[^\W\d_])")
_BROKEN = re.compile(r"\w{1,60}[-\u2010\u00ad][ \t]*\n\s*\w+")
# A code, a range or an address that a line's end has cut: "2025-" and "0023", "https://" and "www.example.org".
_TOKEN_BREAK = re.compile(r"(?<=[\w/][-–/@])[ \t]*\n\s*(?=[\w])")
_LEAD = re.compile(r"[ \t>]*(?:[-*+•‣◦▪●■□➢✓][ \t]+|[・●○◎◆◇■□▪★☆▶►][ \t\u3000]*)?")
_NUMBER_SIGN = re.compile(r"\s*#{1,6}[ \t]+")  # before a heading
# Of Markdown's lists the numbers are marks as well: Word, and a browser, count the entries by themselves.
_LEAD_MARKDOWN = re.compile(r"[ \t>]*(?:(?:[-*+•‣◦▪●■□➢✓]|\d{1,4}[.)])[ \t]+(?:\[[ xX]\][ \t]+)?)?")


@dataclass(frozen=True, slots=True)
class PagePart:
    """A part of a page: ``text`` begins at ``char_start`` of the document; regions as the page's layout has them.

    Attributes:
        number: of the page, None where the document has no pages.
        headings: (start, end) in the document's text.
        regions: (kind, start, end, row starts, start of the body, header) in the document's text.
        is_code: all of it is source code.
        is_left_out: the page is in no chunk.
        marks: what the page's look says about its lines, in the document's text; None where nothing is known.
    """

    number: int | None
    char_start: int
    text: str
    headings: tuple[tuple[int, int], ...] = ()
    regions: tuple[tuple[str, int, int, tuple[int, ...], int, str], ...] = ()
    is_code: bool = False
    is_left_out: bool = False
    marks: PageMarks | None = None


@dataclass(frozen=True, slots=True)
class Unit:
    """A sentence, a list's item, a row or a line of code, with offsets in the document's text."""

    start: int
    end: int
    page: int | None
    kind: Kind = "sentence"


@dataclass(frozen=True, slots=True)
class Quotable:
    """What may be quoted of one chunk.

    Attributes:
        text: the document's text from ``start``, the chunk's own and as much as its first and last sentence need.
        units: in reading order.
        skips: running headers and footers, and what makes lines comments, inside, (start, end) in the document's text.
        header: the column header of the table that its rows are of.
        is_markdown: the text has Markdown's marks, which no quote shows.
        cache: for whoever works on it again and again.
        is_cut: whether the first unit begins before ``text``, and the last ends behind it: nothing so long is completed.
    """

    text: str
    start: int
    units: tuple[Unit, ...]
    skips: tuple[tuple[int, int], ...] = ()
    header: str = ""
    is_markdown: bool = False
    is_cut: tuple[bool, bool] = (False, False)
    cache: dict[Any, Any] = field(default_factory=dict, compare=False, repr=False)

    def said(self, start: int, end: int, kind: Kind = "sentence") -> str:
        """Return the words between two offsets as a reader of the page would read them out: lines joined, no marks."""
        pieces, at = [], start
        for low, high in self.skips:
            if at < high and low < end:
                pieces.append(self.text[at - self.start : max(at, low) - self.start])
                at = max(at, high)
        pieces.append(self.text[at - self.start : max(at, end) - self.start])
        text = "\n".join(piece.strip() for piece in pieces if piece.strip())
        if kind == "line":
            return text
        if kind == "row" and text.startswith("|"):
            return row_said(text, is_markdown=self.is_markdown)
        return self._joined(text)

    def _joined(self, text: str) -> str:
        text = _UNSPACED_BREAK.sub("", text)
        text = _HYPHEN_BREAK.sub(self._hyphen, text)
        text = _TOKEN_BREAK.sub("", text)
        text = " ".join(text.split())
        return unmarked(text) if self.is_markdown else text

    def _hyphen(self, found: re.Match[str]) -> str:
        """Return what stays of a hyphen at a line's end: it goes, unless the text spells the word with it elsewhere."""
        before = re.search(r"\w+\Z", found.string[max(0, found.start() - 40) : found.start()])
        after = re.match(r"\w+", found.string[found.end() : found.end() + 40])
        if before is None or after is None or after[0][0].isupper():
            return "-"
        words: frozenset[str] | None = self.cache.get("words")
        if words is None:
            unbroken = _BROKEN.sub(" ", self.text.casefold())
            words = frozenset(re.findall(r"\w+(?:-\w+)*", unbroken))
            self.cache["words"] = words
        left, right = before[0].casefold(), after[0].casefold()
        if left + right in words:
            return ""
        both = min(len(left), len(right)) >= 3 and left in words and right in words
        return "-" if both or f"{left}-{right}" in words else ""

    def to_text(self, chunk_start: int, chunk_text: str) -> str:
        """Return what a run keeps of it beside the chunk's own text, as JSON.

        A text, which is stored with a search's other values as it is: as values, the hundreds of numbers of a search were a
        third of what recording it took.
        """
        chunk_end = chunk_start + len(chunk_text)
        kept = {
            "lead": self.text[: max(0, chunk_start - self.start)],
            "tail": self.text[chunk_end - self.start :],
            "length": len(self.text),
            "units": [
                [u.start - self.start, u.end - self.start, u.page, _KINDS.index(u.kind)] for u in self.units
            ],
            "skips": [[a - self.start, b - self.start] for a, b in self.skips],
            "header": self.header,
            "is_markdown": self.is_markdown,
            "is_cut": list(self.is_cut),
        }
        # Without a space where none is said: what is withheld of a text is taken out by the sentence.
        return json.dumps(kept, ensure_ascii=False, separators=(",", ":"))


def quotable_from_text(kept: object, chunk_start: int, chunk_text: str) -> Quotable | None:
    """Return what ``to_text`` kept, None where it is not there or the text is another one now.

    Args:
        kept: of a run's search; earlier versions kept the value of the JSON.
    """
    # What its reader may not see was taken out: the rest may be no JSON, or the offsets are of another text.
    try:
        data = json.loads(kept) if isinstance(kept, str) else kept
    except ValueError:
        return None
    if not isinstance(data, Mapping) or not data.keys() >= _KEPT:
        return None
    text = f"{data['lead']}{chunk_text}{data['tail']}"
    if len(text) != data["length"]:
        return None
    start = chunk_start - len(data["lead"])
    return Quotable(
        text=text,
        start=start,
        units=tuple(Unit(start + a, start + b, page, _KINDS[kind]) for a, b, page, kind in data["units"]),
        skips=tuple((start + a, start + b) for a, b in data["skips"]),
        header=str(data["header"]),
        is_markdown=bool(data["is_markdown"]),
        is_cut=(bool(data["is_cut"][0]), bool(data["is_cut"][1])),
    )


def quotable_of(
    parts: Sequence[PagePart],
    start: int,
    end: int,
    *,
    markup: Markup = "none",
    is_cut: tuple[bool, bool] = (False, False),
) -> Quotable:
    """Say what may be quoted of a chunk.

    Args:
        parts: the pages, or parts of them, around the chunk, in order; see ``AROUND``. They follow each other without a gap.
        start: where the chunk begins in the document's text.
        end: just past its end.
        markup: marks of Markdown that the text has: all of them, as our readers make it of office files and pages of the
            web; of headings and tables alone, around values that are the file's own; or none.
        is_cut: whether the document has more before the parts, and behind them.
    """
    text, base = "".join(part.text for part in parts), parts[0].char_start
    is_markdown = markup == "all"
    lead = _LEAD_MARKDOWN if is_markdown else _LEAD
    marks: list[tuple[int, int]] = []
    unseen = [(base + m.start(), base + m.end()) for m in COMMENT.finditer(text)] if is_markdown else []
    units = [
        u
        for u in _units(parts, text, base, lead, marks, has_number_signs=markup != "none")
        if u.start < end and start < u.end and not any(a <= u.start and u.end <= b for a, b in unseen)
    ]
    low = min([start, *(u.start for u in units)])
    high = max([end, *(u.end for u in units)])
    left_out = [(r[1], r[2]) for part in parts for r in part.regions if r[0] == "furniture"]
    skips = tuple(sorted((a, b) for a, b in left_out + marks + unseen if a < high and low < b))
    return Quotable(
        text=text[low - base : high - base],
        start=low,
        units=tuple(units),
        skips=skips,
        header=_header(parts, units, is_markdown=is_markdown),
        is_markdown=is_markdown,
        is_cut=(
            is_cut[0] and bool(units) and units[0].start == base,
            is_cut[1] and bool(units) and units[-1].end == base + len(text.rstrip()),
        ),
    )


@lru_cache(maxsize=512)
def quotable_plain(text: str, start: int, page: int | None) -> Quotable:
    """Say what may be quoted of a text of which nothing but itself is known."""
    return quotable_of([PagePart(page, start, text)], start, start + len(text))


def _header(parts: Sequence[PagePart], units: Sequence[Unit], *, is_markdown: bool) -> str:
    rows = [u for u in units if u.kind == "row"]
    for part in parts:
        for kind, low, high, _, _, header in part.regions:
            if kind == "table" and header and any(low <= u.start < high for u in rows):
                return row_said(header.split("\n")[0].strip(), is_markdown=is_markdown)[:_HEADER_MOST]
    return ""


def row_said(row: str, *, is_markdown: bool) -> str:
    """Return a row without the bars at its ends and without Markdown's escapes.

    Args:
        is_markdown: its cells are Markdown; else only a bar inside a cell is escaped.
    """
    is_drawn = row.startswith("|")
    if is_drawn:
        row = re.sub(r"(?<!\\)\|\s*\Z", "", row[1:])
    row = " ".join(row.split())
    if is_markdown:
        return unmarked(row) if "|" in row or "\\" in row else row
    return row.replace("\\|", "|") if is_drawn else row


def _units(
    parts: Sequence[PagePart],
    text: str,
    base: int,
    lead: re.Pattern[str],
    marks: list[tuple[int, int]],
    *,
    has_number_signs: bool,
) -> list[Unit]:
    starts = [part.char_start for part in parts]
    look = MarkedLines(part.marks for part in parts)

    def page_at(offset: int) -> int | None:
        return parts[max(0, bisect_right(starts, offset) - 1)].number

    units: list[Unit] = []
    prose: list[tuple[int, int]] = []
    for kind, low, high, rows, body in _stretches(parts):
        if kind == "prose":
            prose.append((low, high))
            continue
        if kind == "furniture":
            continue
        units += _sentences(text, base, prose, lead, page_at, look)
        prose = []
        if kind == "table":
            units += _rows(text, base, (low, high), rows, body, lead, page_at, look)
        elif kind == "code":
            units += _code(text, base, low, high, page_at, marks)
        elif kind == "heading":
            sign = _NUMBER_SIGN.match(text, low - base, high - base) if has_number_signs else None
            units += _trimmed(text, base, base + sign.end() if sign else low, high, page_at(low), "heading")
    units += _sentences(text, base, prose, lead, page_at, look)
    return units


_Stretch = tuple[str, int, int, tuple[int, ...], int]


def _stretches(parts: Sequence[PagePart]) -> Iterator[_Stretch]:
    """Cut parts of pages at their headings and regions; what is between them is ``prose``."""
    for part in parts:
        end = part.char_start + len(part.text)
        if part.is_left_out or part.is_code:
            kind = "left out" if part.is_left_out else "code"
            yield kind, part.char_start, end, (), 0
            continue
        marked: list[_Stretch] = [("heading", a, b, (), 0) for a, b in part.headings]
        marked += [(kind, a, b, rows, body) for kind, a, b, rows, body, _ in part.regions]
        at = part.char_start
        for kind, low, high, rows, body in sorted(marked, key=lambda m: (m[1], -m[2])):
            if kind == "table" and not part.text.startswith("|", low - part.char_start):
                # A column that the reader did not count to the table stands before its rows, or behind: whole lines are rows.
                low = part.text.rfind("\n", 0, max(0, low - part.char_start)) + 1 + part.char_start
                line_end = part.text.find("\n", max(0, high - 1 - part.char_start))
                high = end if line_end < 0 else line_end + 1 + part.char_start
            low, high = max(low, at), min(high, end)
            if low >= high:
                continue
            if at < low:
                yield "prose", at, low, (), 0
            yield kind, low, high, rows, body
            at = high
        if at < end:
            yield "prose", at, end, (), 0


def _rows(
    text: str,
    base: int,
    span: tuple[int, int],
    rows: Sequence[int],
    body: int,
    lead: re.Pattern[str],
    page_at: Any,
    look: MarkedLines,
) -> Iterator[Unit]:
    low, high = span
    is_lined = text.startswith("|", low - base)
    if not is_lined:
        # Whole lines are rows, also where the reader did not count the first column to the table.
        rows = [text.rfind("\n", 0, max(0, row - base)) + 1 + base for row in rows]
        body = text.rfind("\n", 0, max(0, body - base)) + 1 + base if body > low else body
    bounds = sorted({low, high, *(row for row in rows if low < row < high)})
    for start, end in pairwise(bounds):
        inside = text[start - base : end - base].strip()
        if not is_lined and len(inside) > _ROW_MOST and "\n" in inside:
            # The reader has seen a table and not its rows: what it says is read like any text.
            yield from _sentences(text, base, [(start, end)], lead, page_at, look)
            continue
        yield from _trimmed(text, base, start, end, page_at(start), "heading" if start < body else "row")


def _code(
    text: str, base: int, low: int, high: int, page_at: Any, marks: list[tuple[int, int]]
) -> Iterator[Unit]:
    """Take code line by line and its comments by their sentences; ``marks`` grows by what makes lines comments."""
    for piece in code_pieces(text[low - base : high - base], low):
        if piece.is_prose:
            marks += piece.marks
            yield from _paragraphs(piece.lines, _LEAD, page_at, is_drawn=False)
        elif not re.match(r"\s*(```|~~~)", piece.lines[0].text):
            line = piece.lines[0]
            yield Unit(line.start, line.start + len(line.text.rstrip()), page_at(line.start), "line")


def _trimmed(text: str, base: int, start: int, end: int, page: int | None, kind: Kind) -> Iterator[Unit]:
    inside = text[start - base : end - base]
    if inside.strip():
        first = start + len(inside) - len(inside.lstrip())
        yield Unit(first, start + len(inside.rstrip()), page, kind)


def _sentences(
    text: str,
    base: int,
    prose: Sequence[tuple[int, int]],
    lead: re.Pattern[str],
    page_at: Any,
    look: MarkedLines,
) -> Iterator[Unit]:
    """Join the lines of paragraphs, over the borders of pages too, and cut them into sentences."""
    lines = [
        line
        for low, high in prose
        for line in look.lines(text, base, low, high, is_first=(low, high) == prose[0])
    ]
    units = list(_paragraphs(lines, lead, page_at, is_drawn=lead is _LEAD))
    for n, unit in enumerate(units):
        # Names above a row of figures are its header: no statement rests on them.
        if unit.kind == "row" and (n == 0 or units[n - 1].kind != "row"):
            figures = [any(map(str.isdigit, text[u.start - base : u.end - base])) for u in units[n : n + 2]]
            if figures == [False, True] and units[n + 1].kind == "row":
                unit = replace(unit, kind="heading")
        yield unit


def _paragraphs(
    lines: Sequence[PageLine], lead: re.Pattern[str], page_at: Any, *, is_drawn: bool
) -> Iterator[Unit]:
    for paragraph in paragraph_lines(lines, is_drawn=is_drawn):
        joined = ""
        places: list[tuple[int, int]] = []
        for line in paragraph:
            begun = lead.match(line.text) if not places else None
            skipped = begun.end() if begun else 0
            places.append((len(joined), line.start + skipped))
            joined += line.text[skipped:] + "\n"
        at = [place[0] for place in places]

        def place(offset: int, at: list[int] = at, places: list[Any] = places) -> int:
            index = bisect_right(at, offset) - 1
            return int(places[index][1] + offset - places[index][0])

        is_table = is_row(joined)
        for start, end in sentence_spans(joined) if not is_table else [(0, len(joined.rstrip()))]:
            first = place(start)
            yield Unit(first, place(end - 1) + 1, page_at(first), "row" if is_table else "sentence")
