"""Our validator against the reference implementation, and the words it uses."""

from __future__ import annotations

from typing import Any

import jsonschema
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from toolloop.tools.validation import MAX_PROBLEMS, problems_find

scalars = (
    st.none()
    | st.booleans()
    | st.integers(-3, 3)
    | st.sampled_from([0.0, 1.0, 0.5])
    | st.sampled_from(["", "a", "ab", "b1"])
)
values = st.recursive(
    scalars,
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["a", "b", "c"]), inner, max_size=3)
    ),
    max_leaves=8,
)
TYPES = ["string", "integer", "number", "boolean", "array", "object", "null"]


def schemas() -> st.SearchStrategy[Any]:
    leaf = st.one_of(
        st.just({}),
        st.booleans(),
        st.builds(lambda t: {"type": t}, st.sampled_from(TYPES)),
        st.builds(lambda t: {"type": t}, st.lists(st.sampled_from(TYPES), min_size=1, unique=True)),
        st.builds(lambda v: {"enum": v}, st.lists(scalars, min_size=1, max_size=3)),
        st.builds(lambda v: {"const": v}, values),
        st.builds(lambda a, b: {"minimum": a, "exclusiveMaximum": b}, st.integers(-2, 2), st.integers(-2, 2)),
        st.builds(lambda a: {"multipleOf": a}, st.sampled_from([1, 2, 0.5])),
        st.builds(lambda a, b: {"minLength": a, "maxLength": b}, st.integers(0, 2), st.integers(0, 2)),
        st.just({"pattern": "^a"}),
        st.just({"$ref": "#/$defs/word"}),
    )

    def grow(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
        named = st.dictionaries(st.sampled_from(["a", "b"]), inner, max_size=2)
        return st.one_of(
            st.builds(
                lambda p, r, e: {"type": "object", "properties": p, "required": r, "additionalProperties": e},
                named,
                st.lists(st.sampled_from(["a", "b"]), unique=True),
                inner | st.booleans(),
            ),
            st.builds(
                lambda i, p, n: {"items": i, "prefixItems": p, "minItems": n, "uniqueItems": True},
                inner,
                st.lists(inner, min_size=1, max_size=2),
                st.integers(0, 2),
            ),
            st.builds(
                lambda k, s: {k: s},
                st.sampled_from(["anyOf", "oneOf", "allOf"]),
                st.lists(inner, min_size=1, max_size=3),
            ),
            st.builds(lambda s: {"not": s}, inner),
            st.builds(lambda s: {"propertyNames": s, "patternProperties": {"^a": s}}, inner),
        )

    return st.recursive(leaf, grow, max_leaves=6)


@settings(max_examples=600, deadline=None)
@given(schema=schemas(), value=values)
def test_verdict_is_that_of_the_reference_validator(schema, value):
    root = {"allOf": [schema], "$defs": {"word": {"type": "string", "minLength": 1}}}
    expected = jsonschema.Draft202012Validator(root).is_valid(value)
    assert (problems_find(value, root) == []) == expected


@pytest.mark.parametrize(
    ("schema", "value", "words"),
    [
        ({"properties": {"n": {"type": "integer"}}}, {"n": True}, "n: expected integer, got boolean true"),
        (
            {"properties": {"l": {"items": {"type": "string"}}}},
            {"l": ["a", 1]},
            "l[1]: expected string, got integer 1",
        ),
        (
            {"properties": {"o": {"properties": {"x": {"enum": ["a", "b"]}}}}},
            {"o": {"x": "c"}},
            'o.x: "c" is not one of "a", "b"',
        ),
        (
            {"properties": {"m": {"anyOf": [{"type": "integer"}, {"type": "null"}]}}},
            {"m": "x"},
            'm: expected integer or null, got string "x"',
        ),
        (
            {"properties": {"m": {"anyOf": [{"type": "object", "required": ["k"]}, {"type": "null"}]}}},
            {"m": {}},
            "m: 'k' is required and missing",
        ),
        ({"properties": {"a": {"maxLength": 2}}}, {"a": "abc"}, "a: takes at most 2 characters"),
        ({"required": ["q"]}, {}, "the arguments: 'q' is required and missing"),
    ],
)
def test_problem_is_said_in_words_that_name_place_and_remedy(schema, value, words):
    assert words in problems_find(value, schema)[0]


def test_value_that_the_schema_hides_is_not_said():
    schema = {"properties": {"n": {"type": "string", "writeOnly": True}}}
    assert problems_find({"n": ["hidden"]}, schema) == ["n: expected string, got array"]


def test_list_of_problems_stays_short():
    schema = {"items": {"type": "string"}}
    assert len(problems_find(list(range(1000)), schema)) == MAX_PROBLEMS


def test_schema_that_refers_to_itself_ends():
    schema = {"$ref": "#/$defs/loop", "$defs": {"loop": {"$ref": "#/$defs/loop"}}}
    assert problems_find({}, schema) == ["the arguments: nested too deeply"]
    tree = {
        "$ref": "#/$defs/node",
        "$defs": {"node": {"type": "object", "properties": {"next": {"$ref": "#/$defs/node"}}}},
    }
    assert problems_find({"next": {"next": {}}}, tree) == []
    assert problems_find({"next": {"next": 5}}, tree)


def test_infinite_numbers_and_unreadable_patterns_do_no_harm():
    assert problems_find(float("inf"), {"type": "number"})
    assert problems_find("x", {"pattern": "(?<n>("}) == []


@pytest.mark.parametrize(
    ("value", "schema", "is_right"),
    [
        (10**400, {"type": "number"}, False),
        (-(10**400), {"type": "number"}, False),
        (2**1000, {"type": "number"}, True),
        (10**400, {"type": "integer"}, True),
        (10**400, {"type": "integer", "multipleOf": 10}, True),
        (10**400 + 1, {"type": "integer", "multipleOf": 10}, False),
        (10**400, {"type": "integer", "multipleOf": 0.5}, False),
        (7.5, {"type": "number", "multipleOf": 2.5}, True),
    ],
)
def test_integers_of_any_length_end_in_an_answer(
    value: float, schema: dict[str, Any], *, is_right: bool
) -> None:
    assert (problems_find(value, schema) == []) is is_right
