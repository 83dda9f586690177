"""Check a call's arguments against the tool's JSON Schema and say what is wrong in words a model can repair.

Covers the keywords of JSON Schema 2020-12 that tool schemas use (local ``$ref`` included). ``format`` and keywords it
does not know are annotations and never fail a value, as the standard says.
"""

from __future__ import annotations

import difflib
import json
import math
import re
import sys
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any

MAX_PROBLEMS = 5
_MAX_DEPTH = 100
# Checks of a value against a schema: this many, and so many more per value inside it. References that double at
# each step (a schema may be a stranger's) would else take longer than anybody waits.
_STEPS, _STEPS_PER_NODE = 20_000, 50

_TYPES: dict[str, Callable[[Any], bool]] = {
    "string": lambda v: isinstance(v, str),
    "integer": lambda v: (
        (isinstance(v, int) and not isinstance(v, bool)) or (isinstance(v, float) and v.is_integer())
    ),
    "number": lambda v: number_is_finite(v),
    "boolean": lambda v: isinstance(v, bool),
    "array": lambda v: isinstance(v, list),
    "object": lambda v: isinstance(v, dict),
    "null": lambda v: v is None,
}


def number_is_finite(value: Any) -> bool:
    """Tell whether a value is a number, and one that a float can hold: not NaN, infinite or an integer of 400 digits."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    return math.isfinite(value) if isinstance(value, float) else value.bit_length() < sys.float_info.max_exp


def problems_find(value: Any, schema: Mapping[str, Any], at: str = "") -> list[str]:
    """List what is wrong with a value, at most ``MAX_PROBLEMS`` sentences; empty when it fits.

    Args:
        value: parsed JSON.
        schema: JSON Schema; ``$ref`` resolves inside it.
        at: how to name the value itself in a sentence, "" for the arguments as a whole.
    """
    found: list[str] = []
    _Check(schema, found, [_STEPS + _STEPS_PER_NODE * _nodes(value)]).value(value, schema, at, 0)
    return found[:MAX_PROBLEMS]


def _is_multiple(value: float, step: float) -> bool:
    if isinstance(value, int) and isinstance(step, int):
        return value % step == 0  # however long they are
    return number_is_finite(value) and float(value / step).is_integer()


def _nodes(value: Any) -> int:
    """Count the values inside a value, itself included."""
    count, level = 0, [value]
    while level:
        count += len(level)
        level = [
            item
            for node in level
            if isinstance(node, dict | list)
            for item in (node.values() if isinstance(node, dict) else node)
        ]
    return count


def json_equal(one: Any, two: Any) -> bool:
    """Compare as JSON does: ``true`` is not 1, but 1 is 1.0."""
    if isinstance(one, bool) or isinstance(two, bool):
        return one is two
    if isinstance(one, dict) and isinstance(two, dict):
        return one.keys() == two.keys() and all(json_equal(v, two[k]) for k, v in one.items())
    if isinstance(one, list) and isinstance(two, list):
        return len(one) == len(two) and all(json_equal(a, b) for a, b in zip(one, two, strict=True))
    return bool(one == two)


@lru_cache(maxsize=256)
def _pattern(text: str) -> re.Pattern[str] | None:
    # The schema's author, not the model, is at fault for a pattern Python cannot read (ECMA syntax from elsewhere):
    # no argument could ever repair it, so it does not fail a call.
    try:
        return re.compile(text)
    except re.error:
        return None


def _shown(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False, default=str)
    return text if len(text) <= 60 else text[:57] + "..."


def _kind(value: Any) -> str:
    names = ("null", "boolean", "integer", "number", "string", "array", "object")
    return next((n for n in names if _TYPES[n](value)), type(value).__name__)


class _Check:
    """One walk over a value; ``found`` collects the sentences, ``left`` is what it may still take."""

    def __init__(self, root: Mapping[str, Any], found: list[str], left: list[int]) -> None:
        self.root = root
        self.found = found
        self.left = left

    def say(self, at: str, text: str) -> None:
        self.found.append(f"{at or 'the arguments'}: {text}")

    def value(self, value: Any, schema: Any, at: str, depth: int) -> None:
        if schema is True or schema == {}:
            return
        if schema is False:
            self.say(at, "no value is allowed here")
            return
        self.left[0] -= 1
        if depth > _MAX_DEPTH or self.left[0] < 0:
            self.say(at, "nested too deeply" if self.left[0] >= 0 else "too complex to check")
            return
        if "$ref" in schema:
            self.value(value, self._resolve(schema["$ref"]), at, depth + 1)
        types = schema.get("type")
        if types is not None:
            names = [types] if isinstance(types, str) else list(types)
            if not any(_TYPES[n](value) for n in names if n in _TYPES):
                # What the schema hides isn't said here either: the log of calls keeps these words.
                is_hidden = schema.get("writeOnly") is True or schema.get("format") == "password"
                said = _kind(value) if is_hidden else f"{_kind(value)} {_shown(value)}"
                self.say(at, f"expected {' or '.join(names)}, got {said}")
                return
        if "enum" in schema and not any(json_equal(value, item) for item in schema["enum"]):
            allowed = ", ".join(_shown(item) for item in schema["enum"])
            self.say(at, f"{_shown(value)} is not one of {allowed}")
            return
        if "const" in schema and not json_equal(value, schema["const"]):
            self.say(at, f"must be {_shown(schema['const'])}, got {_shown(value)}")
            return
        if isinstance(value, dict):
            self._object(value, schema, at, depth)
        elif isinstance(value, list):
            self._array(value, schema, at, depth)
        elif isinstance(value, str):
            self._string(value, schema, at)
        elif isinstance(value, int | float) and not isinstance(value, bool):
            self._number(value, schema, at)
        self._combined(value, schema, at, depth)

    def _resolve(self, ref: str) -> Any:
        node: Any = self.root
        if not ref.startswith("#"):
            return True  # Another document: nothing here can check it.
        for part in ref[1:].split("/")[1:]:
            key = part.replace("~1", "/").replace("~0", "~")
            if not isinstance(node, Mapping) or key not in node:
                return True
            node = node[key]
        return node

    def _object(self, value: dict[str, Any], schema: Mapping[str, Any], at: str, depth: int) -> None:
        properties: Mapping[str, Any] = schema.get("properties", {})
        prefix = f"{at}." if at else ""
        for name in schema.get("required", ()):
            if name not in value:
                self.say(at, f"{name!r} is required and missing")
        patterns = schema.get("patternProperties", {})
        extra = schema.get("additionalProperties", True)
        for name, item in value.items():
            known = name in properties
            if known:
                self.value(item, properties[name], prefix + name, depth + 1)
            for text, part in patterns.items():
                compiled = _pattern(text)
                if compiled is not None and compiled.search(name):
                    known = True
                    self.value(item, part, prefix + name, depth + 1)
            if known or extra is True:
                continue
            if extra is False:
                self.say(at, self._unknown(name, properties))
            else:
                self.value(item, extra, prefix + name, depth + 1)
        if "propertyNames" in schema:
            for name in value:
                self.value(name, schema["propertyNames"], f"{at or 'the arguments'} key", depth + 1)
        self._count(len(value), schema, at, "Properties", "entries")

    @staticmethod
    def _unknown(name: str, properties: Mapping[str, Any]) -> str:
        close = difflib.get_close_matches(name, properties, n=1)
        if close:
            return f"{name!r} is unknown, did you mean {close[0]!r}?"
        return f"{name!r} is unknown; known: {', '.join(properties) or 'none'}"

    def _array(self, value: list[Any], schema: Mapping[str, Any], at: str, depth: int) -> None:
        first = schema.get("prefixItems", [])
        for index, (item, part) in enumerate(zip(value, first, strict=False)):
            self.value(item, part, f"{at}[{index}]", depth + 1)
        if "items" in schema:
            for index in range(len(first), len(value)):
                if len(self.found) >= MAX_PROBLEMS:
                    break
                self.value(value[index], schema["items"], f"{at}[{index}]", depth + 1)
        if schema.get("uniqueItems"):
            for index, item in enumerate(value):
                if any(json_equal(item, other) for other in value[:index]):
                    self.say(at, f"item {index} repeats an earlier one; items must be unique")
                    break
        self._count(len(value), schema, at, "Items", "items")

    def _string(self, value: str, schema: Mapping[str, Any], at: str) -> None:
        self._count(len(value), schema, at, "Length", "characters")
        if "pattern" in schema:
            compiled = _pattern(schema["pattern"])
            if compiled is not None and not compiled.search(value):
                self.say(at, f"{_shown(value)} does not match the pattern {schema['pattern']}")

    def _number(self, value: float, schema: Mapping[str, Any], at: str) -> None:
        if "minimum" in schema and value < schema["minimum"]:
            self.say(at, f"must be at least {schema['minimum']}, got {_shown(value)}")
        if "maximum" in schema and value > schema["maximum"]:
            self.say(at, f"must be at most {schema['maximum']}, got {_shown(value)}")
        if "exclusiveMinimum" in schema and value <= schema["exclusiveMinimum"]:
            self.say(at, f"must be above {schema['exclusiveMinimum']}, got {_shown(value)}")
        if "exclusiveMaximum" in schema and value >= schema["exclusiveMaximum"]:
            self.say(at, f"must be below {schema['exclusiveMaximum']}, got {_shown(value)}")
        step = schema.get("multipleOf")
        if step and not _is_multiple(value, step):
            self.say(at, f"must be a multiple of {step}, got {_shown(value)}")

    def _count(self, count: int, schema: Mapping[str, Any], at: str, suffix: str, unit: str) -> None:
        low, high = schema.get(f"min{suffix}"), schema.get(f"max{suffix}")
        if low is not None and count < low:
            self.say(at, f"needs at least {low} {unit}, got {count}")
        if high is not None and count > high:
            self.say(at, f"takes at most {high} {unit}, got {count}")

    def _combined(self, value: Any, schema: Mapping[str, Any], at: str, depth: int) -> None:
        for part in schema.get("allOf", ()):
            self.value(value, part, at, depth + 1)
        for keyword in ("anyOf", "oneOf"):
            if keyword not in schema:
                continue
            tried = [self._alone(value, part, at, depth) for part in schema[keyword]]
            fitting = sum(1 for found in tried if not found)
            if keyword == "oneOf" and fitting > 1:
                self.say(at, "fits more than one of the allowed forms; make it fit exactly one")
            elif not fitting:
                self._no_branch(value, schema[keyword], tried, at)
        if "not" in schema and not self._alone(value, schema["not"], at, depth):
            self.say(at, f"{_shown(value)} is not allowed here")

    def _alone(self, value: Any, schema: Any, at: str, depth: int) -> list[str]:
        found: list[str] = []
        _Check(self.root, found, self.left).value(value, schema, at, depth + 1)
        return found

    def _no_branch(self, value: Any, branches: Any, tried: list[list[str]], at: str) -> None:
        # A branch of the value's own type tells the model more than "fits none": report what is wrong with that one.
        kind = _kind(value)
        same: list[list[str]] = []
        names: list[str] = []
        for branch, found in zip(branches, tried, strict=True):
            plain = self._resolve(branch["$ref"]) if "$ref" in (branch or {}) else branch
            declared = plain.get("type") if isinstance(plain, Mapping) else None
            names.append(str(declared or "another form"))
            if declared == kind:
                same.append(found)
        if same:
            same.sort(key=len)
            self.found.extend(same[0])
        else:
            self.say(at, f"expected {' or '.join(names)}, got {kind} {_shown(value)}")
