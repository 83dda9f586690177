"""Files of entries, toolkits and rules: JSON (all kinds in one file) and CSV (one kind). Pure.

Nothing in a file names a row, a person or a workspace by an id: tools, toolkits and collections by their names, people by
their e-mail addresses, keys by their prefixes. So a file says the same in every workspace, and reaches into none.

JSON: ``{"format": "groundwork.tools", "version": 1, "entries": [...], "toolkits": [...], "grants": [...]}``, each row an
object. CSV: the same fields as columns; lists, numbers and truth values as JSON in the cell, an empty cell is a field that
is not stated. A text that a spreadsheet would take for a formula has a ' before it, which is taken off again.
"""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from basics.errors import Invalid
from basics.formulas import FORMULA_STARTS

FORMAT, VERSION = "groundwork.tools", 1
MAX_BYTES, MAX_ROWS = 1_000_000, 2_000
TEXT, FLAG, NUMBER, COUNT, NAMES, CONDITIONS = "text", "flag", "number", "count", "names", "conditions"
# kind -> field -> what its value is; those of KEYS must be stated.
FIELDS: Mapping[str, Mapping[str, str]] = {
    "entries": {
        "name": TEXT,
        "title": TEXT,
        "description": TEXT,
        "category": TEXT,
        "tags": NAMES,
        "is_enabled": FLAG,
        "cost_hint": TEXT,
        "timeout_s": NUMBER,
    },
    "toolkits": {"name": TEXT, "description": TEXT, "tools": NAMES},
    "grants": {
        "effect": TEXT,
        "target_kind": TEXT,
        "target": TEXT,
        "toolkit": TEXT,
        "calls": TEXT,
        "subject_kind": TEXT,
        "subject": TEXT,
        "collection": TEXT,
        "arguments": CONDITIONS,
        "expires_at": TEXT,
        "note": TEXT,
        "approver_kind": TEXT,
        "approver": TEXT,
        "approval_hours": COUNT,
        "needs_reason": FLAG,
    },
}
KEYS: Mapping[str, tuple[str, ...]] = {
    "entries": ("name",),
    "toolkits": ("name", "tools"),
    "grants": ("effect", "target_kind"),
}
_NULLABLE = {"timeout_s", "toolkit", "collection", "expires_at", "approval_hours"}


@dataclass(frozen=True, slots=True)
class FileRow:
    """One row as it stands in a file. ``problem`` says why it cannot be read; then ``values`` is not to be used."""

    kind: str
    number: int
    values: Mapping[str, Any]
    problem: str = ""


def rows_write_json(rows: Mapping[str, Sequence[Mapping[str, Any]]]) -> str:
    """Return a JSON file of rows by kind."""
    return json.dumps({"format": FORMAT, "version": VERSION, **rows}, indent=1, ensure_ascii=False) + "\n"


def rows_write_csv(kind: str, rows: Sequence[Mapping[str, Any]]) -> str:
    """Return a CSV file of one kind."""
    out = io.StringIO()
    writer = csv.DictWriter(out, FIELDS[kind], lineterminator="\r\n")
    writer.writeheader()
    for row in rows:
        writer.writerow({name: _cell(row.get(name)) for name in FIELDS[kind]})
    return out.getvalue()


def rows_read(content: bytes) -> list[FileRow]:
    """Return the rows of a file, entries first and rules last; a row that cannot be read says why.

    Raises:
        Invalid: it is no such file, or too big a one.
    """
    if len(content) > MAX_BYTES:
        raise _unreadable(f"A file can have at most {MAX_BYTES:,} bytes. Split it.")
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise _unreadable("The file isn't UTF-8 text. Save it as UTF-8 and choose it again.") from error
    read = _json_rows if text.lstrip()[:1] in ("{", "[") else _csv_rows
    rows = list(read(text))
    if len(rows) > MAX_ROWS:
        raise _unreadable(f"A file can have at most {MAX_ROWS:,} rows. Split it.")
    if not rows:
        raise _unreadable("The file has no rows.")
    return rows


