"""Where a quote stands in a text. Pure."""

from __future__ import annotations

import re

_MARKS = str.maketrans({"“": '"', "”": '"', "„": '"', "’": "'", "‘": "'", "–": "-", "—": "-", "…": " "})


def span_find(text: str, quote: str) -> tuple[int, int] | None:
    """Return (start, end) of a quote, None where the text does not have it.

    White space may differ, and so may the forms of quotation marks and dashes, which models write anew; letters, digits
    and their order may not.
    """
    words = quote.translate(_MARKS).strip(" \n\t\"'").split()
    if not words:
        return None
    at = text.find(quote)
    if at >= 0:
        return at, at + len(quote)
    # Each character of the marks stands for one character, so offsets stay those of the text.
    found = re.search(r"\s+".join(map(re.escape, words)), text.translate(_MARKS))
    return None if found is None else found.span()
