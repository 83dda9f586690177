"""A test that walks rows tries all of them, names those that fail, and fails with them."""

from __future__ import annotations

import inspect

import pytest

from tests.walked import each

TRIED: list[int] = []


@each("number, wanted", [(1, 1), (2, 3), (4, 4), (5, 6)])
def numbers(number: int, wanted: int, request: object) -> None:
    TRIED.append(number)
    if number == 5:
        pytest.fail("five")
    assert number == wanted


@each("text", ["a", "b"])
async def texts(text: str) -> None:
    assert text == "a"


def test_every_row_is_tried_and_each_that_fails_is_named() -> None:
    TRIED.clear()
    with pytest.raises(BaseExceptionGroup, match="2 of 4 rows") as caught:
        numbers(request=None)
    assert TRIED == [1, 2, 4, 5]
    notes = [error.__notes__ for error in caught.value.exceptions]
    assert notes == [["in the row number=2, wanted=3"], ["in the row number=5, wanted=6"]]
    assert list(inspect.signature(numbers).parameters) == ["request"]


async def test_rows_of_a_coroutine_are_waited_for() -> None:
    assert inspect.iscoroutinefunction(texts)
    with pytest.raises(BaseExceptionGroup, match="1 of 2 rows"):
        await texts()


def test_a_table_without_rows_is_refused() -> None:
    with pytest.raises(AssertionError, match="no rows of text"):
        each("text", [])
