"""What is known of a document without the product's code: sentences and rows to ask about, and what a page holds.

Sentences are cut by pySBD, unless the document was made of known ones. The readers are in ``_citation_readers.py``.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise
from typing import Any

_LABEL = re.compile(r"(?:[(（]\w{1,3}[)）]|\{\d+\})\s*")
_NOTE = re.compile(r"\{\d+\}\Z")
ITEM = re.compile(r"(?:[-*+•▪●■◦o]|\(?(?:\d{1,3}|[A-Za-z]|[ivx]{1,5})[.)])\s")


def letters(text: str) -> str:
    """Return what must agree: letters and digits without case, whatever their form (ligatures, forms of Arabic, full width)."""
    plain = text.casefold() if text.isascii() else unicodedata.normalize("NFKC", text).casefold()
    return "".join(ch for ch in plain if ch.isalnum())


@dataclass(frozen=True)
class Asked:
    """A sentence or a row to make a claim of.

    Attributes:
        page: from 1, None where the format has no pages.
        cells: of a row, "" where it is a sentence.
        head: the column header, cell by cell.
    """

    kind: str
    text: str
    page: int | None
    cells: tuple[str, ...] = ()
    head: tuple[str, ...] = ()


@dataclass
class Block:
    """A page, a paragraph or a list's entry: its lines as they stand there.

    Attributes:
        known: its lines are sentences, entries or lines of code, each whole; no splitter is asked.
        is_heading: it may be quoted, and nothing asks for it.
    """

    page: int | None
    lines: list[str]
    known: bool = False
    is_heading: bool = False

    @cached_property
    def text(self) -> str:
        return " ".join(line.strip() for line in self.lines if line.strip())

    @cached_property
    def flat(self) -> str:
        return letters(self.text)

    @cached_property
    def bounds(self) -> tuple[set[int], set[int]]:
        """Offsets in ``flat`` where a sentence or a line that stands for itself may begin, and may end."""
        starts, ends, at = {0}, {len(self.flat)}, 0
        if self.known:
            for line in self.lines:
                starts |= {at, at + len(letters(lead[0]) if (lead := _LABEL.match(line)) else "")}
                at += len(letters(line))
                # The mark of a note stands behind the sentence's own: with it and without it the sentence is whole.
                ends |= {at, at - len(letters(note[0]) if (note := _NOTE.search(line)) else "")}
            return starts, ends
        for sentence in sentences(self.text):
            starts.add(at)
            at += len(letters(sentence))
            ends.add(at)
        at = 0
        lines = [line.strip() for line in self.lines if letters(line)]
        for line, after in pairwise([*lines, ""]):
            at += len(letters(line))
            if not after or not after[0].islower() or ITEM.match(after):
                starts.add(at)
                ends.add(at)
            label = ITEM.match(after)
            if label:
                starts.add(at + len(letters(label.group())))
        return starts, ends


@dataclass
class Truth:
    """All that is known of one document.

    Attributes:
        places: of the letters of each page, as (letter, middle x, middle y) in fractions of the page.
    """

    name: str
    kind: str
    blocks: list[Block] = field(default_factory=list)
    rows: list[Asked] = field(default_factory=list)
    places: dict[int, list[tuple[str, float, float]]] = field(default_factory=dict)
    error: float = 0.0  # share of letters that recognition may have wrong

    def asked(self) -> Iterator[Asked]:
        """Yield whole sentences that are neither very short nor very long, and rows with something to tell them by."""
        seen: set[str] = set()
        for block in self.blocks:
            if block.is_heading:
                continue
            for sentence in block.lines if block.known else sentences(block.text):
                is_asked = len(letters(sentence)) >= 12 if block.known else _is_prose(sentence)
                if is_asked and letters(sentence) not in seen:
                    seen.add(letters(sentence))
                    said = re.sub(r"\{(\d+)\}", r"\1", sentence) if block.known else sentence
                    yield Asked(self.kind, said, block.page)
        for row in self.rows:
            told = sum(len(letters(cell)) > 0 for cell in row.cells)
            if (told >= 2 or not row.cells) and letters(row.text) not in seen:
                seen.add(letters(row.text))
                yield row

    def holds(self, quote: str, page: int | None) -> tuple[bool, bool]:
        """Tell whether a quote stands on a page, and whether it is whole there: sentences, or a row."""
        wanted = letters(quote)
        stands = whole = False
        for row in self.rows:
            if row.page == page and _agree(letters(row.text), wanted, self.error):
                return True, True
        for block, after in self._runs(page):
            flat = block.flat + (after.flat if after else "")
            for at in _found(flat, wanted, self.error):
                if at >= len(block.flat):
                    continue
                stands = True
                end = at + len(wanted)
                starts, ends = block.bounds
                if after:
                    starts = starts | {len(block.flat) + n for n in after.bounds[0]}
                    ends = ends | {len(block.flat) + n for n in after.bounds[1]}
                slack = int(self.error * 20) + 0
                near = range(-slack, slack + 1)
                if any(at + n in starts for n in near) and any(end + n in ends for n in near):
                    whole = True
        return stands, whole

    def _runs(self, page: int | None) -> Iterator[tuple[Block, Block | None]]:
        blocks = [block for block in self.blocks if page is None or block.page in (page, page + 1)]
        for block, after in zip(blocks, [*blocks[1:], None], strict=False):
            if page is None or block.page == page:
                joined = after if page is not None and after and after.page == page + 1 else None
                yield block, None
                if joined:
                    yield block, joined
                    yield self._without_running(block), self._without_running(joined)

    def _without_running(self, block: Block) -> Block:
        """Leave out a page's number and the head that stands on other pages too: a sentence over two pages goes on past them."""
        lines = list(block.lines)
        heads = [other.lines[0] for other in self.blocks if other.lines]
        if len(lines) > 2 and heads.count(lines[0]) > 2:
            lines = lines[1:]
        if len(lines) > 2 and lines[-1].strip() == str(block.page):
            lines = lines[:-1]
        return Block(block.page, lines, block.known, block.is_heading)


