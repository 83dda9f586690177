"""What readers hand to the chunker and the chunker to the pipeline: plain frozen values, no ORM."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from functools import cached_property
from itertools import accumulate
from typing import Any, Literal

from apps.collections.ingestion.code.types import CodeStructure
from apps.collections.ingestion.ocr.types import Scan
from basics.errors import DomainError


class FailureCode(StrEnum):
    """Why a file could not be turned into text."""

    EMPTY_FILE = "empty_file"
    ENCRYPTED_PDF = "encrypted_pdf"
    CORRUPT_FILE = "corrupt_file"
    NO_TEXT = "no_text"
    UNSUPPORTED_TYPE = "unsupported_type"
    TOO_LARGE = "too_large"
    TOO_MANY_PAGES = "too_many_pages"
    TIMED_OUT = "timed_out"
    OUT_OF_MEMORY = "out_of_memory"
    CRASHED = "crashed"


class ReadFailure(DomainError):
    """A file ended here; ``message`` tells its owner why and what to do."""

    default_status = 422

    def __init__(
        self, code: FailureCode | str, message: str, *, data: Mapping[str, Any] | None = None
    ) -> None:
        super().__init__(str(FailureCode(code)), message, data=data)


class JunkReason(StrEnum):
    """Why a page is left out of the chunks (it stays readable in the viewer); the values are stable codes."""

    TOO_SHORT = "too_short"
    TABLE_OF_CONTENTS = "table_of_contents"
    INTENTIONALLY_BLANK = "intentionally_blank"
    INDEX = "index"
    HEADER_ONLY = "header_only"


ChunkKind = Literal["doc", "function", "class", "file", "table"]


@dataclass(frozen=True, slots=True)
class Heading:
    """A heading line.

    Attributes:
        title: its text on one line, without markup.
        level: 1 for the outermost.
        char_start: offset of its line; into the page's text in ``PageText``, into the document's in
            ``ExtractedDocument.headings``.
        char_end: offset just past its line.
    """

    title: str
    level: int
    char_start: int
    char_end: int


@dataclass(frozen=True, slots=True)
class Region:
    """A stretch of text that wants to stay together.

    Attributes:
        kind: ``table`` splits at rows only, ``code`` at lines only; ``furniture`` is a running header or footer, which
            is left out of what search sees.
        char_start: first character; into the page's text in ``PageText``, into the document's in
            ``ExtractedDocument.regions``.
        char_end: just past the last character.
        row_starts: offsets where a row begins, header included, ascending; a row may span lines.
        body_start: offset of the first row that is not header (``char_start`` if there is no header here).
        header: the header's text, repeated with every later part of a split table.
        rows: for a table whose text does not show its cells (a PDF's), each row as ``| cell | cell |``, one for each
            of ``row_starts``; empty where the text itself is written that way.
        columns: how many columns a table has, 0 if unknown.
        caption: the line that names the table, "" if there is none.
        delimiter: what stands between the cells in the text: ``|`` in Markdown rows, a CSV file's own; "" if nothing does.
    """

    kind: Literal["table", "code", "furniture"]
    char_start: int
    char_end: int
    row_starts: tuple[int, ...] = ()
    body_start: int = 0
    header: str = ""
    rows: tuple[str, ...] = ()
    columns: int = 0
    caption: str = ""
    delimiter: str = ""


@dataclass(frozen=True, slots=True)
class PageMarks:
    """What the white space, the letter sizes and the weight of a drawn page say about its lines; offsets into its text.

    The text stays as it is: chunks and stored offsets don't depend on these marks, the borders of quotes do.

    Attributes:
        begins: starts of lines that begin a paragraph, a heading or a list's entry.
        goes_on: starts of lines that continue the line above, of scripts whose words alone don't tell.
        raised: (start, end) of raised numbers of notes, ascending.
    """

    begins: tuple[int, ...] = ()
    goes_on: tuple[int, ...] = ()
    raised: tuple[tuple[int, int], ...] = ()

    def moved(self, by: int) -> PageMarks:
        """Return the same marks with offsets into a text that begins ``by`` characters earlier."""
        return PageMarks(
            tuple(at + by for at in self.begins),
            tuple(at + by for at in self.goes_on),
            tuple((low + by, high + by) for low, high in self.raised),
        )


@dataclass(frozen=True, slots=True)
class PageText:
    """One page of a paged document, or one part of a document without pages.

    Attributes:
        number: from 1.
        text: the page's text with everything that separates it from the next page, so that the document's
            text is the plain concatenation of its pages' texts.
        width: in points, 0 where the format has no page size.
        height: in points, 0 where the format has no page size.
        headings: offsets into ``text``.
        regions: offsets into ``text``.
        junk: why the page is left out of the chunks, None for a page that counts.
        code: the structure of a source file, which is one page; offsets into ``text``.
        scan: set where the page's picture must be read, or has been.
        marks: None where the format doesn't draw its pages, or nothing was found.
    """

    number: int
    text: str
    width: float = 0.0
    height: float = 0.0
    headings: tuple[Heading, ...] = ()
    regions: tuple[Region, ...] = ()
    junk: JunkReason | None = None
    code: CodeStructure | None = None
    scan: Scan | None = None
    marks: PageMarks | None = None


@dataclass(frozen=True)
class ExtractedDocument:
    """All text of one file.

    Attributes:
        media_type: what the file really is.
        pages: in order, numbers 1..n.
        is_paged: False when the format has no pages; then page numbers mean nothing to a reader.
        title: from the file's own metadata, "" if it has none.
        warnings: sentences for the document's owner (for example that the file's name is misleading).
        metadata: facts of the reader, JSON-serialisable.
    """

    media_type: str
    pages: tuple[PageText, ...]
    is_paged: bool = True
    title: str = ""
    warnings: tuple[str, ...] = ()
    metadata: Mapping[str, Any] = field(default_factory=dict)

    @cached_property
    def text(self) -> str:
        """Concatenate the pages; every offset of headings, regions and chunks points into this."""
        return "".join(page.text for page in self.pages)

    @cached_property
    def page_starts(self) -> tuple[int, ...]:
        """Give for each page the offset of its first character in the document's text."""
        lengths = [len(page.text) for page in self.pages]
        return (0, *accumulate(lengths[:-1])) if lengths else ()

    @property
    def code(self) -> CodeStructure | None:
        """Give the structure of a source file, None for everything else."""
        return self.pages[0].code if len(self.pages) == 1 else None

    @property
    def is_scanned(self) -> bool:
        """Tell whether pages wait for text recognition (OCR)."""
        return any(page.scan is not None and page.scan.state == "wanted" for page in self.pages)

    @cached_property
    def headings(self) -> tuple[Heading, ...]:
        """Give the headings of the pages that count, with offsets into the document's text."""
        return tuple(
            Heading(h.title, h.level, start + h.char_start, start + h.char_end)
            for start, page in zip(self.page_starts, self.pages, strict=True)
            if page.junk is None
            for h in page.headings
        )

    @cached_property
    def regions(self) -> tuple[Region, ...]:
        """Give the regions of the pages that count, with offsets into the document's text."""
        return tuple(
            replace(
                r,
                char_start=start + r.char_start,
                char_end=start + r.char_end,
                row_starts=tuple(start + row for row in r.row_starts),
                body_start=start + r.body_start,
            )
            for start, page in zip(self.page_starts, self.pages, strict=True)
            if page.junk is None
            for r in page.regions
        )

    @cached_property
    def body_text(self) -> str:
        """Give the text that chunks must cover: without the pages left out and without running headers and footers."""
        pieces: list[str] = []
        for page in self.pages:
            position = 0
            for region in page.regions if page.junk is None else ():
                if region.kind == "furniture":
                    pieces.append(page.text[position : region.char_start])
                    position = region.char_end
            if page.junk is None:
                pieces.append(page.text[position:])
        return "".join(pieces)

    def page_at(self, offset: int) -> PageText:
        """Find the page that holds the character at ``offset`` of the document's text."""
        return self.pages[max(0, bisect_right(self.page_starts, offset) - 1)]


