"""Sections of a document: runs of pages that count, cut at their headings, small ones gathered."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

from apps.collections.ingestion.types import ExtractedDocument, Heading

Path = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Section:
    """One section, or several small ones that share a chunk.

    Attributes:
        start: first character.
        end: just past the last.
        path: titles of the headings above all of it.
        titles: what the gathered sections are called, below ``path``; empty for a single one.
    """

    start: int
    end: int
    path: Path
    titles: tuple[str, ...] = ()


class Outline:
    """The headings of a document, and for each offset the path of headings above it."""

    def __init__(self, document: ExtractedDocument) -> None:
        self._text = document.text
        self._headings = document.headings
        self._starts = [h.char_start for h in self._headings]
        self._paths = list(_paths(self._headings))

    def path_at(self, offset: int) -> Path:
        """Name the headings above an offset, the outermost first."""
        i = bisect_right(self._starts, offset) - 1
        return self._paths[i] if i >= 0 else ()

    def pieces(self, start: int, end: int) -> Iterator[tuple[int, int]]:
        """Cut a stretch at the headings inside it."""
        low, high = bisect_left(self._starts, start), bisect_left(self._starts, end)
        bounds = [start, *self._starts[low:high], end]
        return ((a, b) for a, b in pairwise(bounds) if a < b)

    def is_bare(self, start: int, end: int) -> bool:
        """Tell whether nothing but headings stands in a stretch."""
        position = start
        low, high = bisect_left(self._starts, start), bisect_left(self._starts, end)
        for heading in self._headings[low:high]:
            if self._text[position : heading.char_start].strip():
                return False
            position = heading.char_end
        return not self._text[position:end].strip()


def sections(document: ExtractedDocument, outline: Outline, size: int) -> Iterator[Section]:
    """Cut the pages that count at their headings; gather small sections while they fit together.

    Args:
        document: what a reader made.
        outline: of the same document.
        size: largest chunk in characters; sections under a third of it are gathered.
    """
    for start, end in _live_spans(document):
        pending: list[tuple[int, int]] = []
        for piece in outline.pieces(start, end):
            if pending and not _goes_along(outline, pending, piece, size):
                yield _gathered(outline, pending)
                pending = []
            pending.append(piece)
        if pending:
            yield _gathered(outline, pending)


def _goes_along(outline: Outline, pending: list[tuple[int, int]], piece: tuple[int, int], size: int) -> bool:
    start, end = pending[0][0], pending[-1][1]
    if end - start < size // 3 and piece[1] - start <= size:
        return True
    # A heading alone says nothing: it opens the first chunk of the section under it.
    return outline.is_bare(start, end)


def _gathered(outline: Outline, pieces: list[tuple[int, int]]) -> Section:
    start, end = pieces[0][0], pieces[-1][1]
    paths = [outline.path_at(a) for a, _ in pieces]
    # A bare heading above the next one is told by that one's path already.
    told = [
        path
        for i, (path, piece) in enumerate(zip(paths, pieces, strict=True))
        if not (
            i + 1 < len(paths) and path == paths[i + 1][: len(path)] and outline.is_bare(piece[0], piece[1])
        )
    ]
    if len(told) == 1:
        return Section(start, end, told[0])
    shared = _shared(told)
    titles = dict.fromkeys(path[-1] for path in told if len(path) > len(shared))
    return Section(start, end, shared, tuple(titles))


def _shared(paths: list[Path]) -> Path:
    shared: list[str] = []
    for level in zip(*paths, strict=False):
        if len(set(level)) > 1:
            break
        shared.append(level[0])
    return tuple(shared)


def _live_spans(document: ExtractedDocument) -> Iterator[tuple[int, int]]:
    """Yield maximal runs of pages that are not junk, as offsets."""
    start: int | None = None
    for offset, page in zip(document.page_starts, document.pages, strict=True):
        if page.junk is None:
            start = offset if start is None else start
        elif start is not None:
            yield start, offset
            start = None
    if start is not None:
        yield start, len(document.text)


def _paths(headings: tuple[Heading, ...]) -> Iterator[Path]:
    stack: list[Heading] = []
    for heading in headings:
        while stack and stack[-1].level >= heading.level:
            stack.pop()
        stack.append(heading)
        yield tuple(h.title for h in stack)
