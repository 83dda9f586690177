"""What documents say, read without the product's code: sentences and rows to ask about, and what a page holds.

PDF by pdfplumber, XLSX by openpyxl, DOCX by python-docx, CSV by csv, HTML by lxml, Markdown by its lines; sentences are cut
by pySBD. Images are read from the PDF that they were drawn from.
"""

from __future__ import annotations

import csv
import re
from bisect import bisect_left
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from typing import Any

_MARKDOWN = re.compile(r"!?\[((?:[^\[\]]|\[[^\[\]]*\])*)\]\([^)\s]*\)|[*_`\\]+")
_ITEM = re.compile(r"(?:[-*+•▪●■◦o]|\(?(?:\d{1,3}|[A-Za-z]|[ivx]{1,5})[.)])\s")


def letters(text: str) -> str:
    """Return what must agree: letters and digits without case."""
    return "".join(ch for ch in text.casefold() if ch.isalnum())


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
    """A page, a paragraph or a list's entry: its lines as they stand there."""

    page: int | None
    lines: list[str]

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
        for sentence in sentences(self.text):
            starts.add(at)
            at += len(letters(sentence))
            ends.add(at)
        at = 0
        lines = [line.strip() for line in self.lines if letters(line)]
        for line, after in pairwise([*lines, ""]):
            at += len(letters(line))
            if not after or not after[0].islower() or _ITEM.match(after):
                starts.add(at)
                ends.add(at)
            label = _ITEM.match(after)
            if label:
                starts.add(at + len(letters(label.group())))
        return starts, ends


@dataclass
class Truth:
    """All that is known of one document.

    Attributes:
        places: of the words of each page, as (letters, middle x, middle y) in fractions of the page.
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
            for sentence in sentences(block.text):
                if letters(sentence) not in seen and _is_prose(sentence):
                    seen.add(letters(sentence))
                    yield Asked(self.kind, sentence, block.page)
        for row in self.rows:
            if sum(len(letters(cell)) > 0 for cell in row.cells) >= 2 and letters(row.text) not in seen:
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


def truth_of(path: Path, drawn_from: tuple[Path, list[int]] | None = None) -> Truth:
    """Read a document.

    Args:
        drawn_from: of images of pages, the PDF and its page numbers.
    """
    if drawn_from is not None:
        whole = _pdf(drawn_from[0], set(drawn_from[1]))
        number = {old: new for new, old in enumerate(drawn_from[1], 1)}
        truth = Truth(path.name, "ocr", error=0.12)
        truth.blocks = [Block(number[b.page or 0], b.lines) for b in whole.blocks]
        truth.places = {number[page]: words for page, words in whole.places.items()}
        return truth
    readers = {".pdf": _pdf, ".docx": _docx, ".xlsx": _xlsx, ".csv": _csv, ".html": _html, ".md": _markdown}
    return readers[path.suffix](path)


def _pdf(path: Path, only: set[int] | None = None) -> Truth:
    import pdfplumber

    truth = Truth(path.name, "pdf")
    with pdfplumber.open(path) as pdf:
        for page in pdf.pages:
            if only is not None and page.page_number not in only:
                continue
            text = page.extract_text(use_text_flow=True, x_tolerance=1.5) or ""
            truth.blocks.append(Block(page.page_number, text.split("\n")))
            truth.places[page.page_number] = [
                (
                    letters(word["text"]),
                    (word["x0"] + word["x1"]) / 2 / float(page.width),
                    (word["top"] + word["bottom"]) / 2 / float(page.height),
                )
                for word in page.extract_words(use_text_flow=True, x_tolerance=1.5)
                if letters(word["text"])
            ]
            if only is not None:
                continue
            for table in page.find_tables():
                grid = [[" ".join((cell or "").split()) for cell in row] for row in table.extract()]
                _grid(truth, grid, page.page_number, "table in PDF")
            page.close()
    return truth


def _grid(truth: Truth, grid: list[list[str]], page: int | None, kind: str) -> None:
    if len(grid) < 2 or max(map(len, grid)) < 2:
        return
    head = tuple(grid[0])
    for row in grid[1:]:
        truth.rows.append(Asked(kind, " | ".join(row), page, tuple(row), head))


def _docx(path: Path) -> Truth:
    import docx

    truth = Truth(path.name, "docx")
    document = docx.Document(str(path))
    truth.blocks = [Block(None, p.text.split("\n")) for p in document.paragraphs if p.text.strip()]
    for table in document.tables:
        grid = [[" ".join(cell.text.split()) for cell in row.cells] for row in table.rows]
        _grid(truth, grid, None, "table in DOCX")
    return truth


def _xlsx(path: Path) -> Truth:
    import openpyxl

    truth = Truth(path.name, "table")
    for number, sheet in enumerate(openpyxl.load_workbook(path, data_only=True).worksheets, 1):
        grid = [["" if v is None else str(v) for v in row] for row in sheet.iter_rows(values_only=True)]
        _grid(truth, [row for row in grid if any(row)], number, "XLSX")
        for row in grid:
            # A sheet may hold tables side by side: a row is what stands without a gap.
            told = " | ".join(cell or "\n" for cell in row).split("\n")
            truth.blocks += [Block(number, [part]) for part in told if letters(part)]
    return truth


def _csv(path: Path) -> Truth:
    truth = Truth(path.name, "table")
    text = path.read_text(encoding="utf-8-sig")
    mark = max(",;\t|", key=text.split("\n", 1)[0].count)
    _grid(truth, list(csv.reader(text.splitlines(keepends=True), delimiter=mark)), None, "CSV")
    return truth


def _html(path: Path) -> Truth:
    from lxml import html

    truth = Truth(path.name, "html")
    root = html.fromstring(path.read_bytes())
    for node in root.iter("script", "style"):
        node.text = ""
    for node in root.iter("p", "li", "dd"):
        if not any(True for _ in node.iter("table", "ul", "p") if _ is not node):
            truth.blocks.append(Block(None, [" ".join(node.text_content().split())]))
    for table in root.iter("table"):
        grid = [
            [" ".join(cell.text_content().split()) for cell in row.iter("td", "th")]
            for row in table.iter("tr")
        ]
        _grid(truth, [row for row in grid if row], None, "table in HTML")
    return truth


def _markdown(path: Path) -> Truth:
    truth = Truth(path.name, "markdown")
    lines: list[str] = []
    table: list[list[str]] = []
    is_code = False
    for line in [*path.read_text(encoding="utf-8").split("\n"), ""]:
        is_code = is_code != line.lstrip().startswith("```")
        if is_code:
            continue
        said = _MARKDOWN.sub(lambda m: m[1] or "", line).strip()
        if line.startswith("|"):
            if not re.fullmatch(r"[|:\-\s]+", line):
                table.append([cell.strip() for cell in said.strip("|").split("|")])
            continue
        if table:
            _grid(truth, table, None, "table in Markdown")
            table = []
        if not said or said.startswith("#") or _ITEM.match(line.strip()):
            if lines:
                truth.blocks.append(Block(None, lines))
            lines = [] if not said or said.startswith("#") else [_ITEM.sub("", said, count=1)]
        else:
            lines.append(said)
    return truth


def words_in(
    places: list[tuple[str, float, float]], boxes: list[tuple[float, float, float, float]]
) -> list[str]:
    """Return the words of a page whose middle lies in one of some boxes (left, top, right, bottom), in reading order."""
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


def nearest(starts: list[int], at: int) -> int:
    """Return how far an offset lies from the nearest of sorted ones."""
    n = bisect_left(starts, at)
    return min((abs(s - at) for s in starts[max(0, n - 1) : n + 1]), default=at)
