"""Cut JSON so that it stays JSON: between values, with a word in place of what was left out. Pure."""

from __future__ import annotations

import json
from typing import Any, Never

LEAST = 100
"""Into fewer characters no JSON is cut: markers alone would fill them."""
_ROOM = 48  # what a marker takes at most, with its quotes and comma
_WORTH = 120  # less room than this is not worth the beginning of a value


def text_cut(text: str, limit: int) -> str:
    """Return at most ``limit`` characters of a text; of JSON (an object or a list) a JSON value that says what it lacks.

    Args:
        limit: characters; a text that is no JSON, or a limit below ``LEAST``, cuts where it falls.
    """
    if len(text) <= limit:
        return text
    found = json_cut(text, limit)
    return text[:limit] if found is None else found


def json_cut(text: str, limit: int) -> str | None:
    """Return JSON of at most ``limit`` characters with the beginning of what a JSON text holds; None where it holds none.

    Of a list the first items are kept, of an object every short value and the beginning of the long ones, as far as they
    fit. Where something is left out stands a text: ``[... 12 items left out ...]``.
    """
    if limit < LEAST or text.lstrip()[:1] not in ("{", "["):
        return None
    try:
        value = json.loads(text, parse_constant=_refused)
        shown = _dumped(value)
        return shown if len(shown) <= limit else _dumped(_fit(value, limit))
    except (ValueError, RecursionError):
        return None


def _refused(name: str) -> Never:
    raise ValueError(f"{name} isn't JSON")


def _dumped(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


def _left_out(count: int, what: str) -> str:
    return f"[... {count:,} {what}{'' if count == 1 else 's'} left out ...]"


def _fit(value: Any, room: int) -> Any:
    """Return a value that is written with at most ``room`` characters, at least ``_ROOM``."""
    if len(_dumped(value)) <= room:
        return value
    if isinstance(value, str):
        return _text_fit(value, room)
    if isinstance(value, list):
        return _list_fit(value, room)
    if isinstance(value, dict):
        return _object_fit(value, room)
    return _left_out(len(_dumped(value)), "digit")


def _text_fit(value: str, room: int) -> str:
    kept = max(0, room - _ROOM)
    while kept > 0:
        found = f"{value[:kept]} {_left_out(len(value) - kept, 'character')}"
        over = len(_dumped(found)) - room  # what is escaped takes more than one character
        if over <= 0:
            return found
        kept -= max(over // 6, 1)
    return _left_out(len(value), "character")


def _list_fit(value: list[Any], room: int) -> list[Any]:
    kept: list[Any] = []
    left = room - 2 - _ROOM
    for item in value:
        size = len(_dumped(item)) + 2
        if size > left:
            if left >= _WORTH and isinstance(item, str | list | dict):
                kept.append(_fit(item, left - 2))
            break
        kept.append(item)
        left -= size
    count = len(value) - len(kept)
    return [*kept, _left_out(count, "item")] if count else kept


def _object_fit(value: dict[str, Any], room: int) -> dict[str, Any]:
    """Give short values their room and let the long ones share the rest; the last entries go where even that is too much."""
    sizes = {key: len(_dumped(key)) + len(_dumped(item)) + 4 for key, item in value.items()}
    least = {key: min(size, len(_dumped(key)) + 4 + _ROOM) for key, size in sizes.items()}
    left = room - 2
    keys = list(value)
    if sum(least.values()) > left:
        left -= 2 * _ROOM
        while keys and sum(least[key] for key in keys) > left:
            keys.pop()
    shares = dict(least)
    spare = left - sum(least[key] for key in keys)
    for place, key in enumerate(wanting := sorted(keys, key=lambda key: sizes[key])):
        more = min(sizes[key] - least[key], spare // (len(wanting) - place))
        shares[key] += more
        spare -= more
    found = {key: _fit(value[key], shares[key] - len(_dumped(key)) - 4) for key in keys}
    if len(keys) < len(value):
        found["..."] = _left_out(len(value) - len(keys), "field")
    return found
