"""How a row was made, and other facts about it, go into files and come back."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from apps.datasets.formats import FORMATS, RowError
from apps.datasets.records import parts
from apps.datasets.records import record as r
from apps.datasets.records.facts import facts_of
from tests.datasets.formats.files import CARD, read, rows_of
from tests.datasets.row_samples import FULL

MADE = {
    "question": "What is the rate?",
    "answer": "Free.",
    "timestamp": "2026-11-23T10:00:00+00:00",
    "iterations": 4,
    "is_complete": False,
    "source_chunk_id": "chunk-17",
}


@pytest.mark.parametrize("name", ["jsonl", "csv", "parquet", "huggingface"])
def test_rows_carry_their_making_and_bring_it_back(name, tmp_path):
    (row,) = read("jsonl", json.dumps(MADE), tmp_path)
    assert (row.timestamp, facts_of(row)) == (
        MADE["timestamp"],
        {"iterations": 4, "is_complete": False, "source_chunk_id": "chunk-17"},
    )
    back = {found.question: found for found in rows_of(name, [row, FULL], tmp_path)}
    assert back == {row.question: row, FULL.question: FULL}
    (line,) = FORMATS["jsonl"].write(lambda: iter([row]), CARD)
    assert MADE.items() <= json.loads(line).items()
    assert json.loads(line)["meta"] == {}


def test_facts_follow_from_the_record_where_nothing_else_is_said():
    assert facts_of(FULL) == {"iterations": 3, "is_complete": True, "source_chunk_id": "44"}
    unanswerable = r.Record(question="Who?", expected=parts.Behaviour.ABSTAIN)
    assert facts_of(unanswerable) == {"iterations": 0, "is_complete": True, "source_chunk_id": ""}
    later = replace(FULL, timestamp="2026-01-01T00:00:00Z")
    assert later.content_hash == FULL.content_hash


def test_an_object_holds_several_questions_about_one_passage(tmp_path):
    asked = [{"question": "A?", "answer": "a"}, {"question": "B?", "answer": "b", "iterations": 2}]
    lines = [
        {"source_chunk_id": 9, "timestamp": "2026-11-23", "language": "en", "questions": asked},
        {"question": "C?", "answer": 'it says "questions"'},
        {"source_chunk_id": 9, "questions": []},
        {"source_chunk_id": 9, "questions": ["A?"]},
        {"questions": [{"question": "", "answer": "x"}, {"question": "D?", "answer": "d"}]},
    ]
    text = "\n".join(map(json.dumps, lines))
    found = read("jsonl", text, tmp_path)
    rows = [row for row in found if isinstance(row, r.Record)]
    assert [row.question for row in rows] == ["A?", "B?", "C?", "D?"]
    assert [facts_of(row)["source_chunk_id"] for row in rows] == ["9", "9", "", ""]
    assert (rows[1].language, facts_of(rows[1])["iterations"]) == ("en", 2)
    assert [row.row for row in found if isinstance(row, RowError)] == [3, 4, 5]


@pytest.mark.parametrize(
    "wrong",
    [
        {"iterations": -1},
        {"iterations": True},
        {"iterations": "4"},
        {"is_complete": "yes"},
        {"source_chunk_id": ["a"]},
        {"timestamp": "yesterday"},
        {"timestamp": 5},
    ],
)
def test_a_wrong_fact_is_named(wrong, tmp_path):
    (error,) = read("jsonl", json.dumps({**MADE, **wrong}), tmp_path)
    assert isinstance(error, RowError)
    assert next(iter(wrong)) in error.message or "ISO 8601" in error.message
