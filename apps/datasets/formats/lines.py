"""Formats whose files are lines of JSON, and reading of such lines without trust in their length. Pure."""

from __future__ import annotations

import json
import re
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, BinaryIO

from apps.datasets.formats.base import Card, RowError, Rows
from apps.datasets.records.record import MAX_BYTES, Record
from basics.errors import Invalid
from basics.texts import gettext as _
from basics.texts import number_told

EXCERPT = 200
_BLOCK = 1 << 16
_MARK = re.compile(rb'\\.|["\[\]{},]', re.DOTALL)


class JsonLines(ABC):
    """A format with one JSON object for each record. Reading also takes one JSON array of such objects.

    A subclass says what an object holds; ``decode(encode(record))`` is what the format keeps of a record.
    """

    name: str
    title: str
    purpose: str
    suffix = ".jsonl"
    media_type = "application/x-ndjson"
    is_export = True

    @abstractmethod
    def encode(self, record: Record) -> dict[str, Any] | None:
        """Return the object of a record; None where the format has no place for it."""

    @abstractmethod
    def decode(self, values: Mapping[str, Any]) -> Record:
        """Return the record of an object. Raises Invalid, or one of the errors of a wrong shape."""

    def write(self, rows: Rows, card: Card) -> Iterator[bytes]:
        """Yield one line for each record."""
        for record in rows():
            if (values := self.encode(record)) is not None:
                yield dump(values) + b"\n"

    def read(self, path: Path) -> Iterator[Record | RowError]:
        """Yield the records of a file of lines, or of one array."""
        with path.open("rb") as file:
            for number, text in objects(file):
                yield text if isinstance(text, RowError) else self._read_one(number, text)

    def expected(self, rows: Rows) -> Iterator[Record]:
        """Yield each record that the format has a place for, as far as it keeps it."""
        for record in rows():
            if (values := self.encode(record)) is not None:
                yield self.decode(json.loads(dump(values)))

    def _read_one(self, number: int, text: bytes) -> Record | RowError:
        return read_object(number, text, self.decode)


def dump(values: Mapping[str, Any]) -> bytes:
    """Return JSON values as one line."""
    return json.dumps(values, ensure_ascii=False, allow_nan=False).encode()


def read_object(number: int, text: bytes, decode: Any, part: str = "") -> Record | RowError:
    """Return the record that ``decode`` makes of a JSON object, or why there is none."""
    excerpt = text[:EXCERPT].decode("utf-8", "replace")
    try:
        values = json.loads(text)
        if not isinstance(values, dict):
            return RowError(number, _("A row must be a JSON object."), excerpt, part)
        record: Record = decode(values)
    except Invalid as error:
        return RowError(number, error.message, excerpt, part)
    except KeyError as error:
        return RowError(number, _("The field %(name)s is missing.") % {"name": error}, excerpt, part)
    except (ValueError, RecursionError) as error:
        return RowError(number, _("The row isn't valid JSON: %(error)s.") % {"error": error}, excerpt, part)
    except (TypeError, AttributeError, IndexError):
        return RowError(number, _("A field has the wrong type."), excerpt, part)
    return record


def lines(file: BinaryIO, longest: int = MAX_BYTES) -> Iterator[tuple[int, bytes | RowError]]:
    """Yield the lines of a file that are not empty, numbered from 1; a line that is too long becomes an error."""
    number = 0
    while line := file.readline(longest + 1):
        number += 1
        if len(line) > longest and not line.endswith(b"\n"):
            excerpt = line[:EXCERPT].decode("utf-8", "replace")
            while (line := file.readline(longest + 1)) and not line.endswith(b"\n"):
                pass
            yield (
                number,
                RowError(
                    number, _("A row has at most %(bytes)s bytes.") % {"bytes": number_told(longest)}, excerpt
                ),
            )
            continue
        if number == 1:
            line = line.removeprefix(b"\xef\xbb\xbf")
        if line.strip():
            yield number, line


def objects(file: BinaryIO) -> Iterator[tuple[int, bytes | RowError]]:
    """Yield the JSON texts of a file's rows: its lines, or the items of the one array that it is."""
    head = file.read(64).removeprefix(b"\xef\xbb\xbf").lstrip()
    file.seek(0)
    yield from items(file) if head.startswith(b"[") else lines(file)


def items(file: BinaryIO) -> Iterator[tuple[int, bytes | RowError]]:
    """Yield the JSON texts of an array's items, numbered from 1, whatever its layout; one item is held at a time.

    Raises:
        Invalid: the file ends inside the array.
    """
    depth, number, in_text, item = 0, 0, False, _Item()
    while block := _whole_escapes(file):
        start = 0
        for mark in _MARK.finditer(block):
            sign, at = mark[0], mark.start()
            if sign == b'"':
                in_text = not in_text
            elif in_text or sign.startswith(b"\\"):
                continue
            elif sign in b"[{":
                depth += 1
                start = mark.end() if depth == 1 else start
            elif sign in b"]}" and depth > 1:
                depth -= 1
            elif depth == 1:
                item.add(block[start:at])
                start = mark.end()
                is_end = sign in b"]}"
                if number or not is_end or not item.is_empty:
                    number += 1
                    yield number, item.take(number)
                if is_end:
                    return
        item.add(block[start:])
    raise Invalid(
        "file_cut_off", _("The file ends in the middle of its list, so it is incomplete. Upload it again.")
    )


class _Item:
    """The text of one item, given up when it becomes too long."""

    def __init__(self) -> None:
        self._text = bytearray()
        self._is_long = False

    @property
    def is_empty(self) -> bool:
        return not self._text.strip()

    def add(self, piece: bytes) -> None:
        self._is_long = self._is_long or len(self._text) + len(piece) > MAX_BYTES
        if not self._is_long:
            self._text += piece

    def take(self, number: int) -> bytes | RowError:
        text, is_long = bytes(self._text), self._is_long
        self._text, self._is_long = bytearray(), False
        if is_long:
            excerpt = text[:EXCERPT].decode("utf-8", "replace")
            return RowError(
                number, _("A row has at most %(bytes)s bytes.") % {"bytes": number_told(MAX_BYTES)}, excerpt
            )
        return text


def _whole_escapes(file: BinaryIO) -> bytes:
    """Return the next block of a file, ending after an escape sign and what it escapes, never between them."""
    block = file.read(_BLOCK)
    while block.endswith(b"\\") and (more := file.read(1)):
        block += more
    return block
