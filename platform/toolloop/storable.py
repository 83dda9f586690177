"""Make what models and tools produce fit for Postgres, which takes neither NUL nor half of a surrogate pair."""

from __future__ import annotations

import math
from typing import Any

REPLACEMENT = "\ufffd"
_MOST_BITS = 13_000  # About 4,000 digits; Python writes no number of more than 4,300.
_NAMES = {"True": "true", "False": "false", "None": "null"}


def text_storable(text: str) -> str:
    """Return the text with NUL characters and lone surrogates replaced by U+FFFD."""
    if "\x00" in text:
        text = text.replace("\x00", REPLACEMENT)
    if text.isascii():
        return text
    try:
        text.encode()
    except UnicodeEncodeError:
        return "".join(REPLACEMENT if "\ud800" <= c <= "\udfff" else c for c in text)
    return text


def json_storable(value: Any) -> Any:
    """Return a JSON value that jsonb accepts: clean text, finite numbers, string keys; other objects as text.

    Whole numbers of more than 4,000 digits become hexadecimal text, because nothing would read them again.
    """
    if isinstance(value, str):
        return text_storable(value)
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, int):
        return value if value.bit_length() <= _MOST_BITS else hex(value)
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, dict):
        return {_name(k): json_storable(v) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [json_storable(v) for v in value]
    return text_storable(str(value))


def _name(key: Any) -> str:
    """Return a key as JSON writes it: ``True`` is ``true``."""
    return text_storable(key if isinstance(key, str) else _NAMES.get(repr(key)) or str(key))
