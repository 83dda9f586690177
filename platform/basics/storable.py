"""Make what models and tools produce fit for Postgres, which takes neither NUL nor half of a surrogate pair."""

from __future__ import annotations

import math
from typing import Any

REPLACEMENT = "\ufffd"


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
    """Return a JSON value that jsonb accepts: clean text, finite numbers, string keys; other objects as text."""
    if isinstance(value, str):
        return text_storable(value)
    if value is None or isinstance(value, bool | int):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, dict):
        return {text_storable(str(k)): json_storable(v) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [json_storable(v) for v in value]
    return text_storable(str(value))
