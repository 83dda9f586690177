"""Make a foreign JSON Schema safe to send to providers and to check values with.

A schema from a server is input like any other: it may be no schema at all, refer to other documents, nest without end,
or hold regular expressions that take hours. What cannot be used is refused with a reason, and nothing is ever fetched.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

from toolloop.mcp.text import text_clean

_MAX_CHARS = 65_536
_MAX_DEPTH = 40
_MAX_DESCRIPTION = 2_000
_ARGUMENT = re.compile(r"[a-zA-Z0-9_.-]{1,64}")
_OF_NAMES = frozenset({"properties", "$defs", "definitions", "dependentSchemas"})
_OF_VALUES = frozenset({"enum", "const", "default", "examples", "required"})
# Base URIs and dynamic references change where a reference points to.
_DROPPED = frozenset(
    {
        "$id",
        "$schema",
        "$anchor",
        "$dynamicAnchor",
        "$dynamicRef",
        "$recursiveRef",
        "$comment",
        "$vocabulary",
        "id",
    }
)


class SchemaRefused(Exception):
    """The schema cannot be used; the text says why."""


def schema_safe(schema: Mapping[str, Any]) -> dict[str, Any]:
    """Return a copy of a schema of type object that can be sent to any provider and checked in bounded time.

    Regular expressions go into the description: the server checks them, and we need not run them.

    Raises:
        SchemaRefused: too large or too deep, not a JSON Schema, or it refers to another document.
    """
    if schema.get("type", "object") != "object":
        raise SchemaRefused(f"its schema is of type {ascii(schema['type'])[:80]}, not object")
    safe = schema_answer({"type": "object", **schema})
    names = [name for name in safe.get("properties", {}) if not _ARGUMENT.fullmatch(name)]
    if names:
        raise SchemaRefused(f"no provider accepts the argument name {ascii(names[0])[:80]}")
    return safe


def schema_answer(schema: Mapping[str, Any]) -> dict[str, Any]:
    """Return such a copy of a schema that answers are to fit, of any type and with any names.

    Raises:
        SchemaRefused: too large or too deep, not a JSON Schema, or it refers to another document.
    """
    depth_check(schema)
    size = len(json.dumps(schema, ensure_ascii=False))
    if size > _MAX_CHARS:
        raise SchemaRefused(f"its schema has {size} characters, the limit is {_MAX_CHARS}")
    safe = _copied(schema)
    form_check(safe)
    return safe


def schema_copy(schema: Mapping[str, Any]) -> dict[str, Any]:
    """Return such a copy of a schema of any type, to be put together with others; check its form with ``form_check``.

    Raises:
        SchemaRefused: too deep, or it refers to another document.
    """
    depth_check(schema)
    return _copied(schema)


def schema_check(schema: Mapping[str, Any]) -> None:
    """Refuse a schema that values cannot be checked against in bounded time; nothing of it is changed or left out.

    Raises:
        SchemaRefused: too large or too deep, not a JSON Schema, it refers to another document, or it holds regular
            expressions.
    """
    depth_check(schema)
    size = len(json.dumps(schema, ensure_ascii=False))
    if size > _MAX_CHARS:
        raise SchemaRefused(f"its schema has {size} characters, the limit is {_MAX_CHARS}")
    form_check(schema)
    for part in _parts(schema):
        ref = part.get("$ref", "#")
        if not ref.startswith("#"):
            raise SchemaRefused(
                f"its schema refers to {ascii(ref)[:120]}, and other documents are not fetched"
            )
        if "pattern" in part or "patternProperties" in part:
            raise SchemaRefused(
                "regular expressions are not run here: leave out pattern and patternProperties"
            )


def depth_check(value: Any, limit: int = _MAX_DEPTH) -> None:
    """Refuse a value nested deeper than ``limit``, without recursion of our own.

    Raises:
        SchemaRefused: it is.
    """
    level = [value]
    for _ in range(limit):
        level = [
            item
            for node in level
            if isinstance(node, Mapping | list)
            for item in (node.values() if isinstance(node, Mapping) else node)
        ]
        if not level:
            return
    raise SchemaRefused(f"its schema is nested deeper than {limit}")


def _parts(value: Any) -> Iterator[Mapping[str, Any]]:
    """Give a schema and all schemas inside it."""
    if isinstance(value, list):
        for item in value:
            yield from _parts(item)
    elif isinstance(value, Mapping):
        yield value
        for key, item in value.items():
            if key in _OF_VALUES:
                continue
            inside = key in _OF_NAMES and isinstance(item, Mapping)
            yield from _parts(list(item.values()) if inside else item)


def _copied(schema: Mapping[str, Any]) -> dict[str, Any]:
    copy: dict[str, Any] = {}
    hints: list[str] = []
    for key, value in schema.items():
        if key == "$ref" and not (isinstance(value, str) and value.startswith("#")):
            raise SchemaRefused(
                f"its schema refers to {ascii(value)[:120]}, and other documents are not fetched"
            )
        if key in _DROPPED and not isinstance(value, Mapping):
            continue
        if key == "pattern" and isinstance(value, str):
            hints.append(f"Must match {text_clean(value, 200)}")
        elif key == "patternProperties":
            copy.setdefault("additionalProperties", True)
        elif key in ("description", "title") and isinstance(value, str):
            copy[key] = text_clean(value, _MAX_DESCRIPTION)
        elif key in _OF_NAMES and isinstance(value, Mapping):
            copy[key] = {name: _any(item) for name, item in value.items()}
        elif key in _OF_VALUES:
            copy[key] = value
        elif key == "items" and isinstance(value, list):
            copy["prefixItems"] = [_any(item) for item in value]  # Drafts before 2020-12.
        elif key in ("exclusiveMinimum", "exclusiveMaximum") and isinstance(value, bool):
            continue  # Draft 4.
        else:
            copy[key] = _any(value)
    if "patternProperties" in schema and copy.get("additionalProperties") is False:
        copy["additionalProperties"] = True  # The names it allows are no longer stated.
    if hints:
        copy["description"] = "; ".join([*filter(None, [copy.get("description", "")]), *hints])
    return copy


def _any(value: Any) -> Any:
    if isinstance(value, Mapping):
        return _copied(value)
    return [_any(item) for item in value] if isinstance(value, list) else value


def form_check(schema: Mapping[str, Any]) -> None:
    """Refuse what is no JSON Schema; takes some milliseconds. Raises SchemaRefused."""
    from jsonschema import Draft202012Validator, SchemaError

    try:
        Draft202012Validator.check_schema(schema)
    except SchemaError as error:
        where = "/".join(str(part) for part in error.absolute_path) or "its top"
        raise SchemaRefused(
            f"its schema isn't a valid JSON Schema, at {ascii(where)[:80]}: {ascii(error.message)[:200]}"
        ) from error
