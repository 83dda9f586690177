"""Read the JSON value in what a model wrote: out of prose and code fences, with the slips that models make."""

from __future__ import annotations

import json
import math
import re
from typing import Any, NoReturn

_FENCE = re.compile(r"```[a-zA-Z0-9_-]*[ \t]*\n(.*?)(?:\n[ \t]*```|\Z)", re.DOTALL)
_TRAILING_COMMA = re.compile(r",(\s*[}\]])")
_LITERALS = {"True": "true", "False": "false", "None": "null"}


def clean_json(text: str) -> str:
    """Return the JSON of a text without code fences and chatter around it, as it stands otherwise.

    The first fenced block that begins like JSON wins, then the first balanced object or array. Text without any comes
    back stripped.
    """
    body = text.strip().lstrip("\ufeff")
    for block in _FENCE.findall(body):
        if block.strip()[:1] in ("{", "["):
            body = block.strip()
            break
    if body[:1] not in ("{", "["):
        starts = [at for at in (body.find("{"), body.find("[")) if at >= 0]
        if not starts:
            return body
        body = body[min(starts) :]
    return body[: _end_of_value(body)]


def extract_json(text: str, *, exact_numbers: bool = False) -> Any:
    """Read the JSON value in what a model wrote: fences, chatter, trailing commas and Python's literals are forgiven.

    A truncated value is never completed: half an answer must not look like a whole one. NaN, and numbers beyond what a
    float holds, are refused.

    Args:
        text: what was written.
        exact_numbers: a number with more digits than a float keeps comes back as its text.

    Raises:
        ValueError: when there is none; the message is fit for the model.
    """
    decoder = _EXACT if exact_numbers else _STRICT
    try:
        return decoder.decode(text)
    except (ValueError, RecursionError):
        cleaned = clean_json(text)
    if cleaned[:1] not in ("{", "["):
        # Among words, a bare number or string is hardly the answer.
        raise ValueError("the answer contains no JSON")
    try:
        return decoder.decode(cleaned)
    except RecursionError:
        raise ValueError("the answer is nested too deeply") from None
    except ValueError as first:
        try:
            return decoder.decode(_repaired(cleaned))
        except (ValueError, RecursionError):
            raise ValueError(f"the answer is not valid JSON: {first}") from None


def _refused(word: str) -> NoReturn:
    raise ValueError(f"{word} isn't JSON")


def _float(text: str) -> float:
    number = float(text)
    return number if math.isfinite(number) else _refused(text[:40])


def _exact(text: str) -> float | str:
    number = _float(text)
    from decimal import Decimal  # only where an answer has digits that a float may lose

    return number if Decimal(repr(number)) == Decimal(text) else text


_STRICT = json.JSONDecoder(parse_constant=_refused, parse_float=_float)
_EXACT = json.JSONDecoder(parse_constant=_refused, parse_float=_exact)


def _end_of_value(text: str) -> int:
    """Return where the object or array that begins a text ends; the text's end when it is not complete."""
    depth, in_string, escaped = 0, False, False
    for at, char in enumerate(text):
        if in_string:
            if escaped:
                escaped = False
            elif char == "\\":
                escaped = True
            elif char == '"':
                in_string = False
        elif char == '"':
            in_string = True
        elif char in "{[":
            depth += 1
        elif char in "}]":
            depth -= 1
            if depth == 0:
                return at + 1
    return len(text)


def _repaired(text: str) -> str:
    """Repair outside of strings: trailing commas, and True, False and None."""
    parts = re.split(r'("(?:[^"\\]|\\.)*")', text)
    for index in range(0, len(parts), 2):
        part = re.sub(r"\b(True|False|None)\b", lambda m: _LITERALS[m.group()], parts[index])
        parts[index] = part
    joined = "".join(parts)
    # Commas stand between parts as well, so they go in a second pass over the whole.
    pieces = re.split(r'("(?:[^"\\]|\\.)*")', joined)
    for index in range(0, len(pieces), 2):
        pieces[index] = _TRAILING_COMMA.sub(r"\1", pieces[index])
    return "".join(pieces)