def _is_prose(sentence: str) -> bool:
    """Tell whether something is a whole sentence that is neither very short nor very long, and no row of a table."""
    is_spaced = sentence.isascii() or len(sentence.split()) >= 7
    least = 40 if is_spaced else 15
    digits = sum(ch.isdigit() for ch in sentence)
    return (
        least <= len(sentence) <= 450
        and (not is_spaced or len(sentence.split()) >= 7)
        and re.search(r"[.?!。！？؟।]\W*$", sentence) is not None
        and not sentence[0].islower()
        and not any(mark in sentence for mark in ("..", "|", "_"))
        and digits < 0.2 * len(sentence)
    )


def _agree(one: str, two: str, error: float) -> bool:
    return one == two or (error > 0 and _ratio(one, two) >= 1 - error)


def _ratio(one: str, two: str) -> float:
    from difflib import SequenceMatcher

    return SequenceMatcher(None, one, two, autojunk=False).ratio()


def _found(flat: str, wanted: str, error: float) -> list[int]:
    found = [m.start() for m in re.finditer(re.escape(wanted), flat)] if wanted else []
    if found or not error or len(wanted) < 12:
        return found
    # Recognition reads some letters wrong: find where most of them stand.
    from difflib import SequenceMatcher

    matcher = SequenceMatcher(None, flat, wanted, autojunk=False)
    block = matcher.find_longest_match()
    at = max(0, block.a - block.b)
    return [at] if block.size > 5 and _ratio(flat[at : at + len(wanted)], wanted) >= 1 - error else []


_segmenter: dict[str, Any] = {}


def sentences(text: str) -> list[str]:
    """Cut a text as pySBD does, by the language of its letters."""
    import pysbd

    code = "en"
    for name, pattern in (
        ("zh", "[\u4e00-\u9fff]"),
        ("ja", "[\u3040-\u30ff]"),
        ("ar", "[\u0600-\u06ff]"),
        ("hi", "[\u0900-\u097f]"),
        ("ru", "[\u0400-\u04ff]"),
    ):
        if len(re.findall(pattern, text)) > 0.2 * len(text):
            code = name
    if code == "en" and re.search(r"\b(?:der|und|nicht|werden|ist)\b", text):
        code = "de"
    if code not in _segmenter:
        _segmenter[code] = pysbd.Segmenter(language=code, clean=False)
    return [s.strip() for s in _segmenter[code].segment(text) if s.strip()]


def letters_in(
    places: list[tuple[str, float, float]], boxes: list[tuple[float, float, float, float]]
) -> list[str]:
    """Return the letters of a page whose middle lies in one of some boxes (left, top, right, bottom), in reading order."""
    return [
        word
        for word, x, y in places
        if any(left <= x <= right and top <= y <= bottom for left, top, right, bottom in boxes)
    ]


def covered(words: list[str], wanted: str) -> tuple[float, float]:
    """Return the share of a quote's letters that marked words hold, and the share of marked letters that are the quote's."""
    from collections import Counter

    marked, quoted = Counter("".join(words)), Counter(letters(wanted))
    both = (marked & quoted).total()
    return both / max(1, quoted.total()), both / max(1, marked.total())
