"""Cut a document into chunks that end where sentences, rows or lines end, each an exact slice of its text."""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

from apps.collections.ingestion.chunk_cuts import prose_pieces, trim
from apps.collections.ingestion.chunk_sections import Outline, Section, sections
from apps.collections.ingestion.chunk_tables import Piece, table_pieces
from apps.collections.ingestion.code.chunks import code_chunks
from apps.collections.ingestion.types import ChunkDraft, ExtractedDocument, Region

DEFAULT_SIZE = 1200
DEFAULT_OVERLAP = 200
MIN_SIZE = 200

_CAPTION = re.compile(r"(?:table|exhibit|annex|schedule|appendix|figure)\s+[\w.-]+\b", re.IGNORECASE)
_MAX_CAPTION = 200


@dataclass(frozen=True, slots=True)
class _Block:
    """A stretch that is cut by one rule; blocks never share a chunk."""

    start: int
    end: int
    section: Section
    region: Region | None = None


def chunk_document(
    document: ExtractedDocument, *, size: int = DEFAULT_SIZE, overlap: int = DEFAULT_OVERLAP, path: str = ""
) -> list[ChunkDraft]:
    """Cut a document into chunks; see ``chunks_iterate``."""
    return list(chunks_iterate(document, size=size, overlap=overlap, path=path))


def chunks_iterate(
    document: ExtractedDocument, *, size: int = DEFAULT_SIZE, overlap: int = DEFAULT_OVERLAP, path: str = ""
) -> Iterator[ChunkDraft]:
    """Cut a document into chunks, one after the other: besides the document, only the current one is held.

    Headings begin new chunks, except that small sections are gathered up to a third of ``size``; such a chunk
    carries the headings that its sections share, and their own titles in ``metadata["sections"]``. Prose is cut at
    paragraph or sentence ends, then at line ends, then between words. A table is always a chunk of its own (with
    the headings directly above it), cut between rows, then between cells; see ``chunk_tables``. Code is cut between
    lines. Pages marked as junk are left out. ``metadata["parent"]`` holds the offsets of the section or table that a
    chunk is a part of, where it is not all of it. Source files are cut by ``code_chunks``, without overlap.

    Args:
        document: what a reader made.
        size: largest chunk in characters; at least 200.
        overlap: characters of prose repeated from the chunk before; less than half of ``size``.
        path: of a source file in its tree; its definitions are named by it.

    Yields:
        Chunks in reading order; ``chunk.text == document.text[chunk.char_start:chunk.char_end]``.

    Raises:
        ValueError: sizes out of range.
    """
    if size < MIN_SIZE:
        raise ValueError(f"Chunk size is {size}; it must be at least {MIN_SIZE} characters.")
    if not 0 <= overlap < size / 2:
        raise ValueError(f"Chunk overlap is {overlap}; it must be from 0 to below half of {size}.")
    text = document.text
    if document.code is not None:
        yield from code_chunks(text, document.code, path=path, size=size)
        return
    furniture = [(r.char_start, r.char_end) for r in document.regions if r.kind == "furniture"]
    index = 0
    for block in _blocks(document, Outline(document), size):
        region = block.region
        for found in _pieces(text, block, size, overlap):
            piece = _without_furniture(text, found, furniture) if furniture else found
            if piece is None:
                continue
            metadata: dict[str, Any] = piece.metadata
            if block.section.titles:
                metadata["sections"] = list(block.section.titles)
            if (piece.start, piece.end) != trim(text, block.start, block.end):
                metadata["parent"] = [block.start, block.end]
            yield ChunkDraft(
                index=index,
                text=text[piece.start : piece.end],
                char_start=piece.start,
                char_end=piece.end,
                page_start=document.page_at(piece.start).number,
                page_end=document.page_at(piece.end - 1).number,
                headings=block.section.path,
                kind="table" if region is not None and region.kind == "table" else "doc",
                metadata=metadata,
            )
            index += 1


