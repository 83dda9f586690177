"""What our own dumper writes into an array is what the database reads, and our own loader reads moments as it tells them."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta

import pytest
from django.db import DataError, connection

TEXTS = [
    *(
        "",
        " ",
        "NULL",
        "null",
        "a,b",
        "{}",
        "{a}",
        '"',
        "\\",
        '\\"',
        "\\\\",
        "'",
        "%s",
        "é\u2028\n\t",
        "plain",
    ),
    json.dumps({'k"e\\y': ['"', "\\", {"deep": 'a\\"b'}]}),
]


@pytest.mark.django_db
def test_arrays_come_back_as_they_were() -> None:
    data = [text.encode() for text in TEXTS] + [b"\x00\xff"]
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT %s::text[], %s::text[][], %s::bytea[], %s::int[]",
            [[*TEXTS, None], [TEXTS, TEXTS[::-1]], data, []],
        )
        texts, nested, found, empty = cursor.fetchone()
    assert texts == [*TEXTS, None]
    assert nested == [TEXTS, TEXTS[::-1]]
    assert [bytes(value) for value in found] == data
    assert empty == []


@pytest.mark.django_db
def test_moments_come_back_as_they_were() -> None:
    second = datetime(2026, 11, 27, 19, 0, 7, tzinfo=UTC)
    moments = [second, second + timedelta(microseconds=120_000), second + timedelta(microseconds=1)]
    moments += [datetime.min.replace(tzinfo=UTC), datetime.max.replace(tzinfo=UTC)]
    with connection.cursor() as cursor:
        cursor.execute("SELECT unnest(%s::timestamptz[])", [moments])
        assert [row[0] for row in cursor.fetchall()] == moments
        cursor.execute("SELECT '2026-11-27 21:00:07+02'::timestamptz, NULL::timestamptz")
        assert cursor.fetchone() == (second, None)


@pytest.mark.django_db
@pytest.mark.parametrize("text", ["infinity", "0044-03-15 12:00:00 BC", "12026-11-27 00:00:00"])
def test_moments_that_python_cannot_tell_are_refused(text: str) -> None:
    with connection.cursor() as cursor:
        cursor.execute("SELECT %s::timestamptz", [text])
        with pytest.raises(DataError):
            cursor.fetchone()
