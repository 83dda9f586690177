"""The tools of generated programs, as plain functions: deterministic, and one of them fails."""

from __future__ import annotations

from typing import Any


def lookup(key: int) -> dict[str, Any]:
    """Return a row; there is none below 0."""
    if key < 0:
        raise KeyError(f"no row {key}")
    return {"id": key, "name": f"row{key}", "tags": ["a", "b"][: key % 3], "price": key * 1.1, "parent": None}


def rows(count: int) -> list[int]:
    """Return some numbers."""
    return [(7 * i) % 5 - 1 for i in range(count)]


def check(value: int) -> bool:
    """Tell whether a number is odd; 13 is refused."""
    if value == 13:
        raise ValueError("13 is refused")
    return value % 2 == 1


def echo(value: Any) -> Any:
    """Return what it is given."""
    return value


FUNCTIONS = {"lookup": lookup, "rows": rows, "check": check, "echo": echo}