def _pieces(text: str, block: _Block, size: int, overlap: int) -> Iterator[Piece]:
    region = block.region
    if region is not None and region.kind == "table":
        yield from table_pieces(text, region, size)
        return
    if region is not None:
        for piece in table_pieces(text, replace(region, header="", rows=()), size):
            yield Piece(piece.start, piece.end, {"is_code": True})
        return
    for start, end in prose_pieces(text, block.start, block.end, size, overlap):
        start, end = trim(text, start, end)
        if start < end:
            yield Piece(start, end)


def _without_furniture(text: str, piece: Piece, furniture: list[tuple[int, int]]) -> Piece | None:
    """Take running headers and footers off the ends of a piece, and note those inside it."""
    start, end = piece.start, piece.end
    i = bisect_right(furniture, start, key=lambda f: f[1])
    while i < len(furniture) and furniture[i][0] <= start < end:
        start, end = trim(text, furniture[i][1], end)
        i += 1
    j = bisect_left(furniture, end, key=lambda f: f[0])
    while j > i and furniture[j - 1][1] >= end:
        start, end = trim(text, start, furniture[j - 1][0])
        j -= 1
    if start >= end:
        return None
    inside = [[a - start, min(b, end) - start] for a, b in furniture[i:j]]
    return Piece(start, end, {**piece.metadata, "furniture": inside} if inside else piece.metadata)


def _blocks(document: ExtractedDocument, outline: Outline, size: int) -> Iterator[_Block]:
    text = document.text
    regions = [r for r in document.regions if r.char_end > r.char_start and r.kind != "furniture"]
    ends = [r.char_end for r in regions]
    for section in sections(document, outline, size):
        position = section.start
        is_small = section.end - section.start <= size
        # Regions are in order and do not overlap: the first that reaches into the section begins the walk.
        i = bisect_left(ends, section.start + 1)
        while i < len(regions) and regions[i].char_start < section.end:
            region = _clipped(regions[i], section)
            i += 1
            # A short snippet of code stays with the prose that explains it, as long as the whole fits.
            if region.kind == "code" and is_small and _has_prose(text, section, region):
                continue
            start = region.char_start
            if text[position:start].strip():
                if region.kind == "table" and outline.is_bare(position, start):
                    start = position
                else:
                    yield _Block(position, start, _narrowed(outline, section, position, start))
            if region.kind == "table" and not region.caption:
                region = replace(region, caption=_caption(text, section.start, start))
            region = replace(region, char_start=start)
            path = outline.path_at(region.char_end - 1)
            yield _Block(start, region.char_end, Section(start, region.char_end, path), region)
            position = region.char_end
        if text[position : section.end].strip():
            yield _Block(position, section.end, _narrowed(outline, section, position, section.end))


def _clipped(region: Region, section: Section) -> Region:
    """Cut off what a heading inside the region (never a reader's of ours) would give to another section."""
    if section.start <= region.char_start and region.char_end <= section.end:
        return region
    return replace(
        region, char_start=max(region.char_start, section.start), char_end=min(region.char_end, section.end)
    )


def _has_prose(text: str, section: Section, region: Region) -> bool:
    return bool(
        text[section.start : region.char_start].strip() or text[region.char_end : section.end].strip()
    )


def _narrowed(outline: Outline, section: Section, start: int, end: int) -> Section:
    """Name a part of gathered sections by those that stand in it."""
    if not section.titles or (start, end) == (section.start, section.end):
        return section
    paths = [outline.path_at(a) for a, _ in outline.pieces(start, end)]
    if len(set(paths)) == 1:
        return Section(start, end, paths[0])
    titles = dict.fromkeys(path[-1] for path in paths if len(path) > len(section.path))
    return Section(start, end, section.path, tuple(titles))


def _caption(text: str, low: int, start: int) -> str:
    """Find the line that names a table: the last one above it, if it calls itself a table or ends in a colon."""
    above = text[max(low, start - 2 * _MAX_CAPTION) : start].rstrip()
    line = above[above.rfind("\n") + 1 :].strip().strip("*_#").strip()
    if 0 < len(line) <= _MAX_CAPTION and (_CAPTION.match(line) or line.endswith(":")):
        return line
    return ""
