"""Conditions on arguments: hostile values first."""

from __future__ import annotations

from typing import Any

import pytest

from apps.tools.policy.conditions import Unevaluable, conditions_compile
from apps.tools.policy.sql_select import select_problem
from tests.walked import each


def holds(condition: Any, arguments: dict[str, Any], *, needs_all: bool = True) -> bool:
    return conditions_compile([condition], needs_all=needs_all)(arguments)


def _path(value: str) -> dict[str, Any]:
    return {"kind": "path_under", "argument": "path", "value": value}


@pytest.mark.parametrize(
    ("path", "is_under"),
    [
        ("/data", True),
        ("/data/a/b", True),
        ("/data//a", True),
        ("/data/./a", True),
        ("//data/a", True),
        ("/database", False),
        ("/data.txt", False),
        ("data/a", False),
        ("/", False),
        ("", False),
        ("/Data/a", False),
        ("\\data\\a", True),
    ],
)
def test_path_is_compared_by_components(path: str, is_under: bool) -> None:
    assert holds(_path("/data"), {"path": path}) is is_under


@pytest.mark.parametrize(
    "path", ["/data/../etc/passwd", "..", "/data/..", "/data\\..\\x", "/data/a\0b", 5, None]
)
def test_path_that_climbs_or_is_none_cannot_be_evaluated(path: Any) -> None:
    with pytest.raises(Unevaluable):
        holds(_path("/data"), {"path": path})


def test_list_needs_all_to_allow_and_one_to_deny() -> None:
    arguments = {"path": ["/data/a", "/etc/b"]}
    assert not holds(_path("/data"), arguments)
    assert holds(_path("/data"), arguments, needs_all=False)


@pytest.mark.parametrize(
    ("kind", "value", "given", "expected"),
    [
        ("equals", 1, 1.0, True),
        ("equals", 1, True, False),
        ("equals", [1], [1], True),
        ("not_equals", "a", "b", True),
        ("in", ["a", "b"], "b", True),
        ("in", ["a"], "c", False),
        ("not_in", ["a"], "c", True),
        ("below", 10, 9.99, True),
        ("at_most", 10, 10, True),
        ("above", 10, 10, False),
        ("at_least", 10, 10, True),
        ("matches", "[a-z]+", "abc", True),
        ("matches", "[a-z]+", "abc1", False),
        ("matches", "a", "ba", False),
        ("select_only", None, "SELECT 1", True),
        ("select_only", None, "DROP TABLE x", False),
    ],
)
def test_comparison(kind: str, value: Any, given: Any, expected: bool) -> None:
    condition = {"kind": kind, "argument": "a.b", "value": value}
    assert holds(condition, {"a": {"b": given}}) is expected


def test_absent_argument_compares_with_nothing() -> None:
    for kind in ("equals", "not_equals", "below"):
        assert not holds({"kind": kind, "argument": "a.b", "value": 1}, {"a": 5})


def test_expression_that_takes_too_long_is_given_up() -> None:
    condition = {"kind": "matches", "argument": "a", "value": "(a|aa)+(a|aa)+(a|aa)+b"}
    with pytest.raises(Unevaluable, match="too long"):  # it would take longer than anyone lives
        holds(condition, {"a": "a" * 5_000})


def test_schema_is_held_and_what_it_would_pass_over_is_refused() -> None:
    schema = {
        "properties": {"n": {"type": "integer", "not": {"const": 3}, "multipleOf": 1}},
        "required": ["n"],
    }
    assert holds({"kind": "schema", "schema": schema}, {"n": 2})
    assert not holds({"kind": "schema", "schema": schema}, {"n": 3})
    assert not holds({"kind": "schema", "schema": schema}, {})


