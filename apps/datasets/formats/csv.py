"""CSV: a column for each field; lists and objects as JSON in their cell.

A text that a spreadsheet would take for a formula has a ' before it, which is taken off again when the file is read.
"""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from django.utils.translation import gettext_noop

from apps.datasets.formats.base import Card, RowError, Rows
from apps.datasets.formats.lines import EXCERPT
from apps.datasets.records.facts import FACTS, record_with_facts, values_with_facts
from apps.datasets.records.record import FIELDS, MAX_BYTES, Record
from basics.errors import Invalid
from basics.formulas import FORMULA_STARTS
from basics.texts import gettext as _

_COLUMNS = (*FIELDS, *FACTS)
_JSON = ("steps", "sources", "scores", "tags", "messages", "tools", "meta", "iterations", "is_complete")
# The module's own limit is for the whole process and too low for a trace; a row is measured again when it is read.
csv.field_size_limit(MAX_BYTES)


class Csv:
    """A table with a row for each record."""

    name = "csv"
    title = "CSV"
    purpose = gettext_noop("For spreadsheets: everything a row has, with lists and traces as JSON in cells.")
    suffix = ".csv"
    media_type = "text/csv"
    is_export = True

    def write(self, rows: Rows, card: Card) -> Iterator[bytes]:
        """Yield the header and a line for each record."""
        out = io.StringIO()
        writer = csv.writer(out, lineterminator="\r\n")
        writer.writerow(_COLUMNS)
        for record in rows():
            values = values_with_facts(record)
            writer.writerow([_cell(name, values[name]) for name in _COLUMNS])
            yield out.getvalue().encode()
            out.seek(0)
            out.truncate()
        if rest := out.getvalue():
            yield rest.encode()

    def read(self, path: Path) -> Iterator[Record | RowError]:
        """Yield the records of a table whose first line names the columns; ``question`` must be one."""
        with path.open(encoding="utf-8-sig", errors="surrogateescape", newline="") as file:
            reader = csv.reader(file, strict=True)
            try:
                header = [name.strip().lower() for name in next(reader, [])]
            except csv.Error as error:
                raise _no_table(f"{error}") from error
            unknown = [name for name in header if name not in _COLUMNS]
            if "question" not in header or len(set(header)) != len(header) or unknown:
                raise _no_table(
                    f"its first line has the column “{unknown[0][:40]}”, which no row has"
                    if unknown
                    else "its first line must name each column once, including “question”"
                )
            yield from _rows(reader, header)

    def expected(self, rows: Rows) -> Iterator[Record]:
        """Yield every record as it is."""
        yield from rows()


def _rows(reader: Any, header: list[str]) -> Iterator[Record | RowError]:
    number = 1
    while True:
        number += 1
        try:
            line = next(reader)
        except StopIteration:
            return
        except csv.Error as error:
            yield RowError(number, _("The line can't be read: %(error)s.") % {"error": error})
            continue
        if any(line):
            yield _row(number, header, line)


def _row(number: int, header: list[str], line: list[str]) -> Record | RowError:
    excerpt = ",".join(line)[:EXCERPT].encode("utf-8", "replace").decode()
    if len(line) != len(header):
        message = _("This line has %(cells)s cells, but the first one has %(names)s.") % {
            "cells": len(line),
            "names": len(header),
        }
        return RowError(number, message, excerpt)
    try:
        values = {name: _value(name, cell) for name, cell in zip(header, line, strict=True) if cell}
        return record_with_facts({"question": "", **values})
    except Invalid as error:
        return RowError(number, error.message, excerpt)
    except (ValueError, RecursionError):
        message = _("Lists and objects (%(fields)s) must be written as JSON.") % {"fields": ", ".join(_JSON)}
        return RowError(number, message, excerpt)


def _cell(name: str, value: Any) -> str:
    if name in _JSON:
        is_empty = value is None or value in ([], {})
        return "" if is_empty else json.dumps(value, ensure_ascii=False, allow_nan=False)
    text = str(value)
    return f"'{text}" if text.startswith((*FORMULA_STARTS, "'")) else text


def _value(name: str, cell: str) -> Any:
    if name in _JSON:
        return json.loads(cell)
    return cell[1:] if cell.startswith("'") and cell[1:].startswith((*FORMULA_STARTS, "'")) else cell


def _no_table(why: str) -> Invalid:
    return Invalid(
        "file_unreadable",
        _("The file isn't a CSV of rows: %(why)s. See an exported file for the format.") % {"why": why},
    )
