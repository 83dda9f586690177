"""What a person changed in the arguments of a call before approving it. Pure."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

MAX_CHANGES = 50


@dataclass(frozen=True, slots=True)
class ArgumentDifference:
    """One value that differs.

    Attributes:
        path: where, as ``to.name`` or ``rows[2]``; "" is the whole value.
        kind: changed, added or removed.
        before, after: as JSON text; "" where there is none.
    """

    path: str
    kind: str
    before: str
    after: str


def argument_changes(asked: Any, edited: Any) -> list[ArgumentDifference]:
    """Return what was edited, at most ``MAX_CHANGES`` of it; nothing where ``edited`` is None (as asked)."""
    if edited is None:
        return []
    found: list[ArgumentDifference] = []
    _compare("", asked, edited, found)
    return found[:MAX_CHANGES]


def _compare(path: str, before: Any, after: Any, found: list[ArgumentDifference]) -> None:
    if len(found) > MAX_CHANGES or _same(before, after):
        return
    if isinstance(before, Mapping) and isinstance(after, Mapping):
        for key in [*before, *(k for k in after if k not in before)]:
            _one(f"{path}.{key}" if path else str(key), key, before, after, found)
    elif isinstance(before, list) and isinstance(after, list):
        for at in range(max(len(before), len(after))):
            _one(f"{path}[{at}]", at, dict(enumerate(before)), dict(enumerate(after)), found)
    else:
        found.append(ArgumentDifference(path, "changed", _text(before), _text(after)))


def _one(
    path: str, key: Any, before: Mapping[Any, Any], after: Mapping[Any, Any], found: list[ArgumentDifference]
) -> None:
    if key not in after:
        found.append(ArgumentDifference(path, "removed", _text(before[key]), ""))
    elif key not in before:
        found.append(ArgumentDifference(path, "added", "", _text(after[key])))
    else:
        _compare(path, before[key], after[key], found)


def _same(before: Any, after: Any) -> bool:
    """Tell whether two JSON values are one: to Python, True equals 1."""
    return before == after and _text(before) == _text(after)


def _text(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, sort_keys=True)
