"""CSV: the file's own text as one table whose rows are records; ragged rows and odd delimiters are tolerated."""

from __future__ import annotations

import csv
from collections import Counter
from pathlib import Path
from typing import Literal

from apps.collections.ingestion import media_types
from apps.collections.ingestion.readers.base import MAX_HEADER, Reading, read_text, split_parts
from apps.collections.ingestion.types import FailureCode, ReaderLimits, ReadFailure, Region
from basics.texts import gettext as _

_DELIMITERS = ",;\t|"
_SAMPLE_RECORDS = 50
_MAX_RECORD_LINES = 200


class CsvReader:
    """Read a CSV file with comma, semicolon, tab or pipe."""

    media_types = (media_types.CSV,)

    def read(self, path: Path, limits: ReaderLimits) -> Reading:
        """Open the file; a record never loses its header, however the table is split later.

        Raises:
            ReadFailure: ``no_text``, ``too_large`` or ``corrupt_file``.
        """
        text = read_text(path, limits)
        delimiter = sniff_delimiter(text)
        rows, widths = _row_starts(text, delimiter)
        first, second = rows[0], rows[1] if len(rows) > 1 else len(text)
        region = Region(
            "table",
            first,
            len(text),
            row_starts=tuple(rows),
            body_start=second,
            header=text[first : min(second, first + MAX_HEADER)].strip("\n"),
            columns=widths[0],
            delimiter=delimiter,
        )
        parts = list(split_parts(text, [], [region]))
        reading = Reading(len(parts), iter(parts), is_paged=False)
        reading.metadata = {"delimiter": delimiter, "records": len(rows), "columns": widths[0]}
        ragged = sum(1 for width in widths if width != widths[0])
        if ragged:
            reading.warnings.append(
                _(
                    "%(ragged)s of %(rows)s rows do not have the header's %(widths)s columns; they were kept "
                    "as they are."
                )
                % {"ragged": ragged, "rows": len(rows), "widths": widths[0]}
            )
        return reading


def sniff_delimiter(text: str) -> str:
    """Pick the delimiter under which most of the first records have the same number (above 1) of fields."""
    best, best_score = ",", (0.0, 0)
    sample = text[:65536].split("\n")[: _SAMPLE_RECORDS * 2]
    for delimiter in _DELIMITERS:
        try:
            rows = [r for r in csv.reader(sample, delimiter=delimiter) if r][:_SAMPLE_RECORDS]
        except csv.Error:
            continue
        if not rows:
            continue
        width, count = Counter(len(r) for r in rows).most_common(1)[0]
        if width > 1 and (score := (count / len(rows), width)) > best_score:
            best, best_score = delimiter, score
    return best


def _row_starts(text: str, delimiter: str) -> tuple[list[int], list[int]]:
    """Give offset and number of fields of each record that is not blank; a quoted field may span lines."""
    lines = text.split("\n")
    csv.field_size_limit(max(len(text) + 1, 131_072))
    rows = _parse(lines, delimiter, csv.QUOTE_MINIMAL)
    if rows is None:
        # A quote that is never closed would swallow the rest of the file: then quotes are plain characters.
        rows = _parse(lines, delimiter, csv.QUOTE_NONE) or ([0], [1])
    return rows


def _parse(lines: list[str], delimiter: str, quoting: Literal[0, 3]) -> tuple[list[int], list[int]] | None:
    offsets = [0]
    for line in lines:
        offsets.append(offsets[-1] + len(line) + 1)
    starts: list[int] = []
    widths: list[int] = []
    consumed = 0
    reader = csv.reader(lines, delimiter=delimiter, quoting=quoting)
    try:
        for record in reader:
            if quoting == csv.QUOTE_MINIMAL and reader.line_num - consumed > _MAX_RECORD_LINES:
                return None
            if any(field.strip() for field in record):
                starts.append(offsets[consumed])
                widths.append(len(record))
            consumed = reader.line_num
    except csv.Error as error:
        raise ReadFailure(
            FailureCode.CORRUPT_FILE, _("The file is not a readable CSV table: %(error)s.") % {"error": error}
        ) from error
    return starts, widths
