"""When two texts of rows say the same: compared without case, punctuation and spacing. Pure."""

from __future__ import annotations

import re
import unicodedata

_WORD = re.compile(r"\w+(?:[.,]\d+)*")


def normalised(text: str) -> str:
    """Return a text without what does not change its meaning: case, punctuation, spacing, compatibility forms."""
    return " ".join(_WORD.findall(unicodedata.normalize("NFKC", text).casefold()))