def _json_rows(text: str) -> Iterator[FileRow]:
    def refuse(constant: str) -> Any:
        raise ValueError(f"{constant} is no JSON")

    try:
        found = json.loads(text, parse_constant=refuse)
    except (ValueError, RecursionError) as error:
        raise _unreadable(f"The file isn't valid JSON: {error}.") from error
    if not isinstance(found, dict) or found.get("format") != FORMAT:
        raise _unreadable(f"The file isn't a tools export: its “format” must be “{FORMAT}”.")
    if found.get("version") != VERSION:
        raise _unreadable(f"The file has a different format version; this server reads version {VERSION}.")
    if unknown := sorted(set(found) - {"format", "version", *FIELDS}):
        raise _unreadable(f"The file has an unknown part “{unknown[0][:60]}”. Known: {', '.join(FIELDS)}.")
    for kind in FIELDS:
        rows = found.get(kind, [])
        if not isinstance(rows, list):
            raise _unreadable(f"“{kind}” must be a list.")
        for number, values in enumerate(rows, start=1):
            yield _checked(kind, number, values)


def _csv_rows(text: str) -> Iterator[FileRow]:
    reader = csv.reader(io.StringIO(text, newline=""), strict=True)
    try:
        lines = list(reader)
    except csv.Error as error:
        raise _unreadable(f"The file is neither JSON nor CSV: {error}.") from error
    if not lines:
        return
    header = [name.strip() for name in lines[0]]
    kind = "grants" if "effect" in header else "toolkits" if "tools" in header else "entries"
    if len(set(header)) != len(header) or not set(KEYS[kind]) <= set(header):
        raise _unreadable("The first line must name the columns, for example those of an exported file.")
    for number, line in enumerate(lines[1:], start=2):
        if not any(line):
            continue
        if len(line) != len(header):
            problem = f"This line has {len(line)} cells, the first one {len(header)}."
            yield FileRow(kind, number, {}, problem)
            continue
        try:
            cells = zip(header, line, strict=True)
            values = {n: _value(FIELDS[kind].get(n, TEXT), c) for n, c in cells if c != ""}
        except (ValueError, RecursionError):
            yield FileRow(kind, number, {}, "A list, number or truth value is not written as JSON.")
        else:
            yield _checked(kind, number, values)


def _checked(kind: str, number: int, values: Any) -> FileRow:
    if not isinstance(values, dict):
        return FileRow(kind, number, {}, "A row must be an object.")
    fields = FIELDS[kind]
    if unknown := sorted(set(values) - set(fields)):
        hint = (
            " Rows belong to the workspace they are imported into and are identified by name."
            if "tenant" in unknown[0] or unknown[0].endswith("id")
            else ""
        )
        return FileRow(kind, number, {}, f"There is no field “{unknown[0][:60]}”.{hint}")
    if missing := [name for name in KEYS[kind] if name not in values]:
        return FileRow(kind, number, {}, f"The field “{missing[0]}” is missing.")
    for name, value in values.items():
        if not (value is None and name in _NULLABLE) and not _fits(fields[name], value):
            return FileRow(kind, number, {}, f"“{name}” must be {_WORDS[fields[name]]}.")
        if not _is_storable(value):
            return FileRow(kind, number, {}, f"“{name}” has a character that cannot be stored.")
    return FileRow(kind, number, values)


_WORDS = {
    TEXT: "a text",
    FLAG: "true or false",
    NUMBER: "a number",
    COUNT: "a whole number",
    NAMES: "a list of texts",
    CONDITIONS: "a list of conditions",
}


def _fits(what: str, value: Any) -> bool:
    if what == TEXT:
        return isinstance(value, str)
    if what == FLAG:
        return isinstance(value, bool)
    if what == CONDITIONS:
        return isinstance(value, list)
    if what == NAMES:
        return isinstance(value, list) and all(isinstance(item, str) for item in value)
    kinds = int if what == COUNT else (int, float)
    return isinstance(value, kinds) and not isinstance(value, bool) and abs(value) < 1e9


def _is_storable(value: Any) -> bool:
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    if "\0" in text or "\\u0000" in text:
        return False
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _cell(value: Any) -> str:
    if value is None:
        return ""
    if not isinstance(value, str):
        return json.dumps(value, ensure_ascii=False)
    is_guarded = value.startswith(FORMULA_STARTS) or (
        value[:1] == "'" and value[1:].startswith(FORMULA_STARTS)
    )
    return f"'{value}" if is_guarded else value


def _value(what: str, cell: str) -> Any:
    if what == TEXT:
        return cell[1:] if cell[0] == "'" and cell[1:].startswith((*FORMULA_STARTS, "'")) else cell
    return json.loads(cell.lower() if what == FLAG else cell)


def _unreadable(message: str) -> Invalid:
    return Invalid("file_unreadable", message, data={"fields": {"file": [message]}})
