"""What the pages of collections share."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any

from django.http import HttpRequest

from apps.collections.display import selectors
from apps.collections.ingestion.lexical import query_terms
from apps.collections.ingestion.word_parts import UNSPACED, letters
from basics.errors import Missing
from web.requests import TenantRequest

# A word, or letters of a script that puts no space between words.
_WORD = re.compile(rf"[^\s{UNSPACED}]+|(?P<unspaced>[{UNSPACED}]+)")
_LONGEST = 200


def section(request: TenantRequest, collection: Any, tab: str) -> dict[str, Any]:
    """Return what every page of one collection shows around its own part.

    Raises:
        Missing: the collection was deleted in the meantime.
    """
    collections: list[Any] = list(selectors.collection_list(actor=request.actor))
    counted = next((row for row in collections if row.pk == collection.pk), None)
    if counted is None:
        raise Missing("collection")
    return {
        "collection": counted,
        "collections": collections,
        "tab": tab,
        "can_write": request.actor.can("document.write"),
        "can_manage": request.actor.can("collection.delete"),
        "embedding_label": str(counted.space),
        "page_total": counted.page_total,
    }


def chosen(request: HttpRequest, *names: str) -> dict[str, str]:
    """Return parameters of the address as short clean text."""
    return {name: clean(request.GET.get(name, "")) for name in names}


def clean(value: str) -> str:
    """Return text that a database can look for."""
    return value.replace("\x00", "").strip()[:_LONGEST]


def segments_of(text: str, q: str, forms: Sequence[str]) -> list[dict[str, Any]]:
    """Cut a text into parts that hold words of a question (by their stems) and parts that do not."""
    wanted = set(query_terms(q, forms))
    segments: list[dict[str, Any]] = []
    position = 0
    for start, end in _matches(text, wanted, forms):
        if start > position:
            segments.append({"text": text[position:start], "is_match": False})
        if start < position:  # pairs of letters overlap
            segments[-1]["text"] += text[position:end]
        else:
            segments.append({"text": text[start:end], "is_match": True})
        position = end
    segments.append({"text": text[position:], "is_match": False})
    return segments


def _matches(text: str, wanted: set[str], forms: Sequence[str]) -> Iterator[tuple[int, int]]:
    for match in _WORD.finditer(text):
        if match["unspaced"] is None:
            if not wanted.isdisjoint(query_terms(match.group(), forms)):
                yield match.span()
            continue
        found = [(match.start() + at, letter) for at, letter in letters(match.group())]
        for (start, one), (next_start, two) in pairwise(found):
            if one + two in wanted:
                yield start, next_start + len(two)


def table_of(metadata: dict[str, Any]) -> list[list[str]]:
    """Return the rows of a table chunk, cell by cell, its column header first; empty where the text is all there is."""
    rows = str(metadata.get("table_rows", ""))
    if not rows:
        return []
    header = str(metadata.get("table_header", ""))
    lines = [line.strip() for line in [*header.splitlines(), *rows.splitlines()]]
    cells = [
        [cell.strip().replace("\\|", "|") for cell in re.split(r"(?<!\\)\|", line.strip("|"))]
        for line in lines
        if line and not re.fullmatch(r"[|:\-\s]+", line)
    ]
    width = max((len(row) for row in cells), default=0)
    return [row + [""] * (width - len(row)) for row in cells]


def headings_of(headings: list[str], metadata: dict[str, Any]) -> list[str]:
    """Return the heading path to show; a chunk gathered from several small sections ends in their titles."""
    sections = [str(title) for title in metadata.get("sections", [])]
    return [*headings, " · ".join(sections)] if sections else list(headings)


def chunk_dress(chunk: Any) -> Any:
    """Give a chunk what its card shows besides: ``table`` and ``path_shown``."""
    chunk.table = [] if chunk.is_edited else table_of(chunk.metadata)
    chunk.path_shown = headings_of(chunk.headings, chunk.metadata)
    return chunk
