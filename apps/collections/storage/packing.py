"""Values as PostgreSQL takes them, above all rows in its binary COPY format: what a general adapter spends per value is saved.

A row is the number of its fields as int16, then each field as its length (int32, -1 for NULL) and its bytes, all in
network order. A ``halfvec`` is its dimensions and a zero (int16 each) and float16s; a ``sparsevec`` is dimensions, count
and a zero (int32 each), then the indices from 0 in rising order, then as many float32s.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from apps.collections.ingestion.lexical import SPARSE_DIMS

COPY_HEADER = b"PGCOPY\n\xff\r\n\x00" + struct.pack(">ii", 0, 0)
COPY_TRAILER = struct.pack(">h", -1)
NULL = struct.pack(">i", -1)
_LENGTH = struct.Struct(">i")
_INT4, _INT8 = struct.Struct(">ii"), struct.Struct(">iq")
_SPARSE = struct.Struct(">iiii")


def row_start(fields: int) -> bytes:
    """Begin a row of so many fields."""
    return struct.pack(">h", fields)


def int4(value: int | None) -> bytes:
    """Pack a field of type int4."""
    return NULL if value is None else _INT4.pack(4, value)


def int8(value: int | None) -> bytes:
    """Pack a field of type int8."""
    return NULL if value is None else _INT8.pack(8, value)


def raw(value: bytes) -> bytes:
    """Pack a field whose bytes are those of its type: ``bytea``, or ``text`` that is encoded already."""
    return _LENGTH.pack(len(value)) + value


def text(value: str) -> bytes:
    """Pack a field of type text."""
    data = value.encode()
    return _LENGTH.pack(len(data)) + data


def jsonb(encoded: str) -> bytes:
    """Pack a field of type jsonb, given as JSON text."""
    data = encoded.encode()
    return _LENGTH.pack(len(data) + 1) + b"\x01" + data


def text_array(values: Sequence[str]) -> bytes:
    """Pack a field of type text[]."""
    if not values:
        return _LENGTH.pack(12) + struct.pack(">iii", 0, 0, 25)
    data = struct.pack(">iiiii", 1, 0, 25, len(values), 1) + b"".join(map(text, values))
    return _LENGTH.pack(len(data)) + data


def sparsevec(indices: bytes, values: bytes) -> bytes:
    """Pack a field of type sparsevec; both arrays are in network order (``>i4`` rising, ``>f4``)."""
    length = len(indices)
    return _SPARSE.pack(12 + 2 * length, SPARSE_DIMS, length // 4, 0) + indices + values


def sparsevec_read(data: bytes) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.float32]]:
    """Return indices and values of a sparsevec that came in binary."""
    indices = np.frombuffer(data, ">i4", int.from_bytes(data[4:8], "big"), 12)
    values = np.frombuffer(data, ">f4", len(indices), 12 + 4 * len(indices))
    return indices.astype(np.int32), values.astype(np.float32)


def halfvec_text(values: npt.NDArray[np.float32]) -> str:
    """Write a vector as Postgres reads it, with the digits that half precision has, and one more.

    pgvector writes each number by itself, with all digits: that takes several times as long.
    """
    return f"[{','.join(['%.6g'] * len(values))}]" % tuple(values.astype(np.float16).tolist())


def halfvec_rows(columns: Sequence[Any], vectors: Any) -> bytes:
    """Pack whole rows of int8 columns followed by one halfvec.

    Args:
        columns: each a number that is the same in every row, or as many as there are vectors.
        vectors: of one length, as rows of an array.

    Raises:
        ValueError: a vector holds what is not a finite number, which the database would refuse later.
    """
    given = np.asarray(vectors, dtype=np.float32)
    halves = given.astype(">f2")
    if not np.isfinite(halves).all():
        raise ValueError("An embedder returned a vector with values that are not finite numbers.")
    count, dimensions = halves.shape
    fields = [("fields", ">i2")]
    for number in range(len(columns)):
        fields += [(f"length{number}", ">i4"), (f"column{number}", ">i8")]
    fields += [("length", ">i4"), ("dimensions", ">i2"), ("unused", ">i2")]
    rows = np.zeros(count, dtype=np.dtype([*fields, ("vector", ">f2", (dimensions,))]))
    rows["fields"] = len(columns) + 1
    for number, column in enumerate(columns):
        rows[f"length{number}"] = 8
        rows[f"column{number}"] = column
    rows["length"], rows["dimensions"], rows["vector"] = 4 + 2 * dimensions, dimensions, halves
    return rows.tobytes()
