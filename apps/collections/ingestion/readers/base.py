"""What a reader is, and the helpers that several formats share."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from itertools import pairwise
from pathlib import Path
from typing import Any, Protocol

from apps.collections.ingestion.types import FailureCode, Heading, PageText, ReaderLimits, ReadFailure, Region
from basics.texts import gettext as _
from basics.texts import number_told

PART_CHARS = 40_000
MAX_HEADER = 100_000  # characters of a table's header: every part of the table carries it over the wire
_FORBIDDEN = re.compile("[\x00-\x08\x0e-\x1f\x7f\ud800-\udfff\ufffe\uffff]")


@dataclass(slots=True)
class Reading:
    """An opened file: what is known at once, and its pages as they come.

    Attributes:
        page_count: number of pages that ``pages`` will yield at most.
        pages: lazily read; may raise ``ReadFailure``.
        is_paged: False for formats without pages.
        warnings: may grow until the last page is read.
    """

    page_count: int
    pages: Iterator[PageText]
    is_paged: bool = True
    title: str = ""
    warnings: list[str] = field(default_factory=list)
    metadata: dict[str, Any] = field(default_factory=dict)


class Reader(Protocol):
    """Reads one format. It runs in the limited child process and imports its libraries there only.

    Attributes:
        media_types: what it reads, for people; ``_READERS`` decides which reader a file gets.
    """

    media_types: tuple[str, ...]

    def read(self, path: Path, limits: ReaderLimits) -> Reading:
        """Open the file.

        Raises:
            ReadFailure: it is encrypted, corrupt, empty of text or beyond a limit.
        """


def clean_text(text: str) -> str:
    """Give newlines one form and drop what Postgres or UTF-8 refuses (NUL, lone surrogates) and control codes."""
    return _FORBIDDEN.sub("", text.replace("\r\n", "\n").replace("\r", "\n"))


def decode_bytes(data: bytes) -> str:
    """Decode text of unknown encoding: byte order mark, UTF-8, UTF-16 without mark, then Windows-1252."""
    if data.startswith(b"\xef\xbb\xbf"):
        return data.decode("utf-8-sig", errors="replace")
    if data.startswith((b"\xff\xfe\x00\x00", b"\x00\x00\xfe\xff")):
        return data.decode("utf-32", errors="replace")
    if data.startswith((b"\xff\xfe", b"\xfe\xff")):
        return data.decode("utf-16", errors="replace")
    sample = data[:4096]
    half = max(1, len(sample) // 2)
    if sample[1::2].count(0) > half * 0.4:
        return data.decode("utf-16-le", errors="replace")
    if sample[::2].count(0) > half * 0.4:
        return data.decode("utf-16-be", errors="replace")
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError:
        return data.decode("cp1252", errors="replace")


def read_text(path: Path, limits: ReaderLimits) -> str:
    """Read and clean a text file.

    Raises:
        ReadFailure: ``no_text`` when nothing but blanks is left, ``too_large`` beyond ``max_chars``.
    """
    text = clean_text(decode_bytes(path.read_bytes()))
    require_text(text, limits)
    return text


def require_text(text: str, limits: ReaderLimits) -> None:
    """Refuse text without a single letter or digit, or with too many characters."""
    if not any(ch.isalnum() for ch in text):
        raise ReadFailure(
            FailureCode.NO_TEXT, _("No readable text was found in this file. Check its content.")
        )
    if len(text) > limits.max_chars:
        raise ReadFailure(
            FailureCode.TOO_LARGE,
            _("The file holds %(text)s characters of text; the limit is %(max_chars)s. Split it.")
            % {"text": number_told(len(text)), "max_chars": number_told(limits.max_chars)},
        )


def split_parts(text: str, headings: list[Heading], regions: list[Region]) -> Iterator[PageText]:
    """Cut a document without pages into parts of about ``PART_CHARS`` that concatenate to the same text.

    A cut falls before a heading or at a blank line where possible, at a line end otherwise, and never inside a
    region except between its rows.
    """
    bounds = [0, *_cuts(text, headings, regions), len(text)]
    for number, (start, end) in enumerate(pairwise(bounds), start=1):
        yield PageText(
            number=number,
            text=text[start:end],
            headings=tuple(
                Heading(h.title, h.level, h.char_start - start, h.char_end - start)
                for h in _between(headings, start, end)
            ),
            regions=tuple(_clip(r, start, end) for r in _overlapping(regions, start, end)),
        )


def text_reading(source: str, why: str) -> Reading:
    """Return a damaged file as plain text, with a warning that says why."""
    parts = list(split_parts(source, [], []))
    reading = Reading(len(parts), iter(parts), is_paged=False)
    reading.warnings.append(_("The file was read as plain text, because %(why)s.") % {"why": why})
    return reading


def _cuts(text: str, headings: list[Heading], regions: list[Region]) -> Iterator[int]:
    position = 0
    while len(text) - position > PART_CHARS * 1.5:
        low, high = position + PART_CHARS // 2, position + PART_CHARS
        inside = _region_lookup(regions, low, high)
        heads = [h.char_start for h in _between(headings, low, high) if not inside(h.char_start)]
        position = heads[-1] if heads else _line_cut(text, low, high, inside)
        yield position


def _between(headings: list[Heading], start: int, end: int) -> list[Heading]:
    low = bisect_left(headings, start, key=lambda h: h.char_start)
    return headings[low : bisect_left(headings, end, key=lambda h: h.char_start)]


def _overlapping(regions: list[Region], start: int, end: int) -> list[Region]:
    # Regions are in order and do not overlap, so their ends are in order too.
    low = bisect_left(regions, start + 1, key=lambda r: r.char_end)
    return regions[low : bisect_left(regions, end, key=lambda r: r.char_start)]


def _region_lookup(regions: list[Region], low: int, high: int) -> Callable[[int], bool]:
    near = _overlapping(regions, low, high)

    def inside(offset: int) -> bool:
        return any(
            r.char_start < offset < r.char_end and (offset < r.body_start or not _is_row_start(r, offset))
            for r in near
        )

    return inside


def _is_row_start(region: Region, offset: int) -> bool:
    i = bisect_left(region.row_starts, offset)
    return i < len(region.row_starts) and region.row_starts[i] == offset


def _line_cut(text: str, low: int, high: int, inside: Callable[[int], bool]) -> int:
    for mark in ("\n\n", "\n"):
        found = text.rfind(mark, low, high)
        while found != -1:
            if not inside(found + len(mark)):
                return found + len(mark)
            found = text.rfind(mark, low, found)
    return high


def _clip(region: Region, start: int, end: int) -> Region:
    low, high = max(region.char_start, start), min(region.char_end, end)
    first = bisect_left(region.row_starts, low)
    last = bisect_left(region.row_starts, high)
    return replace(
        region,
        char_start=low - start,
        char_end=high - start,
        row_starts=tuple(row - start for row in region.row_starts[first:last]),
        body_start=max(region.body_start, low) - start,
        rows=region.rows[first:last],
    )
