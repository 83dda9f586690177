"""Markdown: kept as written, with its headings, tables and fenced code marked by offsets."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from apps.collections.ingestion import media_types
from apps.collections.ingestion.readers.base import MAX_HEADER, Reading, read_text, split_parts
from apps.collections.ingestion.types import Heading, ReaderLimits, Region

_FENCE = re.compile(r"^ {0,3}(`{3,}|~{3,})")
_ATX = re.compile(r"^ {0,3}(#{1,6})[ \t]+(.*)$")
_MAX_TITLE = 500
_SETEXT = re.compile(r"^ {0,3}(=+|-{2,})[ \t]*$")
_DELIMITER = re.compile(r"^ {0,3}\|?[ \t]*:?-+:?[ \t]*(\|[ \t]*:?-+:?[ \t]*)*\|?[ \t]*$")
_MARKUP = re.compile(r"!?\[([^\]]*)\]\([^)]*\)|[*_`]{1,3}(?=\S)|(?<=\S)[*_`]{1,3}")
_FRONT_MATTER_TITLE = re.compile(r"^title:[ \t]*[\"']?(.+?)[\"']?[ \t]*$", re.MULTILINE)


class MarkdownReader:
    """Read Markdown; the document's text is the file's own."""

    media_types = (media_types.MARKDOWN,)

    def read(self, path: Path, limits: ReaderLimits) -> Reading:
        """Open the file and mark its structure."""
        return markdown_reading(read_text(path, limits))


def markdown_reading(text: str, *, title: str = "") -> Reading:
    """Turn Markdown text into parts with headings and regions; the first level-1 heading names the document."""
    headings, regions = markdown_structure(text)
    parts = list(split_parts(text, headings, regions))
    if not title:
        title = _front_matter_title(text) or next((h.title for h in headings if h.level == 1), "")
    return Reading(len(parts), iter(parts), is_paged=False, title=title)


def markdown_structure(text: str) -> tuple[list[Heading], list[Region]]:
    """Find the headings (ATX, setext), tables and fenced code blocks of a Markdown text, with offsets."""
    headings: list[Heading] = []
    regions: list[Region] = []
    lines = list(_lines(text))
    i = _front_matter_lines(lines)
    previous_blank = True
    while i < len(lines):
        start, end, line = lines[i]
        if fence := _FENCE.match(line):
            stop = _fence_end(lines, i, fence.group(1))
            regions.append(
                Region(
                    "code",
                    start,
                    lines[stop - 1][1],
                    row_starts=tuple(row[0] for row in lines[i:stop]),
                    body_start=start,
                )
            )
            i, previous_blank = stop, True
            continue
        if atx := _ATX.match(line):
            if shown := plain_line(atx.group(2).rstrip().rstrip("#")):
                headings.append(Heading(shown, len(atx.group(1)), start, end))
        elif _is_table(lines, i):
            stop = i + 2
            while stop < len(lines) and lines[stop][2].strip() and "|" in lines[stop][2]:
                stop += 1
            regions.append(_table(text, lines, i, stop))
            i, previous_blank = stop, True
            continue
        elif _is_setext(lines, i, previous_blank):
            level = 1 if "=" in lines[i + 1][2] else 2
            headings.append(Heading(plain_line(line), level, start, lines[i + 1][1]))
            i += 2
            previous_blank = True
            continue
        previous_blank = not line.strip()
        i += 1
    return headings, regions


def plain_line(line: str) -> str:
    """Strip inline Markdown (emphasis, code marks, links) from one line."""
    return " ".join(_MARKUP.sub(lambda m: m.group(1) or "", line[:_MAX_TITLE]).split())


def _lines(text: str) -> Iterator[tuple[int, int, str]]:
    position = 0
    for line in text.split("\n"):
        yield position, min(position + len(line) + 1, len(text)), line
        position += len(line) + 1


def _front_matter_lines(lines: list[tuple[int, int, str]]) -> int:
    if lines and lines[0][2].rstrip() == "---":
        for i in range(1, min(len(lines), 60)):
            if lines[i][2].rstrip() in ("---", "..."):
                return i + 1
    return 0


def _front_matter_title(text: str) -> str:
    lines = list(_lines(text[:8000]))
    count = _front_matter_lines(lines)
    if not count:
        return ""
    match = _FRONT_MATTER_TITLE.search("\n".join(line for _, _, line in lines[1 : count - 1]))
    return match.group(1) if match else ""


def _fence_end(lines: list[tuple[int, int, str]], i: int, mark: str) -> int:
    closing = re.compile(rf"^ {{0,3}}{re.escape(mark[0])}{{{len(mark)},}}[ \t]*$")
    for j in range(i + 1, len(lines)):
        if closing.match(lines[j][2]):
            return j + 1
    return len(lines)


def _is_table(lines: list[tuple[int, int, str]], i: int) -> bool:
    if i + 1 >= len(lines) or "|" not in lines[i][2]:
        return False
    return "|" in lines[i + 1][2] and _DELIMITER.match(lines[i + 1][2]) is not None


def _table(text: str, lines: list[tuple[int, int, str]], i: int, stop: int) -> Region:
    body = lines[i + 2][0] if stop > i + 2 else lines[i + 1][1]
    return Region(
        "table",
        lines[i][0],
        lines[stop - 1][1],
        row_starts=(lines[i][0], *(row[0] for row in lines[i + 2 : stop])),
        body_start=body,
        header=text[lines[i][0] : lines[i + 1][1]].rstrip("\n")[:MAX_HEADER],
        columns=lines[i + 1][2].strip().strip("|").count("|") + 1,
        delimiter="|",
    )


def _is_setext(lines: list[tuple[int, int, str]], i: int, previous_blank: bool) -> bool:
    line = lines[i][2]
    return (
        previous_blank
        and bool(line.strip())
        and not line.startswith((" ", "\t", "-", "*", ">", "|"))
        and i + 1 < len(lines)
        and _SETEXT.match(lines[i + 1][2]) is not None
    )
