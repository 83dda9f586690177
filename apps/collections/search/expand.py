"""Neighbours of passages: what stands before and after them in their documents."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

from django.db.models import Q

from apps.collections.models import Chunk
from apps.collections.search.types import SearchHit


class _Neighbour(NamedTuple):
    text: str
    char_start: int
    char_end: int
    is_edited: bool


def hits_expand(hits: Sequence[SearchHit], reach: int) -> list[SearchHit]:
    """Give each hit the texts of up to ``reach`` chunks before and after it, in one query.

    Neighbours share an overlap; what a neighbour repeats of the chunk next to it is left out. A neighbour that is a hit
    itself is given all the same: whoever shows both may leave one out. Disabled chunks are not given.
    """
    wanted = Q(pk__in=[])
    for hit in hits:
        around = range(max(0, hit.index - reach), hit.index + reach + 1)
        wanted |= Q(document_id=hit.document_id, index__in=list(around))
    rows = Chunk.objects.filter(wanted, is_disabled=False).values_list(
        "document_id", "index", "text", "char_start", "char_end", "is_edited"
    )
    found = {(row[0], row[1]): _Neighbour(row[2], row[3], row[4], row[5]) for row in rows}
    return [
        replace(hit, before=_side(hit, found, reach, -1), after=_side(hit, found, reach, 1)) for hit in hits
    ]


def _side(
    hit: SearchHit, found: Mapping[tuple[int, int], _Neighbour], reach: int, step: int
) -> tuple[str, ...]:
    texts: list[str] = []
    start, end = hit.char_start, hit.char_end
    for distance in range(1, reach + 1):
        row = found.get((hit.document_id, hit.index + step * distance))
        if row is None:
            break
        text = row.text
        if not row.is_edited:  # offsets say nothing about an edited text
            cut = (start if step < 0 else end) - row.char_start
            text = text[: max(0, cut)] if step < 0 else text[max(0, cut) :]
        start, end = min(start, row.char_start), max(end, row.char_end)
        texts.append(text.strip())
    return tuple(text for text in (reversed(texts) if step < 0 else texts) if text)
