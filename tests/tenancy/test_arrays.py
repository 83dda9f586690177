"""What our own dumper writes into an array is what the database reads."""

from __future__ import annotations

import json

import pytest
from django.db import connection

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
