"""Parquet through pyarrow: typed columns, nested lists of structs; free-form objects as JSON text in their column.

pyarrow is loaded when the first file is written or read. What a file claims of its size is checked before it is read.
"""

from __future__ import annotations

import io
import json
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

from django.utils.translation import gettext_noop

from apps.datasets.formats.base import Card, RowError, Rows
from apps.datasets.records.facts import FACTS, record_with_facts, values_with_facts
from apps.datasets.records.record import FIELDS, Record
from basics.errors import Invalid
from basics.texts import gettext as _
from basics.texts import number_told

if TYPE_CHECKING:
    import pyarrow

BATCH = 500
MAX_GROUP = 1 << 29
"""Bytes that a row group may claim to have: reading holds one at most."""


class Parquet:
    """A columnar file with everything a record has."""

    name = "parquet"
    title = "Parquet"
    purpose = gettext_noop("For data tools: everything a row has, in typed columns.")
    suffix = ".parquet"
    media_type = "application/vnd.apache.parquet"
    is_export = True

    def write(self, rows: Rows, card: Card) -> Iterator[bytes]:
        """Yield the file, a row group after the other."""
        yield from table_pieces(rows(), card)

    def read(self, path: Path) -> Iterator[Record | RowError]:
        """Yield the records of a file with the columns of an export; only ``question`` must be there."""
        with path.open("rb") as file:
            yield from read_table(file)

    def expected(self, rows: Rows) -> Iterator[Record]:
        """Yield every record as it is."""
        yield from rows()


class Sink(io.RawIOBase):
    """A file that is only written: what came since the last ``take`` waits to be taken."""

    def __init__(self) -> None:
        self._pieces: list[bytes] = []
        self._length = 0

    def writable(self) -> bool:
        """Tell that it can be written."""
        return True

    def write(self, data: Any) -> int:
        """Keep a piece."""
        piece = bytes(data)
        self._pieces.append(piece)
        self._length += len(piece)
        return len(piece)

    def tell(self) -> int:
        """Return how much was written in all; Parquet's footer names places by it."""
        return self._length

    def take(self) -> bytes:
        """Return what was written since the last time."""
        taken = b"".join(self._pieces)
        self._pieces.clear()
        return taken


def table_pieces(records: Iterator[Record], card: Card) -> Iterator[bytes]:
    """Yield a Parquet file of records, a row group after the other."""
    import pyarrow.parquet

    sink = Sink()

    about = {"dataset": card.name, "version": card.version, "manifest": card.manifest}
    schema = _schema().with_metadata({name: value.encode() for name, value in about.items()})
    with pyarrow.parquet.ParquetWriter(sink, schema, compression="zstd") as writer:
        while batch := list(islice(records, BATCH)):
            table = pyarrow.Table.from_pylist([_row(record) for record in batch], schema)
            writer.write_table(table)
            yield sink.take()
    yield sink.take()


def read_table(file: BinaryIO, part: str = "") -> Iterator[Record | RowError]:
    """Yield the records of an open Parquet file.

    Raises:
        Invalid: it is none, or claims sizes that no export has.
    """
    import pyarrow
    import pyarrow.parquet

    try:
        found = pyarrow.parquet.ParquetFile(file, memory_map=False)
        about = found.metadata
        claimed = [about.row_group(i).total_byte_size for i in range(about.num_row_groups)]
        if any(not 0 <= size <= MAX_GROUP for size in claimed):
            raise Invalid(
                "file_too_large",
                _("A row group of this file has more than %(max_group)s bytes. Write smaller row groups.")
                % {"max_group": number_told(MAX_GROUP)},
            )
        if "question" not in found.schema_arrow.names:
            raise Invalid(
                "file_unreadable", _("The file has no column “question”, so there are no rows in it.")
            )
        number = 0
        for batch in found.iter_batches(batch_size=BATCH):
            for values in batch.to_pylist():
                number += 1
                yield _record(number, values, part)
    except (pyarrow.ArrowException, OSError, UnicodeDecodeError) as error:
        raise Invalid(
            "file_unreadable",
            _("The file isn't Parquet, or is damaged: %(error)s.") % {"error": str(error)[:200]},
        ) from error


def _record(number: int, values: dict[str, Any], part: str) -> Record | RowError:
    try:
        return record_with_facts(_values(values))
    except Invalid as error:
        return RowError(number, error.message, str(values.get("question"))[:200], part)
    except (TypeError, AttributeError, KeyError):
        return RowError(
            number, _("A column has the wrong type. Compare it with an exported file."), part=part
        )
    except (ValueError, RecursionError):
        return RowError(number, _("A free-form object must be written as JSON text."), part=part)


def _row(record: Record) -> dict[str, Any]:
    values = values_with_facts(record)
    for place, name in _FREE:
        for holder in _holders(values, place):
            holder[name] = json.dumps(holder[name], ensure_ascii=False)
    return values


def _values(row: dict[str, Any]) -> dict[str, Any]:
    values = {name: value for name, value in row.items() if value is not None}
    for place, name in _FREE:
        for holder in _holders(values, place):
            if name in holder:
                holder[name] = json.loads(holder[name])
    for step in values.get("steps", ()):
        for name in ("cost_usd", "sources"):
            if step.get(name, 0) is None:
                del step[name]
    return values


_FREE = (
    (("steps",), "input"),
    (("messages", "tool_calls"), "arguments"),
    (("tools",), "parameters"),
    ((), "meta"),
)


def _holders(values: dict[str, Any], place: tuple[str, ...]) -> Iterator[dict[str, Any]]:
    """Yield the objects at the end of a path of lists."""
    if not place:
        yield values
        return
    for item in values.get(place[0]) or ():
        yield from _holders(item, place[1:])


def _schema() -> pyarrow.Schema:
    import pyarrow as pa

    text, number, several = pa.string(), pa.int64(), pa.list_
    step = pa.struct(
        {
            "step": number,
            "thought": text,
            "action": text,
            "input": text,
            "observation": text,
            "cost_usd": pa.float64(),
            "sources": several(number),
        }
    )
    source = pa.struct(
        {
            "document": text,
            "quote": text,
            "collection": text,
            "document_id": number,
            "chunk_id": number,
            "start": number,
            "end": number,
            "page": number,
            "license": text,
            "url": text,
        }
    )
    score = pa.struct(
        {"name": text, "value": pa.float64(), "level": number, "evidence": text, "author": text}
    )
    call = pa.struct({"id": text, "name": text, "arguments": text})
    message = pa.struct({"role": text, "content": text, "tool_calls": several(call), "tool_call_id": text})
    tool = pa.struct({"name": text, "description": text, "parameters": text})
    columns = dict.fromkeys((*FIELDS, *FACTS), text) | {
        "iterations": number,
        "is_complete": pa.bool_(),
        "steps": several(step),
        "sources": several(source),
        "scores": several(score),
        "tags": several(text),
        "messages": several(message),
        "tools": several(tool),
    }
    return pa.schema(columns)
