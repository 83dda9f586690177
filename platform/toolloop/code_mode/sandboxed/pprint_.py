"""``pprint`` for programs."""

# The interpreter that runs this file is not CPython.
# ruff: noqa: A002, T201

from typing import Any


def _show(thing: Any, sort_dicts: bool) -> str:
    if isinstance(thing, dict):
        pairs = list(thing.items())
        if sort_dicts:
            pairs = sorted(pairs, key=lambda pair: str(pair[0]))
        return "{" + ", ".join([f"{k!r}: {_show(v, sort_dicts)}" for k, v in pairs]) + "}"
    if isinstance(thing, list):
        return "[" + ", ".join([_show(item, sort_dicts) for item in thing]) + "]"
    return repr(thing)


def _format(thing: Any, width: int, column: int, after: int, sort_dicts: bool) -> str:
    flat = _show(thing, sort_dicts)
    if len(flat) + after <= width - column or not isinstance(thing, (dict, list, tuple)):
        return flat
    pad = "\n" + " " * (column + 1)
    if isinstance(thing, dict):
        pairs = list(thing.items())
        if sort_dicts:
            pairs = sorted(pairs, key=lambda pair: str(pair[0]))
        rows = []
        for i, (key, value) in enumerate(pairs):
            head = repr(key) + ": "
            more = 1 if i < len(pairs) - 1 else after + 1
            rows.append(head + _format(value, width, column + 1 + len(head), more, sort_dicts))
        return "{" + ("," + pad).join(rows) + "}"
    last = len(thing) - 1
    rows = [
        _format(item, width, column + 1, 1 if i < last else after + 1, sort_dicts)
        for i, item in enumerate(thing)
    ]
    marks = "[]" if isinstance(thing, list) else "()"
    comma = "," if isinstance(thing, tuple) and len(thing) == 1 else ""
    return marks[0] + ("," + pad).join(rows) + comma + marks[1]


def pformat(
    object: Any,
    indent: int = 1,
    width: int = 80,
    depth: Any = None,
    *,
    compact: bool = False,
    sort_dicts: bool = True,
) -> str:
    return _format(object, width, 0, 0, sort_dicts)


def pprint(
    object: Any,
    stream: Any = None,
    indent: int = 1,
    width: int = 80,
    depth: Any = None,
    *,
    compact: bool = False,
    sort_dicts: bool = True,
) -> None:
    print(_format(object, width, 0, 0, sort_dicts))


def pp(object: Any, **options: Any) -> None:
    print(_format(object, options.get("width", 80), 0, 0, options.get("sort_dicts", False)))
