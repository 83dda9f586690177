"""Keys of files: what they look like, and what a store says of one.

A key is a relative path of letters, digits and ``/ - _ .`` that we make ourselves; no person's text is in it.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import datetime

_KEY = re.compile(r"[A-Za-z0-9_-][A-Za-z0-9._-]*(?:/[A-Za-z0-9_-][A-Za-z0-9._-]*)*")


@dataclass(frozen=True, slots=True)
class Kept:
    """A file in a store.

    Attributes:
        size: in bytes.
        changed_at: when it was placed.
    """

    key: str
    size: int
    changed_at: datetime


def is_key(text: str) -> bool:
    """Tell whether a text can be the key of a file."""
    return _KEY.fullmatch(text) is not None


def key_checked(key: str) -> str:
    """Return a key. Raises ValueError for what can be none."""
    if not is_key(key):
        raise ValueError(f"{key!r} is no key of a file")
    return key
