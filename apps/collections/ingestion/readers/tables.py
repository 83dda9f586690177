"""Tables written out as Markdown rows, with the region that lets the chunker repeat their header."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from apps.collections.ingestion.readers.base import MAX_HEADER
from apps.collections.ingestion.types import Heading, Region


@dataclass(slots=True)
class TextBuilder:
    """Grows the text of a document together with the offsets of its headings and tables."""

    pieces: list[str] = field(default_factory=list)
    length: int = 0
    headings: list[Heading] = field(default_factory=list)
    regions: list[Region] = field(default_factory=list)

    def add(self, text: str) -> None:
        """Append text as it is."""
        self.pieces.append(text)
        self.length += len(text)

    def add_heading(self, title: str, level: int) -> None:
        """Append a Markdown heading and a blank line; blank titles are left out."""
        shown = one_line(title)
        if not shown:
            return
        start = self.length
        self.add(f"{'#' * level} {shown}\n")
        self.headings.append(Heading(shown, level, start, self.length))
        self.add("\n")

    def add_paragraph(self, text: str) -> None:
        """Append a paragraph and a blank line; a blank one is left out."""
        if text.strip():
            self.add(f"{text.strip()}\n\n")

    def add_table(self, rows: Sequence[Sequence[str]], *, header_rows: int = 1) -> None:
        """Append a table as Markdown rows and a blank line.

        Args:
            rows: cells by row; short rows are filled up.
            header_rows: how many rows at the top are header; at least one, since Markdown has no table without.
        """
        width = max((len(row) for row in rows), default=0)
        if not width:
            return
        header_rows = max(1, min(header_rows, len(rows)))
        start = body = self.length
        first_piece = len(self.pieces)
        starts: list[int] = []
        header = ""
        for number, row in enumerate(rows):
            starts.append(self.length)
            self.add(markdown_row([*row, *[""] * (width - len(row))]) + "\n")
            if number == header_rows - 1:
                self.add(f"|{' --- |' * width}\n")
                body = self.length
                header = "".join(self.pieces[first_piece:]).rstrip("\n")[:MAX_HEADER]
        self.regions.append(
            Region("table", start, self.length, tuple(starts), body, header, columns=width, delimiter="|")
        )
        self.add("\n")

    def append(self, other: TextBuilder) -> None:
        """Append all that another builder holds."""
        shift = self.length
        self.headings += [
            replace(h, char_start=h.char_start + shift, char_end=h.char_end + shift) for h in other.headings
        ]
        self.regions += [
            replace(
                r,
                char_start=r.char_start + shift,
                char_end=r.char_end + shift,
                row_starts=tuple(row + shift for row in r.row_starts),
                body_start=r.body_start + shift,
            )
            for r in other.regions
        ]
        self.add(other.text)

    @property
    def text(self) -> str:
        """Give the text so far."""
        return "".join(self.pieces)


def markdown_row(cells: Sequence[str]) -> str:
    """Write one row; bars and line ends inside a cell cannot be mistaken for its borders."""
    return "| " + " | ".join(one_line(cell).replace("|", "\\|") for cell in cells) + " |"


def one_line(text: str) -> str:
    """Fold all blanks and line ends into single spaces."""
    return " ".join(text.split())
