"""JSON and JSON Lines: records as a table, anything else indented line by line; numbers stay as they are written."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from apps.collections.ingestion import media_types
from apps.collections.ingestion.readers.base import (
    Reading,
    clean_text,
    read_text,
    require_text,
    split_parts,
    text_reading,
)
from apps.collections.ingestion.readers.tables import TextBuilder, one_line
from apps.collections.ingestion.types import ReaderLimits, Region
from basics.texts import gettext as _

_MAX_DEPTH = 100
_MAX_COLUMNS = 60
_MAX_CELL = 400
_SHARED_KEYS = 0.7  # of the columns, on average, a record must fill for a table to suit it


class Number(str):
    """A number as the file writes it: ``2.50`` and ``0201`` must not become 2.5 and 201."""

    __slots__ = ()


class Members(list[tuple[str, Any]]):
    """An object's members in order; a key that occurs twice keeps both values."""

    __slots__ = ()


class JsonReader:
    """Read a JSON file."""

    media_types = (media_types.JSON,)

    def read(self, path: Path, limits: ReaderLimits) -> Reading:
        """Open the file; JSON that cannot be parsed is read as plain text with a warning.

        Raises:
            ReadFailure: ``no_text`` or ``too_large``.
        """
        source = read_text(path, limits)
        try:
            value = _parse(source)
            builder = TextBuilder()
            _write_document(value, builder)
        except (ValueError, RecursionError) as error:
            return text_reading(source, _("it is not valid JSON (%(error)s)") % {"error": _why(error)})
        return _reading(builder, limits)


class JsonLinesReader:
    """Read a file with one JSON value on each line."""

    media_types = (media_types.JSON_LINES,)

    def read(self, path: Path, limits: ReaderLimits) -> Reading:
        """Open the file; a line that cannot be parsed is kept as it stands and counted in a warning.

        Raises:
            ReadFailure: ``no_text`` or ``too_large``.
        """
        records: list[Any] = []
        bad: list[int] = []
        for number, line in enumerate(read_text(path, limits).split("\n"), start=1):
            if not line.strip():
                continue
            try:
                records.append(_parse(line))
            except (ValueError, RecursionError):
                bad.append(number)
                records.append(line)
        builder = TextBuilder()
        _write_items(records, builder)
        reading = _reading(builder, limits)
        reading.metadata["records"] = len(records)
        if bad:
            shown = ", ".join(map(str, bad[:10])) + (" ..." if len(bad) > 10 else "")
            reading.warnings.append(
                _("%(bad)s of %(records)s lines are not valid JSON and were kept as they are: %(shown)s.")
                % {"bad": len(bad), "records": len(records), "shown": shown}
            )
        return reading


def _parse(text: str) -> Any:
    value = json.loads(
        text, parse_float=Number, parse_int=Number, parse_constant=Number, object_pairs_hook=Members
    )
    _check_depth(value)
    return value


def _check_depth(value: Any) -> None:
    level: list[Any] = [value]
    for _depth in range(_MAX_DEPTH):
        level = [inner for outer in level for inner in _children(outer)]
        if not level:
            return
    raise ValueError(f"nested more than {_MAX_DEPTH} levels deep")


def _children(value: Any) -> Iterator[Any]:
    if isinstance(value, Members):
        yield from (inner for _, inner in value if isinstance(inner, list))
    elif isinstance(value, list):
        yield from (inner for inner in value if isinstance(inner, list))


def _write_document(value: Any, builder: TextBuilder) -> None:
    """Write the outermost value; members of an object that hold much become sections of their own."""
    if not isinstance(value, Members):
        _write_items(value if isinstance(value, list) else [value], builder)
        return
    loose = [(key, inner) for key, inner in value if not _is_large(inner)]
    if loose:
        builder.add("".join(f"{line}\n" for line in _lines(Members(loose), 0)) + "\n")
    for key, inner in value:
        if _is_large(inner):
            builder.add_heading(clean_text(key)[:200], 1)
            _write_items([inner] if isinstance(inner, Members) else inner, builder)


def _is_large(value: Any) -> bool:
    return isinstance(value, list) and bool(value) and any(isinstance(v, list) for v in _flat(value))


def _flat(value: list[Any]) -> Iterator[Any]:
    return (v for _, v in value) if isinstance(value, Members) else iter(value)


def _write_items(items: Sequence[Any], builder: TextBuilder) -> None:
    """Write a list: flat records as a table, other items one after the other, never cut inside when they fit."""
    columns = _columns(items)
    if columns:
        places = {key: i for i, key in enumerate(columns)}
        rows = [list(columns)]
        for item in items:
            row = [""] * len(columns)
            for key, value in item:
                row[places[key]] = _scalar(value)
            rows.append(row)
        builder.add_table(rows)
        return
    start = builder.length
    starts: list[int] = []
    for item in items:
        starts.append(builder.length)
        builder.add("".join(f"{line}\n" for line in _lines(item, 0)))
    if len(starts) > 1:
        builder.regions.append(Region("code", start, builder.length, tuple(starts), start))
    builder.add("\n")


def _columns(items: Sequence[Any]) -> list[str]:
    """Give the columns of a list of flat records, [] when a table does not suit them."""
    columns: dict[str, None] = {}
    filled = 0
    for item in items:
        if not isinstance(item, Members) or not item:
            return []
        for key, value in item:
            if isinstance(value, list) or (isinstance(value, str) and len(value) > _MAX_CELL):
                return []
            columns[key] = None
        if len({key for key, _ in item}) < len(item) or len(columns) > _MAX_COLUMNS:
            return []
        filled += len(item)
    is_table = len(items) > 1 and filled >= _SHARED_KEYS * len(columns) * len(items)
    return list(columns) if is_table else []


def _lines(value: Any, depth: int) -> Iterator[str]:
    """Write a value as indented ``key: value`` lines."""
    space = "  " * depth
    if isinstance(value, Members):
        for key, inner in value:
            name = one_line(clean_text(key))
            if isinstance(inner, list):
                yield f"{space}{name}:"
                yield from _lines(inner, depth + 1)
            else:
                yield f"{space}{name}: {_scalar(inner)}"
    elif isinstance(value, list):
        for inner in value:
            if isinstance(inner, list):
                yield f"{space}-"
                yield from _lines(inner, depth + 1)
            else:
                yield f"{space}- {_scalar(inner)}"
    else:
        yield f"{space}{_scalar(value)}"


def _scalar(value: Any) -> str:
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    return clean_text(str(value)).strip()


def _reading(builder: TextBuilder, limits: ReaderLimits) -> Reading:
    text = builder.text
    require_text(text, limits)
    parts = list(split_parts(text, builder.headings, builder.regions))
    return Reading(len(parts), iter(parts), is_paged=False)


def _why(error: Exception) -> str:
    return "nested too deeply" if isinstance(error, RecursionError) else str(error)[:120]
