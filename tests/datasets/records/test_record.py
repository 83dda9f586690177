"""The record: JSON there and back, one hash for one content, and bad rows that are told what is wrong."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from apps.datasets.records import assembly, parts
from apps.datasets.records import record as r
from basics.errors import Invalid
from tests.datasets.row_samples import ALL, FULL


@pytest.mark.parametrize("row", ALL, ids=lambda row: row.id)
def test_a_record_comes_back_from_its_json(row):
    assert r.from_json(r.to_json(row)) == row
    assert r.from_values(r.to_values(row)) == row
    assert set(r.to_values(row)) == set(r.FIELDS)


def test_the_hash_is_of_the_content_alone():
    assert replace(FULL, id="other").content_hash == FULL.content_hash
    assert replace(FULL, tags=()).content_hash != FULL.content_hash
    mixed = json.dumps(dict(reversed(r.to_values(FULL).items())), indent=2)
    assert r.from_json(mixed).content_hash == FULL.content_hash


def test_the_hash_does_not_change_between_releases():
    """Versions store it: a change of the canonical form would make every stored version unreadable."""
    assert (
        r.Record(question="q", answer="a").content_hash
        == "da625f25e6a6300402e96c90e1b37f31ba828e9427266bd30bea495e3b8d2c69"
    )


@pytest.mark.parametrize(
    ("values", "field", "words"),
    [
        ({"answer": "a"}, "question", "required"),
        ({"question": " ", "answer": "a"}, "question", "Enter a question"),
        ({"question": "q"}, "answer", "Enter an answer"),
        ({"question": 3, "answer": "a"}, "question", "string"),
        ({"question": "q", "answer": "a", "type": "riddle"}, "type", "factual"),
        ({"question": "q", "answer": "a", "extra": 1}, "row", "extra"),
        ({"question": "q\x00", "answer": "a"}, "row", "NUL"),
        ({"question": "q\ud800", "answer": "a"}, "row", ""),
        ({"question": "q", "answer": "a", "scores": [{"name": "x", "value": 1.5}]}, "scores", "1"),
        ({"question": "q", "answer": "a", "scores": [{"name": "x", "value": float("nan")}]}, "row", "JSON"),
        (
            {
                "question": "q",
                "answer": "a",
                "sources": [{"document": "d", "quote": "x", "start": 9, "end": 3}],
            },
            "sources",
            "before",
        ),
        ({"question": "q", "answer": "a", "steps": [{"step": 2}]}, "steps", "from 1"),
        (
            {"question": "q", "answer": "a", "messages": [{"role": "tool", "tool_call_id": "x"}]},
            "messages",
            "no earlier message",
        ),
        ({"question": "q", "answer": "a" * 1_000_001}, "row", "bytes"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_a_bad_row_is_told_what_is_wrong(values, field, words):
    with pytest.raises(Invalid) as refused:
        r.from_values(values)
    assert words in " ".join(refused.value.data["fields"][field])


def test_json_that_is_none_is_refused():
    for text in ("", "[", "[]", "null", '{"question": "q", "answer": "a", "meta": {"n": NaN}}'):
        with pytest.raises(Invalid):
            r.from_json(text)


@pytest.mark.parametrize("row", ALL, ids=lambda row: row.id)
def test_the_assembled_text_gives_steps_and_answer_back(row):
    told = tuple(replace(step, cost_usd=None, sources=()) for step in row.steps)
    assert assembly.parse(assembly.assemble(row.steps, row.answer)) == (told, row.answer)


TRICKY = st.text(alphabet="<|>\\stepachouginrvb\n 1{}", max_size=40) | st.sampled_from(
    [*assembly.TOKENS, "<\\|step|>", "<|step|>answer\n", "<\\\\|action|>"]
)


@given(thought=TRICKY, observation=TRICKY, argument=TRICKY, answer=TRICKY)
def test_quoted_tokens_end_nothing(thought, observation, argument, answer):
    steps = (parts.Step(1, thought, "search", {"q": argument}, observation), parts.Step(2, observation))
    assert assembly.parse(assembly.assemble(steps, answer)) == (steps, answer)


@pytest.mark.parametrize("text", ["", "words", "<|step|>1", "<|thought|>x", "<|step|>x\n<|step|>answer\nx"])
def test_a_text_that_is_not_assembled_is_refused(text):
    with pytest.raises(Invalid):
        assembly.parse(text)
