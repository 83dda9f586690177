"""Text that was decoded wrongly somewhere before it came here: found by what it would be, and said to the owner."""

from __future__ import annotations

import re
from collections.abc import Iterable

from basics.texts import gettext as _
from basics.texts import number_told

_LOOKED_AT = 400_000  # characters
_LEAST = 3
_NOT_ASCII = re.compile(r"[^\x00-\x7f]{2,24}")
_LOST = "\ufffd"


def garbled_warning(texts: Iterable[str]) -> str:
    """Return a warning about letters that were garbled, "" where nothing looks so.

    Args:
        texts: of the pages, in order; the first ``400,000`` characters are looked at.
    """
    text = "".join(_within(texts))
    lost = text.count(_LOST)
    examples: list[tuple[str, str]] = []
    count = 0
    for match in _NOT_ASCII.finditer(text):
        meant = _meant(match.group())
        if meant is not None:
            count += 1
            if len(examples) < 2 and (match.group(), meant) not in examples:
                examples.append((match.group(), meant))
    if count >= _LEAST:
        shown = ", ".join(f"“{bad}” (“{good}”)" for bad, good in examples)
        return _(
            "Letters are garbled in %(count)s places of this text, for example %(shown)s: it was saved in a "
            "different encoding than it declares. Search finds them as they are. Save the file as UTF-8 and "
            "upload it again."
        ) % {"count": number_told(count), "shown": shown}
    if lost >= _LEAST:
        return _(
            "%(lost)s characters of this text could not be decoded and were replaced by “%(mark)s”. Save the "
            "file as UTF-8 and upload it again."
        ) % {"lost": number_told(lost), "mark": _LOST}
    return ""


def _within(texts: Iterable[str]) -> Iterable[str]:
    left = _LOOKED_AT
    for text in texts:
        if left <= 0:
            return
        yield text[:left]
        left -= len(text)


def _meant(text: str) -> str | None:
    """Undo the usual accident, UTF-8 read as Windows-1252 or Latin-1; None where that gives nothing."""
    for encoding in ("cp1252", "latin-1"):
        try:
            meant = text.encode(encoding).decode("utf-8")
        except UnicodeError:
            continue
        if meant != text and all(ch.isprintable() for ch in meant):
            return meant
    return None
