"""What an item is made from: its passages, and the spans of them that answer its question."""

from __future__ import annotations

from collections.abc import Sequence

from apps.datasets.generation.corpus import Passage
from apps.datasets.generation.spans import span_find
from apps.datasets.generation.work import Item, Work
from apps.datasets.records.record import Source


async def passages_of(work: Work, item: Item) -> list[Passage]:
    """Return the passages of an item that are still there and open to everybody, in their order."""
    return await work.passages.ask(item.chunks)


def gold_of(passages: Sequence[Passage], quotes: Sequence[str]) -> list[Source]:
    """Return where quotes stand in passages; a quote that stands nowhere is left out."""
    found: list[Source] = []
    for quote in quotes:
        for passage in passages:
            span = span_find(passage.text, quote)
            if span is not None:
                found.append(passage.source(*span))
                break
    return found
