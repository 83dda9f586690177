"""Cut a document into chunks that end where sentences, rows or lines end, each an exact slice of its text."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Literal

from apps.collections.ingestion.types import ChunkDraft, ExtractedDocument, Heading, Region

DEFAULT_SIZE = 1200
DEFAULT_OVERLAP = 200
MIN_SIZE = 200

_PARAGRAPH = re.compile(r"\n[ \t]*\n\s*")
_SENTENCE = re.compile(r"[.!?…。！？][\"'”’)\]]*(?=\s)\s*|[。！？]")
_WORD_BEFORE = re.compile(r"[\w.]+\Z")
_ABBREVIATIONS = frozenset(
    [
        "no",
        "nos",
        "mr",
        "mrs",
        "ms",
        "dr",
        "prof",
        "sr",
        "jr",
        "st",
        "vs",
        "etc",
        "e.g",
        "i.e",
        "cf",
        "al",
        "fig",
        "figs",
        "eq",
        "sec",
        "secs",
        "art",
        "arts",
        "para",
        "paras",
        "subpara",
        "ch",
        "chap",
        "vol",
        "vols",
        "pp",
        "p",
        "ed",
        "eds",
        "inc",
        "ltd",
        "co",
        "corp",
        "dept",
        "approx",
        "est",
        "u.s",
        "u.k",
        "u.n",
        "d.c",
        "a.m",
        "p.m",
        "jan",
        "feb",
        "mar",
        "apr",
        "jun",
        "jul",
        "aug",
        "sep",
        "sept",
        "oct",
        "nov",
        "dec",
        "stat",
        "reg",
        "fed",
        "cong",
        "ref",
        "refs",
        "supp",
        "rev",
    ]
)


@dataclass(frozen=True, slots=True)
class _Block:
    """A stretch that is cut by one rule; blocks never share a chunk."""

    start: int
    end: int
    headings: tuple[str, ...]
    region: Region | None = None


def chunk_document(
    document: ExtractedDocument, *, size: int = DEFAULT_SIZE, overlap: int = DEFAULT_OVERLAP
) -> list[ChunkDraft]:
    """Cut a document into chunks.

    Headings begin new chunks, except that small sections are gathered up to a third of ``size``. Prose is cut at
    paragraph or sentence ends, then at line ends, then between words. Tables and code are cut between rows and
    lines only, and a part of a split table without its header carries it in ``metadata["table_header"]``, cut to
    half of ``size``. Pages marked as junk are left out.

    Args:
        document: what a reader made.
        size: largest chunk in characters; at least 200.
        overlap: characters of prose repeated from the chunk before; less than half of ``size``.

    Returns:
        Chunks in reading order; ``chunk.text == document.text[chunk.char_start:chunk.char_end]``.

    Raises:
        ValueError: sizes out of range.
    """
    if size < MIN_SIZE:
        raise ValueError(f"Chunk size is {size}; it must be at least {MIN_SIZE} characters.")
    if not 0 <= overlap < size / 2:
        raise ValueError(f"Chunk overlap is {overlap}; it must be from 0 to below half of {size}.")
    text = document.text
    chunks: list[ChunkDraft] = []
    for block in _blocks(document, size):
        kind: Literal["text", "table", "code"] = block.region.kind if block.region else "text"
        pieces = (
            _row_pieces(text, block.region, size)
            if block.region
            else _prose_pieces(text, block.start, block.end, size, overlap)
        )
        for start, end in pieces:
            start, end = _trim(text, start, end)
            if start >= end:
                continue
            metadata: dict[str, Any] = {}
            if block.region and block.region.header and start >= block.region.body_start:
                metadata["table_header"] = _carried(block.region.header, size)
            chunks.append(
                ChunkDraft(
                    index=len(chunks),
                    text=text[start:end],
                    char_start=start,
                    char_end=end,
                    page_start=document.page_at(start).number,
                    page_end=document.page_at(end - 1).number,
                    headings=block.headings,
                    kind=kind,
                    metadata=metadata,
                )
            )
    return chunks


def _blocks(document: ExtractedDocument, size: int) -> Iterator[_Block]:
    text = document.text
    regions = [r for r in document.regions if r.char_end > r.char_start]
    for span_start, span_end, path in _sections(document, size):
        position = span_start
        first = bisect_left(regions, span_start, key=lambda r: r.char_start)
        for region in regions[first:]:
            if region.char_start >= span_end:
                break
            # A short table or snippet stays with the prose that explains it, as long as the whole fits.
            if span_end - span_start <= size:
                continue
            if text[position : region.char_start].strip():
                yield _Block(position, region.char_start, path)
            yield _Block(region.char_start, region.char_end, path, region)
            position = region.char_end
        if text[position:span_end].strip():
            yield _only_region(regions, position, span_end, path) or _Block(
                position, span_end, path
            )


def _only_region(
    regions: list[Region], start: int, end: int, path: tuple[str, ...]
) -> _Block | None:
    for region in regions:
        if region.char_start <= start and end <= region.char_end:
            return _Block(start, end, path, region)
    return None


def _sections(document: ExtractedDocument, size: int) -> Iterator[tuple[int, int, tuple[str, ...]]]:
    """Cut the pages that count at their headings; gather small sections while they fit together."""
    for start, end in _live_spans(document):
        pending: tuple[int, int, tuple[str, ...]] | None = None
        for section_start, section_end, path in _heading_spans(document, start, end):
            if pending is not None:
                small = pending[1] - pending[0] < size // 3
                if small and section_end - pending[0] <= size:
                    shared = _joined_path(document, pending, path)
                    pending = (pending[0], section_end, shared)
                    continue
                if _is_bare_heading(document, pending[0], pending[1]):
                    # A heading alone says nothing: it opens the first chunk of the section under it.
                    pending = (pending[0], section_end, path)
                    continue
                yield pending
            pending = (section_start, section_end, path)
        if pending is not None:
            yield pending


def _joined_path(
    document: ExtractedDocument, pending: tuple[int, int, tuple[str, ...]], path: tuple[str, ...]
) -> tuple[str, ...]:
    if _is_bare_heading(document, pending[0], pending[1]):
        return path
    shared: list[str] = []
    for mine, other in zip(pending[2], path, strict=False):
        if mine != other:
            break
        shared.append(mine)
    return tuple(shared) or pending[2]


def _is_bare_heading(document: ExtractedDocument, start: int, end: int) -> bool:
    position = start
    for heading in _headings_between(document, start, end):
        if document.text[position : heading.char_start].strip():
            return False
        position = heading.char_end
    return not document.text[position:end].strip()


def _headings_between(document: ExtractedDocument, start: int, end: int) -> tuple[Heading, ...]:
    headings = document.headings
    low = bisect_left(headings, start, key=lambda h: h.char_start)
    high = bisect_left(headings, end, key=lambda h: h.char_start)
    return headings[low:high]


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


def _heading_spans(
    document: ExtractedDocument, start: int, end: int
) -> Iterator[tuple[int, int, tuple[str, ...]]]:
    """Cut a run at its headings and name for each piece the path of headings above it."""
    stack: list[Heading] = []
    for heading in document.headings:
        if heading.char_start >= start:
            break
        _push(stack, heading)
    inside = _headings_between(document, start, end)
    bounds = [h.char_start for h in inside]
    if not bounds or bounds[0] > start:
        yield start, bounds[0] if bounds else end, tuple(h.title for h in stack)
    for i, heading in enumerate(inside):
        _push(stack, heading)
        stop = bounds[i + 1] if i + 1 < len(bounds) else end
        yield heading.char_start, stop, tuple(h.title for h in stack)


def _push(stack: list[Heading], heading: Heading) -> None:
    while stack and stack[-1].level >= heading.level:
        stack.pop()
    stack.append(heading)


def _row_pieces(text: str, region: Region, size: int) -> Iterator[tuple[int, int]]:
    """Pack whole rows; a row longer than ``size`` is cut like prose without overlap."""
    if region.char_end - region.char_start <= size:
        yield region.char_start, region.char_end
        return
    # The header travels with each part, so it counts against the part's size (never by more than half).
    room = size - min(len(region.header), size // 2) if region.header else size
    bounds = sorted({region.char_start, *region.row_starts, region.char_end})
    start = bounds[0]
    for row, after in pairwise(bounds):
        if after - start > (size if start < region.body_start else room) and row > start:
            yield start, row
            start = row
        if after - start > size:
            yield from _prose_pieces(text, start, after, size, 0)
            start = after
    if start < region.char_end:
        yield start, region.char_end


def _carried(header: str, size: int) -> str:
    """Cut a header that would outweigh the part it goes with: tables of thousands of columns exist."""
    return header if len(header) <= size // 2 else header[: size // 2].rsplit(None, 1)[0]


def _prose_pieces(
    text: str, start: int, end: int, size: int, overlap: int
) -> Iterator[tuple[int, int]]:
    start, end = _trim(text, start, end)
    while end - start > size:
        cut = _best_cut(text, start, start + size)
        yield start, cut
        # Whatever is left after this cut must be new text: an overlap longer than the rest is pointless.
        start = max(_overlap_start(text, start, cut, overlap), start + 1)
        start, _ = _trim(text, start, end)
    if end > start:
        yield start, end


def _best_cut(text: str, start: int, limit: int) -> int:
    """Find the best end in the later half of the window: paragraph, sentence, line, word, anywhere."""
    low = start + (limit - start) // 2
    window = text[low : limit + 1]
    paragraphs = [low + m.end() for m in _PARAGRAPH.finditer(window) if low + m.start() <= limit]
    if (
        paragraphs
        and _is_end(text, paragraphs[-1])
        and paragraphs[-1] > start + (limit - start) * 0.7
    ):
        return min(paragraphs[-1], limit)
    sentences = [cut for cut in _sentence_ends(text, low, limit) if cut <= limit]
    if sentences:
        return sentences[-1]
    if paragraphs:
        return min(paragraphs[-1], limit)
    for mark in ("\n", "; ", " "):
        found = text.rfind(mark, low, limit)
        if found != -1:
            return found + len(mark)
    found = max(text.rfind(mark, start + 1, low) for mark in ("\n", " "))
    return found + 1 if found > start else limit


def _is_end(text: str, offset: int) -> bool:
    return text[max(0, offset - 400) : offset].rstrip()[-1:] in {".", "!", "?", "…"}


def _sentence_ends(text: str, low: int, high: int) -> Iterator[int]:
    """Yield offsets just past a sentence and its blanks, between ``low`` and ``high``."""
    for match in _SENTENCE.finditer(text, low, min(len(text), high + 1)):
        end = match.end()
        following = text[end : end + 1]
        if following and (following.islower() or following in ",;:)"):
            continue
        if text[match.start()] == ".":
            before = _WORD_BEFORE.search(text, max(0, match.start() - 24), match.start())
            word = before.group().lower().strip(".") if before else ""
            is_initial = len(word) == 1 and word.isalpha()
            is_list_number = word.isdigit() and _starts_line(text, match.start() - len(word))
            if word in _ABBREVIATIONS or is_initial or is_list_number:
                continue
        yield end


def _starts_line(text: str, offset: int) -> bool:
    return offset <= 0 or text[max(0, text.rfind("\n", 0, offset) + 1) : offset].strip() == ""


def _overlap_start(text: str, start: int, cut: int, overlap: int) -> int:
    """Choose where the next chunk begins: at a sentence or line start at most ``overlap`` before the cut."""
    if overlap <= 0:
        return cut
    low = max(start + 1, cut - overlap)
    starts = [s for s in _sentence_ends(text, low, cut) if s < cut]
    if starts:
        return starts[0]
    for mark in ("\n", " "):
        found = text.find(mark, low, cut - 1)
        if found != -1:
            return found + 1
    return cut


def _trim(text: str, start: int, end: int) -> tuple[int, int]:
    while start < end and text[start].isspace():
        start += 1
    while end > start and text[end - 1].isspace():
        end -= 1
    return start, end
