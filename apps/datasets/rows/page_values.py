"""Read what the address or a form of a page says; what makes no sense counts as nothing."""

from __future__ import annotations

from collections.abc import Iterable


def number(text: str) -> int:
    """Return an id, 0 for what is none."""
    return int(text) if text.isascii() and text.isdecimal() and len(text) < 19 else 0


def numbers(texts: Iterable[str]) -> list[int]:
    """Return the ids among texts, each once."""
    return list(dict.fromkeys(n for n in map(number, texts) if n))
