"""Numbers of a file's rows are kept as plain numbers: a workspace may have millions."""

from __future__ import annotations

import tracemalloc
from array import array
from itertools import count

import pytest

from exports import renumbering
from exports.renumbering import CHUNK, Numbers


def test_a_row_takes_sixteen_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    fresh = count(1)
    monkeypatch.setattr(
        renumbering, "_fresh", lambda label, many: array("q", (next(fresh) for _ in range(many)))
    )
    numbers = Numbers(1, 2)
    tracemalloc.start()
    try:
        numbers.rows_take(CHUNK, array("q", range(10, 200_010, 2)))
        most = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert most < 100_000 * 20
    assert (numbers.of(CHUNK, 10), numbers.of(CHUNK, 12), numbers.of(CHUNK, 200_008)) == (1, 2, 100_000)
    assert not any(numbers.has(CHUNK, old) for old in (9, 11, 200_009, 200_010, 2**80))
    assert numbers.of(CHUNK, 11) == numbers.of(CHUNK, 11) == 100_001, "one that no row has, always the same"
    assert not numbers.has(CHUNK, 11)
