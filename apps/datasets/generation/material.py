"""What an item is made from: its passages, and the spans of them that answer its question."""

from __future__ import annotations

from collections.abc import Sequence

from apps.datasets.generation.corpus import CorpusPassage
from apps.datasets.generation.spans import span_find
from apps.datasets.generation.work import Item, Work
from apps.datasets.records.parts import RecordSource


async def passages_of(work: Work, item: Item) -> list[CorpusPassage]:
    """Return the passages of an item that are still there and open to everybody, in their order."""
    return await work.passages.ask(item.chunks)


def gold_of(passages: Sequence[CorpusPassage], quotes: Sequence[str]) -> list[RecordSource]:
    """Return where quotes stand in passages; a quote that stands nowhere is left out."""
    found: list[RecordSource] = []
    for quote in quotes:
        for passage in passages:
            span = span_find(passage.text, quote)
            if span is not None:
                found.append(passage.source(*span))
                break
    return found