@dataclass(frozen=True, slots=True)
class ChunkDraft:
    """A chunk before it has a row.

    ``text`` is what is quoted and cited; ``prefix`` is what search must know besides. Index and embed
    ``indexed_text``, show and cite ``text``.

    Attributes:
        index: from 0, in reading order.
        text: exactly ``document.text[char_start:char_end]``.
        char_start: offset into the document's text.
        char_end: just past the last character.
        page_start: number of the page where it begins.
        page_end: number of the page where it ends.
        headings: titles from the outermost to the innermost heading it stands under; a chunk gathered from several
            small sections has the part that all of them share.
        kind: ``doc`` or ``table`` for documents; code has ``function``, ``class`` and ``file``.
        metadata: JSON-serialisable. ``sections``: titles of all sections gathered here, if there are several.
            ``parent``: offsets of the section or table that it is a part of. ``is_code``: True for a fenced code block of a document. Of a table: ``table_caption``, ``table_columns``,
            ``table_header`` (the column header, where it is not in ``text`` itself), ``row_header`` (the first cell,
            where the piece begins inside a row), ``table_rows`` (the piece's rows as ``| cell | cell |``, where
            ``text`` does not show the cells).
    """

    index: int
    text: str
    char_start: int
    char_end: int
    page_start: int
    page_end: int
    headings: tuple[str, ...] = ()
    kind: ChunkKind = "doc"
    metadata: Mapping[str, Any] = field(default_factory=dict)

    @property
    def prefix(self) -> str:
        """Give the lines that go before the text for search: heading path, caption, repeated headers."""
        path = " > ".join(h for h in self.headings if h not in self.text)
        sections = " / ".join(h for h in self.metadata.get("sections", ()) if h not in self.text)
        said = (str(self.metadata.get(key, "")) for key in _SAID_PREFIX)
        return "\n".join(part for part in (path, sections, *said) if part)

    @property
    def indexed_text(self) -> str:
        """Give the text that search indexes and embeds: prefix, then the table's rows cell by cell or the text."""
        rows = str(self.metadata.get("table_rows", ""))
        return "\n".join(part for part in (self.prefix, rows or self._body()) if part)

    def _body(self) -> str:
        pieces: list[str] = []
        position = 0
        for start, end in self.metadata.get("furniture", ()):
            pieces.append(self.text[position:start])
            position = end
        return "".join((*pieces, self.text[position:]))


_SAID_PREFIX = ("table_caption", "table_header", "row_header", "code_prefix")


@dataclass(frozen=True, slots=True)
class ReaderLimits:
    """What one file may cost.

    Attributes:
        max_bytes: size of the file.
        max_pages: pages of a paged document.
        max_chars: characters of text in total.
        wall_seconds: time from start to last page.
        cpu_seconds: processor time of the child.
        table_seconds: processor time for the tables of a PDF; past it only its text is read, with a warning.
        memory_bytes: resident memory of the child.
    """

    max_bytes: int = 200 * 1024 * 1024
    max_pages: int = 5000
    max_chars: int = 60_000_000
    wall_seconds: float = 600.0
    cpu_seconds: int = 300
    table_seconds: float = 60.0
    memory_bytes: int = 768 * 1024 * 1024
