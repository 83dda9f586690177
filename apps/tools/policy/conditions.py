"""Conditions on the arguments of a call, as a grant states them: compiled once, evaluated at each call. Pure.

A grant's ``arguments`` is a list of conditions that must all hold for the grant to apply, each an object:

- ``{"kind": "schema", "schema": {...}}``: the arguments as a whole fit a JSON Schema (see ``SCHEMA_KEYWORDS``);
- ``{"kind": <comparison>, "argument": "filter.path", "value": ...}``: one argument compares so with the value. The
  name is a path of keys joined by dots.

Comparisons: ``equals``, ``not_equals``, ``in``, ``not_in``, ``below``, ``at_most``, ``above``, ``at_least``,
``path_under`` (by components, ``..`` is never accepted), ``matches`` (regular expression over the whole text),
``select_only`` (one reading SQL statement; no value). Of a list, a grant that allows needs every item to compare so, one
that asks or denies needs a single one. An argument that is left out compares with nothing: the grant does not apply.

What cannot be evaluated (an unknown kind, a value of another type, an expression that takes too long) raises
``Unevaluable``, and the policy then denies the call: a condition never widens by failing.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import regex

from apps.tools.policy.sql_select import select_problem
from basics.patterns import pattern_compile
from toolloop.tools.validation import json_equal, problems_find

MAX_CONDITIONS = 20
MAX_TEXT = 20_000
REGEX_SECONDS = 0.05
MAX_SUBSCHEMAS = 40
_MAX_DEPTH = 40
# Keywords that the check knows: it passes others over, and a condition that says less than it seems to is a hole.
# No "pattern": its expressions run without a time limit there; "matches" has one. No "$ref": a budget could run out.
SCHEMA_KEYWORDS = frozenset(
    """
        type enum const properties required additionalProperties propertyNames minProperties maxProperties
        items prefixItems minItems maxItems uniqueItems minLength maxLength minimum maximum exclusiveMinimum
        exclusiveMaximum multipleOf anyOf oneOf allOf not title description
    """.split()
)

Check = Callable[[Mapping[str, Any]], bool]
"""Tells whether arguments meet a condition; raises Unevaluable."""


class Unevaluable(Exception):
    """A condition cannot be read, or not be evaluated on these arguments."""


def conditions_compile(conditions: Any, *, needs_all: bool) -> Check:
    """Return one check for a grant's conditions.

    Args:
        conditions: JSON value, as stored.
        needs_all: of a list, every item must compare as stated (for grants that allow), not just one.

    Raises:
        Unevaluable: they are not conditions; the text says what is wrong.
    """
    if not isinstance(conditions, list) or len(conditions) > MAX_CONDITIONS:
        raise Unevaluable(f"conditions are a list of at most {MAX_CONDITIONS} objects")
    checks = [_compiled(condition, needs_all) for condition in conditions]

    def check(arguments: Mapping[str, Any]) -> bool:
        # No short cut: what cannot be evaluated must be noticed wherever it stands.
        results = [one(arguments) for one in checks]
        return all(results)

    return check


def _compiled(condition: Any, needs_all: bool) -> Check:
    if not isinstance(condition, dict):
        raise Unevaluable("a condition is an object with a kind")
    kind = condition.get("kind")
    if kind == "schema":
        _known(condition, {"kind", "schema"})
        return _schema(condition.get("schema"))
    make = _COMPARISONS.get(kind) if isinstance(kind, str) else None
    if make is None:
        kinds = ", ".join(("schema", *_COMPARISONS))
        raise Unevaluable(f"there is no condition of kind {kind!r}: use one of {kinds}")
    _known(condition, {"kind", "argument", "value"})
    name = condition.get("argument")
    if not isinstance(name, str) or not name:
        raise Unevaluable(f"a condition {kind!r} names its argument")
    compare, keys = make(condition.get("value")), name.split(".")
    takes_list = kind in ("equals", "not_equals")

    def check(arguments: Mapping[str, Any]) -> bool:
        found: Any = arguments
        for key in keys:
            if not isinstance(found, Mapping) or key not in found:
                return False
            found = found[key]
        if isinstance(found, list) and not takes_list:
            results = [compare(item) for item in found]
            return all(results) if needs_all else any(results)
        return compare(found)

    return check


def _known(condition: Mapping[str, Any], keys: set[str]) -> None:
    extra = sorted(str(k) for k in condition if k not in keys)
    if extra:
        raise Unevaluable(f"a condition has no {extra[0]!r}: it has {', '.join(sorted(keys))}")


def _schema(schema: Any) -> Check:
    if not isinstance(schema, dict) or not schema:
        raise Unevaluable("a condition of kind 'schema' has a JSON Schema that is an object")
    _schema_known(schema, [MAX_SUBSCHEMAS])

    def check(arguments: Mapping[str, Any]) -> bool:
        if _deep(arguments, _MAX_DEPTH):
            raise Unevaluable("the arguments are nested too deeply to check")
        return not problems_find(dict(arguments), schema)

    return check


def _schema_known(schema: Any, left: list[int]) -> None:
    left[0] -= 1
    if left[0] < 0:
        raise Unevaluable(f"the schema has more than {MAX_SUBSCHEMAS} parts")
    if isinstance(schema, bool):
        return
    if not isinstance(schema, dict):
        raise Unevaluable("each part of a schema is an object, true or false")
    for key, value in schema.items():
        if key not in SCHEMA_KEYWORDS:
            hint = " (use a condition of kind 'matches')" if "attern" in key else ""
            raise Unevaluable(f"the schema's keyword {key!r} is not checked here{hint}")
        if key in ("anyOf", "oneOf", "allOf", "prefixItems") and isinstance(value, list):
            parts: Sequence[Any] = value
        elif key == "properties" and isinstance(value, dict):
            parts = list(value.values())
        elif key in ("items", "additionalProperties", "propertyNames", "not"):
            parts = [value]
        else:
            _plain_value(key, value)
            parts = []
        for part in parts:
            _schema_known(part, left)


def _plain_value(key: str, value: Any) -> None:
    """Refuse a keyword whose value the check would pass over or stumble on."""
    names = {"string", "integer", "number", "boolean", "array", "object", "null"}
    if key == "type":
        given = [value] if isinstance(value, str) else value
        fits = isinstance(given, list) and given and all(n in names for n in given)
    elif key == "enum":
        fits = isinstance(value, list)
    elif key == "required":
        fits = isinstance(value, list) and all(isinstance(n, str) for n in value)
    elif key == "uniqueItems":
        fits = isinstance(value, bool)
    elif key in ("const", "title", "description"):
        fits = True
    else:
        fits = _is_number(value) and key in SCHEMA_KEYWORDS and key not in _STRUCTURES
    if not fits:
        raise Unevaluable(f"the schema's {key!r} cannot have the value {value!r:.60}")


_STRUCTURES = frozenset({"anyOf", "oneOf", "allOf", "prefixItems", "properties"})


def _deep(value: Any, left: int) -> bool:
    if left < 0:
        return True
    if isinstance(value, Mapping):
        return any(_deep(v, left - 1) for v in value.values())
    return isinstance(value, list) and any(_deep(v, left - 1) for v in value)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _equals(value: Any) -> Callable[[Any], bool]:
    return lambda given: json_equal(given, value)


def _not_equals(value: Any) -> Callable[[Any], bool]:
    return lambda given: not json_equal(given, value)


def _in(value: Any) -> Callable[[Any], bool]:
    if not isinstance(value, list):
        raise Unevaluable("'in' and 'not_in' compare with a list")
    return lambda given: any(json_equal(given, item) for item in value)


def _not_in(value: Any) -> Callable[[Any], bool]:
    is_in = _in(value)
    return lambda given: not is_in(given)


def _ordered(holds: Callable[[Any, Any], bool]) -> Callable[[Any], Callable[[Any], bool]]:
    def make(value: Any) -> Callable[[Any], bool]:
        if not _is_number(value) or value != value:
            raise Unevaluable("'below', 'at_most', 'above' and 'at_least' compare with a number")

        def compare(given: Any) -> bool:
            if not _is_number(given) or given != given:
                raise Unevaluable("the argument isn't a number")
            return holds(given, value)

        return compare

    return make


def _path_under(value: Any) -> Callable[[Any], bool]:
    if not isinstance(value, str) or not value:
        raise Unevaluable("'path_under' compares with a path")
    is_absolute, parts = _path_parts(value)

    def compare(given: Any) -> bool:
        if not isinstance(given, str) or len(given) > MAX_TEXT:
            raise Unevaluable("the argument isn't a path")
        absolute, found = _path_parts(given)
        return absolute == is_absolute and found[: len(parts)] == parts

    return compare


def _path_parts(path: str) -> tuple[bool, list[str]]:
    if "\0" in path:
        raise Unevaluable("a path has no NUL character")
    # Both separators: what runs the call may be on any system.
    plain = unicodedata.normalize("NFC", path).replace("\\", "/")
    parts = [part for part in plain.split("/") if part not in ("", ".")]
    if ".." in parts:
        raise Unevaluable("a path with '..' is not accepted")
    return plain.startswith("/"), parts


def _matches(value: Any) -> Callable[[Any], bool]:
    if not isinstance(value, str) or len(value) > 1_000:
        raise Unevaluable("'matches' has a regular expression of at most 1,000 characters")
    try:
        pattern = pattern_compile(value)
    except (regex.error, RecursionError, OverflowError) as error:
        raise Unevaluable(f"the regular expression cannot be read: {error}") from error

    def compare(given: Any) -> bool:
        if not isinstance(given, str) or len(given) > MAX_TEXT:
            raise Unevaluable("the argument isn't text, or is too long")
        try:
            return pattern.fullmatch(given, timeout=REGEX_SECONDS) is not None
        except TimeoutError as error:
            raise Unevaluable("the regular expression takes too long on this text") from error

    return compare


def _select_only(value: Any) -> Callable[[Any], bool]:
    if value not in (None, True):
        raise Unevaluable("'select_only' needs no value")

    def compare(given: Any) -> bool:
        if not isinstance(given, str):
            raise Unevaluable("the argument isn't SQL text")
        return not select_problem(given)

    return compare


_COMPARISONS: Mapping[str, Callable[[Any], Callable[[Any], bool]]] = {
    "equals": _equals,
    "not_equals": _not_equals,
    "in": _in,
    "not_in": _not_in,
    "below": _ordered(lambda given, value: given < value),
    "at_most": _ordered(lambda given, value: given <= value),
    "above": _ordered(lambda given, value: given > value),
    "at_least": _ordered(lambda given, value: given >= value),
    "path_under": _path_under,
    "matches": _matches,
    "select_only": _select_only,
}
