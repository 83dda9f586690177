"""Turn values that leave a program into plain JSON, within a budget: a small heap can hold a value of 2**40 paths."""

from __future__ import annotations

import datetime
import decimal
import math
from collections.abc import Mapping
from pathlib import PurePath
from typing import Any

_MAX_DEPTH = 60


class ValueTooLarge(Exception):
    """The value has too many objects or characters, or is nested too deeply."""


class NotJson(Exception):
    """The value has no JSON form."""


def value_plain(value: Any, *, nodes: int, size: int, loose: bool = False) -> Any:
    """Return a value as plain JSON.

    Args:
        value: what the interpreter handed over.
        nodes: objects it may consist of, shared ones counted each time they appear.
        size: characters its texts may have together.
        loose: write what has no JSON form as text instead of refusing it.

    Raises:
        ValueTooLarge: a budget is used up.
        NotJson: bytes, a function, or another value without JSON form (never when ``loose``).
    """
    return _Walk(nodes, size, loose).plain(value, 0)


class _Walk:
    def __init__(self, nodes: int, size: int, loose: bool) -> None:
        self.nodes, self.size, self.loose = nodes, size, loose

    def plain(self, value: Any, depth: int) -> Any:
        self.nodes -= 1
        if self.nodes < 0 or depth > _MAX_DEPTH:
            raise ValueTooLarge
        if value is None or isinstance(value, bool):
            return value
        if isinstance(value, str):
            return self._text(value)
        if isinstance(value, int):
            # Large integers take quadratic time to write.
            if value.bit_length() > 4096:
                raise ValueTooLarge
            self._charge(value.bit_length() // 3)
            return value
        if isinstance(value, float):
            if math.isfinite(value):
                return value
            return self._other(value)
        if isinstance(value, Mapping):
            return {self._key(k): self.plain(v, depth + 1) for k, v in value.items()}
        if isinstance(value, list | tuple):
            return [self.plain(item, depth + 1) for item in value]
        if isinstance(value, set | frozenset):
            return [self.plain(item, depth + 1) for item in sorted(value, key=_rank)]
        if isinstance(value, datetime.date | datetime.time):
            return value.isoformat()
        if isinstance(value, decimal.Decimal):
            whole = value.is_finite() and value == value.to_integral_value() and abs(value) < 2**53
            return int(value) if whole else self._decimal(value)
        if isinstance(value, datetime.timedelta):
            return value.total_seconds()
        if isinstance(value, PurePath):
            return self._text(str(value))
        attributes = getattr(value, "attributes", None)
        if isinstance(attributes, dict):  # An instance of a class of the program's own.
            return self.plain(attributes, depth + 1)
        return self._other(value)

    def _charge(self, amount: int) -> None:
        self.size -= amount
        if self.size < 0:
            raise ValueTooLarge

    def _text(self, text: str) -> str:
        self._charge(len(text))
        return text

    def _key(self, key: Any) -> str:
        self.nodes -= 1
        if isinstance(key, str):
            return self._text(key)
        if key is None or isinstance(key, bool):
            return {None: "null", True: "true", False: "false"}[key]
        if isinstance(key, int | float | decimal.Decimal | datetime.date):
            return str(self.plain(key, 0))
        if self.loose and isinstance(key, tuple) and len(key) < 20:
            return ", ".join(str(self.plain(part, 0))[:200] for part in key)
        if self.loose:
            return f"<{type(key).__name__}>"
        raise NotJson(f"a dict key of type {type(key).__name__}")

    def _decimal(self, value: decimal.Decimal) -> Any:
        if not value.is_finite() or abs(value.adjusted()) > 300:
            return self._other(value)
        return float(value)

    def _other(self, value: Any) -> Any:
        if not self.loose:
            raise NotJson(f"a value of type {type(value).__name__}")
        if isinstance(value, bytes):
            self._charge(4 * len(value))
            return repr(value)
        if isinstance(value, float | decimal.Decimal):
            return str(value)
        name = getattr(value, "name", None)
        if isinstance(name, str):
            return f"<{name[:100]}>"
        return f"<{type(value).__name__}>"


def _rank(item: Any) -> tuple[str, Any]:
    plain = isinstance(item, str | int | float)
    kind = "number" if isinstance(item, int | float) else type(item).__name__
    return kind, item if plain else 0


def preview(value: Any, limit: int = 300) -> str:
    """Return a short text of plain JSON for the log, without writing out all of it."""
    out: list[str] = []
    room = [limit]

    def put(text: str) -> bool:
        out.append(text[: max(0, room[0])])
        room[0] -= len(text)
        return room[0] > 0

    def write(part: Any) -> bool:
        if isinstance(part, dict):
            put("{")
            for i, (key, item) in enumerate(part.items()):
                if not put(f"{', ' if i else ''}{key[:limit]!r}: ") or not write(item):
                    return False
            return put("}")
        if isinstance(part, list):
            put("[")
            for i, item in enumerate(part):
                if (i and not put(", ")) or not write(item):
                    return False
            return put("]")
        if isinstance(part, str):
            return put(repr(part[: limit + 1]))
        return put(str(part))

    write(value)
    text = "".join(out)
    return text if room[0] >= 0 else text + "…"