@pytest.mark.parametrize(
    "schema",
    [
        {},
        [],
        True,
        {"pattern": "a"},
        {"$ref": "#"},
        {"properties": {"a": {"format": "date"}}},
        {"type": "text"},
        {"type": []},
        {"minimum": "3"},
        {"required": "a"},
        {"enum": 3},
        {"anyOf": {}},
        {"properties": []},
        {"properties": {"a": 3}},
        {"anyOf": [{}] * 50},
        {"uniqueItems": "yes"},
        {"if": {}},
        {"maximum": True},
    ],
)
def test_schema_that_says_more_than_is_checked_is_refused(schema: Any) -> None:
    with pytest.raises(Unevaluable):
        conditions_compile([{"kind": "schema", "schema": schema}], needs_all=True)


def test_arguments_nested_too_deeply_cannot_be_evaluated() -> None:
    deep: Any = 1
    for _ in range(60):
        deep = [deep]
    with pytest.raises(Unevaluable):
        holds({"kind": "schema", "schema": {"not": {"required": ["b"]}}}, {"a": deep})


@pytest.mark.parametrize(
    "condition",
    [
        {},
        {"kind": "equals"},
        {"kind": "equals", "argument": ""},
        {"kind": "in", "argument": "a", "value": "abc"},
        {"kind": "below", "argument": "a", "value": "1"},
        {"kind": "matches", "argument": "a", "value": "("},
        {"kind": "path_under", "argument": "a", "value": "/a/.."},
        {"kind": "path_under", "argument": "a"},
        {"kind": "equals", "argument": "a", "value": 1, "negate": True},
        {"kind": ["equals"], "argument": "a"},
        {"kind": "select_only", "argument": "a", "value": "x"},
        "equals",
        None,
    ],
)
def test_condition_that_cannot_be_read_is_refused(condition: Any) -> None:
    with pytest.raises(Unevaluable):
        conditions_compile([condition], needs_all=True)


@pytest.mark.parametrize(
    "statement",
    [
        "SELECT 1",
        "select a, b from t where c = 'drop table x; --' order by 1;",
        " WITH x AS (SELECT 1) SELECT * FROM x",
        'SELECT "update" FROM t',
        "SELECT count(*) FROM a JOIN b ON a.id = b.id WHERE a.x LIKE '%it''s%'",
        "VALUES (1)",
        "(SELECT 1) UNION ALL (SELECT 2)",
    ],
)
def test_reading_statement_is_accepted(statement: str) -> None:
    assert select_problem(statement) == ""


@each(
    "statement",
    [
        "",
        ";",
        "INSERT INTO t VALUES (1)",
        "SELECT 1; DROP TABLE t",
        "SELECT 1;;",
        "WITH x AS (DELETE FROM t RETURNING *) SELECT 1",
        "SELECT * INTO x FROM t",
        "SELECT * FROM t FOR UPDATE",
        "SELECT * FROM t FOR SHARE",
        "SELECT 1 -- x",
        "SELECT /* */ 1",
        "SELECT pg_sleep(10)",
        "SELECT pg_read_file('/etc/passwd')",
        "SELECT lo_import('/etc/passwd')",
        "SELECT nextval('s')",
        "SELECT $$a$$",
        "SELECT 'a\\' ; DROP TABLE t; --'",
        "SELECT E'\\x'",
        "EXPLAIN ANALYZE SELECT 1",
        "SELECT 1\0",
        "SELECT (1",
        "SELECT 1)",
        "SELECT `a`",
        "ＳＥＬＥＣＴ 1",
        "SELECT ｐｇ_sleep(1)",
        "COPY t TO '/x'",
        "SELECT * FROM dblink('x')",
        "select set_config('a','b',false)",
        "TABLE t",
        "'SELECT' 1",
        "SELECT " + "1" * 30_000,
        "BEGIN",
        "PRAGMA x",
        "ATTACH DATABASE 'x' AS y",
        "SELECT load_extension('x')",
        "CALL f()",
        "DO $$ $$",
    ],
)
def test_other_statement_is_refused(statement: str) -> None:
    assert select_problem(statement)
