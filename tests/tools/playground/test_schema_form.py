"""A form made of a JSON Schema: every kind of input, there and back, with each problem at its input."""

from __future__ import annotations

from typing import Any

import pytest

from apps.tools.playground.schema_form import (
    Field,
    SchemaForm,
    items_resized,
    limit_words,
    schema_plain,
    type_words,
)

SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "query": {"type": "string", "minLength": 3, "description": "What to look for."},
        "limit": {"type": "integer", "minimum": 1, "maximum": 50, "default": 10},
        "price": {"anyOf": [{"type": "number"}, {"type": "null"}], "default": None},
        "exact": {"type": "boolean"},
        "order": {"enum": ["new", "old", 7]},
        "tags": {"type": "array", "items": {"type": "string"}, "maxItems": 3},
        "filter": {
            "type": "object",
            "properties": {"a/b~c": {"type": "string"}, "range": {"$ref": "#/$defs/range"}},
            "required": ["range"],
        },
        "extra": {"type": "object", "additionalProperties": {"type": "integer"}},
        "either": {"oneOf": [{"type": "string"}, {"type": "integer"}]},
    },
    "required": ["query"],
    "additionalProperties": False,
    "$defs": {
        "range": {
            "type": "object",
            "properties": {"from": {"type": "integer"}, "to": {"type": "integer"}},
            "required": ["from"],
        }
    },
}
FULL: dict[str, Any] = {
    "query": "line one\nline two",
    "limit": 5,
    "price": 1.5,
    "exact": False,
    "order": 7,
    "tags": ["a", "b"],
    "filter": {"a/b~c": "x", "range": {"from": 1, "to": 2}},
    "extra": {"n": 1},
    "either": 3,
}


def sent_of(form: SchemaForm) -> dict[str, str]:
    """Return what a browser would send of a form."""
    sent: dict[str, str] = {}
    for made in form.field.walk():
        if made.kind == "array":
            sent[f"{made.pointer}#"] = str(len(made.children))
        elif made.kind != "object":
            sent[made.pointer] = made.raw.replace("\n", "\r\n")
    return sent


def place(form: SchemaForm, at: str) -> Field:
    return next(f for f in form.field.walk() if f.at == at)


def test_every_kind_of_value_survives_the_form() -> None:
    again = SchemaForm(SCHEMA, sent=sent_of(SchemaForm(SCHEMA, value=FULL)))
    assert again.is_valid()
    assert again.arguments == FULL
    assert [f.kind for f in again.fields] == [
        "text",
        "number",
        "number",
        "boolean",
        "choice",
        "array",
        "object",
        "json",
        "json",
    ]


def test_what_is_left_empty_is_left_out() -> None:
    form = SchemaForm(SCHEMA, sent={"/query": "abc"})
    assert form.is_valid()
    assert form.arguments == {"query": "abc"}


@pytest.mark.parametrize(
    ("sent", "at", "says"),
    [
        ({}, "query", "required"),
        ({"/query": "ab"}, "query", "at least 3"),
        ({"/query": "abc", "/limit": "ten"}, "limit", "number"),
        ({"/query": "abc", "/limit": "NaN"}, "limit", "number"),
        ({"/query": "abc", "/limit": "1.5"}, "limit", "integer"),
        ({"/query": "abc", "/limit": "0"}, "limit", "at least 1"),
        ({"/query": "abc", "/order": "9"}, "order", "Choose"),
        ({"/query": "abc", "/extra": "{"}, "extra", "JSON"),
        ({"/query": "abc", "/extra": '{"n": "x"}'}, "extra.n", "integer"),
        ({"/query": "abc", "/tags#": "4", **{f"/tags/{i}": "x" for i in range(4)}}, "tags", "at most 3"),
        ({"/query": "abc", "/tags#": "1", "/tags/0": ""}, "tags[0]", "required"),
        ({"/query": "abc", "/filter/a~1b~0c": "x"}, "filter.range.from", "required"),
        ({"/query": "abc", "/filter/range/to": "5"}, "filter.range.from", "required"),
    ],
    ids=[
        "missing",
        "short",
        "no-number",
        "nan",
        "fraction",
        "small",
        "choice",
        "bad-json",
        "inside-json",
        "many",
        "empty-item",
        "object",
        "nested",
    ],
)
def test_problem_stands_at_its_input(sent: dict[str, str], at: str, says: str) -> None:
    form = SchemaForm(SCHEMA, sent=sent)
    assert not form.is_valid()
    shown = [*form.problems]
    if any(f.at == at for f in form.field.walk()):
        shown += place(form, at).errors
    assert any(says in text for text in shown), [(f.at, f.errors) for f in form.field.walk()]


def test_list_grows_and_shrinks_in_the_middle() -> None:
    sent = sent_of(SchemaForm(SCHEMA, value=FULL | {"tags": ["a", "b", "c"]}))
    assert SchemaForm(SCHEMA, sent=items_resized(sent, "/tags", 1)).arguments["tags"] == ["a", "c"]
    more = SchemaForm(SCHEMA, sent=items_resized(sent, "/tags"))
    assert len(place(more, "tags").children) == 4


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "object", "properties": {"self": {"$ref": "#"}}},
        {"type": "object", "properties": {"loop": {"$ref": "#/properties/loop"}}},
        {
            "type": "object",
            "properties": {"gone": {"$ref": "#/$defs/none"}, "far": {"$ref": "other.json#/x"}},
        },
        {
            "type": "object",
            "properties": {
                "any": True,
                "none": {},
                "odd": {"enum": "x"},
                "kinds": {"type": ["string", "integer"]},
            },
        },
        {"type": "object"},
    ],
    ids=["recursive", "loop", "dangling", "odd", "empty"],
)
def test_strange_schema_still_makes_a_form(schema: dict[str, Any]) -> None:
    form = SchemaForm(schema, sent={"/any": "7"})
    form.is_valid()
    assert sum(1 for _ in form.field.walk()) < 50
    for made in form.field.walk():
        assert isinstance(made.type + made.limits + made.placeholder, str)


def test_words_of_a_schema() -> None:
    assert type_words({"type": "array", "items": {"type": "string"}}) == "list of text"
    assert limit_words(SCHEMA["properties"]["limit"]) == "at least 1, at most 50, default 10"
    assert schema_plain(SCHEMA["properties"]["price"], SCHEMA)["type"] == "number"
