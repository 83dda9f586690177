"""Compile a regular expression that somebody else has written, without a way to fill the memory with it. Pure."""

from __future__ import annotations

import math
import re

import regex

_MAX_REPEATS = 100_000
_REPEAT = re.compile(r"\{\s*(\d*)\s*(?:,\s*(\d*)\s*)?\}")


def pattern_compile(text: str, flags: int = 0) -> regex.Pattern[str]:
    """Compile a stranger's regular expression; give a ``timeout`` to whatever is done with it.

    ``regex`` unrolls counted repeats when it compiles: ``(?:(?:a{1000}){1000}){1000}`` would take all memory there is, and
    no timeout holds for that.

    Args:
        text: the expression.
        flags: of ``regex``.

    Raises:
        regex.error: it cannot be read, or its counted repeats, taken as if each stood in the next, are more than 100,000.
        RecursionError, OverflowError: it is nested too deeply, or holds too large a number.
    """
    found = _REPEAT.findall(text)
    if any(len(number) > 6 for counts in found for number in counts) or (
        math.prod(max(int(number or 1) for number in counts) or 1 for counts in found) > _MAX_REPEATS
    ):
        raise regex.error("it repeats something too often, make the numbers in braces smaller")
    return regex.compile(text, flags)
