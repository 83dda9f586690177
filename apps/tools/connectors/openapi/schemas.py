"""Schemas of OpenAPI as JSON Schema 2020-12, each complete in itself: what it refers to stands under its ``$defs``."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from apps.tools.connectors.openapi.document import Document, error_at
from basics.texts import gettext as _
from toolloop.mcp.schemas import SchemaRefused, form_check, schema_copy

Direction = Literal["request", "response"]
_ODD = re.compile(r"[^A-Za-z0-9_.-]")
_DROPPED = frozenset(
    {"discriminator", "xml", "externalDocs", "readOnly", "writeOnly", "nullable", "example", "deprecated"}
)
_OF_NAMES = frozenset({"properties", "patternProperties", "$defs", "definitions", "dependentSchemas"})
_OF_VALUES = frozenset({"enum", "const", "default", "examples", "required", "type"})


@dataclass(frozen=True, slots=True)
class _Part:
    """A schema of the document, converted: what it refers to directly, and its size in characters."""

    schema: dict[str, Any]
    refs: tuple[str, ...]
    size: int


class Schemas:
    """Converts the schemas of one document; each named one once for each direction."""

    def __init__(self, document: Document) -> None:
        self._document = document
        self._parts: dict[tuple[Direction, str], _Part] = {}
        self._names: dict[str, str] = {}  # reference -> name under $defs
        self._places: dict[str, str] = {}  # and back
        self._checked: set[str] = set()

    def convert(self, schema: Any, at: str, direction: Direction) -> dict[str, Any]:
        """Return a schema as JSON Schema whose references are ``#/$defs/...``; give them with ``defs``.

        Raises:
            SourceError: it is no schema, or refers to what is not there.
        """
        return self._part(schema, at, direction).schema

    def defs(self, schemas: Iterable[Mapping[str, Any]], direction: Direction, limit: int) -> dict[str, Any]:
        """Return what converted schemas refer to, nearest first; beyond ``limit`` characters anything is allowed."""
        found: dict[str, Any] = {}
        wanted = [ref for schema in schemas for ref in _refs(schema)]
        spent = 0
        while wanted:
            following: list[str] = []
            for name in dict.fromkeys(wanted):
                if name in found:
                    continue
                part = self._named(self._places[name], direction)
                if spent + part.size > limit:
                    found[name] = {"description": f"{name}: too large to be described here."}
                    continue
                spent += part.size
                found[name] = part.schema
                following += part.refs
            wanted = following
        return found

    def _named(self, ref: str, direction: Direction) -> _Part:
        key = (direction, ref)
        found = self._parts.get(key)
        if found is None:
            found = self._parts[key] = self._part(self._document.find(ref, ref), ref, direction)
        return found

    def _part(self, schema: Any, at: str, direction: Direction) -> _Part:
        try:
            safe = schema_copy(self._plain(schema, at, direction))
            # Checking costs more than all else: once for both directions, and once for what is written often.
            whole = schema_copy(self._plain(schema, at, None))
            if (text := json.dumps(whole)) not in self._checked:
                form_check(whole)
                self._checked.add(text)
        except SchemaRefused as error:
            raise error_at(at, f"{error}.") from error
        return _Part(safe, tuple(dict.fromkeys(_refs(safe))), len(json.dumps(safe)))

    def _plain(self, schema: Any, at: str, direction: Direction | None) -> Any:
        """Return a schema as JSON Schema, without what goes the other way only; None leaves all in."""
        if isinstance(schema, bool):
            return {} if schema else {"not": {}}
        if not isinstance(schema, Mapping):
            raise error_at(at, _("Expected a schema."))
        if "$ref" in schema:
            name = self._name(schema["$ref"], at)
            rest = {k: v for k, v in schema.items() if k in ("description", "title", "default")}
            return {**rest, "$ref": f"#/$defs/{name}"}
        found: dict[str, Any] = {}
        for key, value in schema.items():
            if key in _DROPPED or key.startswith("x-"):
                continue
            if key in _OF_NAMES and isinstance(value, Mapping):
                found[key] = {
                    name: self._plain(item, f"{at}.{name}", direction)
                    for name, item in value.items()
                    if key != "properties" or not self._is_hidden(item, direction)
                }
            elif key in _OF_VALUES:
                found[key] = value
            elif isinstance(value, Mapping):
                found[key] = self._plain(value, f"{at}.{key}", direction)
            elif isinstance(value, list):
                found[key] = [
                    self._plain(item, f"{at}.{key}", direction) if isinstance(item, Mapping) else item
                    for item in value
                ]
            else:
                found[key] = value
        self._required(found, schema)
        if "example" in schema and "examples" not in found:
            found["examples"] = [schema["example"]]
        if self._document.version == 30:
            return _from_30(found, schema)
        return found

    def _required(self, found: dict[str, Any], schema: Mapping[str, Any]) -> None:
        """Ask for no property that goes the other way only."""
        properties, required = schema.get("properties"), found.get("required")
        if not isinstance(properties, Mapping) or not isinstance(required, list):
            return
        kept = [n for n in required if n not in properties or n in found["properties"]]
        if kept:
            found["required"] = kept
        else:
            del found["required"]

    def _is_hidden(self, schema: Any, direction: Direction | None) -> bool:
        if direction is None or not isinstance(schema, Mapping):
            return False
        return schema.get("readOnly" if direction == "request" else "writeOnly") is True

    def _name(self, ref: Any, at: str) -> str:
        """Return the name under ``$defs`` of what a reference points to."""
        self._document.find(ref, at)
        known = self._names.get(ref)
        if known is None:
            base = _ODD.sub("_", ref.rsplit("/", 1)[-1])[:60] or "Schema"
            number, known = 1, base
            while known in self._places:
                number += 1
                known = f"{base}_{number}"
            self._names[ref], self._places[known] = known, ref
        return known


def _refs(value: Any) -> Iterable[str]:
    if isinstance(value, Mapping):
        ref = value.get("$ref")
        if isinstance(ref, str) and ref.startswith("#/$defs/"):
            yield ref.removeprefix("#/$defs/")
        for key, item in value.items():
            if key not in _OF_VALUES:
                yield from _refs(item)
    elif isinstance(value, list):
        for item in value:
            yield from _refs(item)


def _from_30(found: dict[str, Any], schema: Mapping[str, Any]) -> dict[str, Any]:
    """Turn what OpenAPI 3.0 says in its own way into JSON Schema: null, and bounds that are excluded."""
    for bound, excluded in (("minimum", "exclusiveMinimum"), ("maximum", "exclusiveMaximum")):
        if isinstance(found.get(excluded), bool) and found.pop(excluded) and bound in found:
            found[excluded] = found.pop(bound)
    if schema.get("nullable") is not True:
        return found
    if isinstance(found.get("type"), str):
        found["type"] = [found["type"], "null"]
        if isinstance(found.get("enum"), list) and None not in found["enum"]:
            found["enum"] = [*found["enum"], None]
        return found
    if {"allOf", "oneOf", "anyOf", "enum"} & found.keys():
        outer: dict[str, Any] = {k: found.pop(k) for k in ("title", "description", "default") if k in found}
        return {**outer, "anyOf": [found, {"type": "null"}]}
    return found
