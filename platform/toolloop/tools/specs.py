"""What a tool's declaration costs in every request, and its short form."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from toolloop.providers.base import ToolSpec

_CHARS_PER_TOKEN = 4
_COMPACT_DESCRIPTION = 160
_COMPACT_KEPT = frozenset(
    {
        "type",
        "enum",
        "const",
        "properties",
        "required",
        "items",
        "anyOf",
        "oneOf",
        "allOf",
        "prefixItems",
        "$ref",
        "$defs",
        "additionalProperties",
        "format",
    }
)


def spec_tokens(spec: ToolSpec) -> int:
    """Estimate the tokens a tool's declaration costs in every request: about four characters each."""
    parameters = json.dumps(spec.parameters, ensure_ascii=False, separators=(",", ":"))
    return math.ceil((len(spec.name) + len(spec.description) + len(parameters)) / _CHARS_PER_TOKEN)


def spec_compact(spec: ToolSpec) -> ToolSpec:
    """Return the declaration without what a model can do without: prose of parameters, defaults, titles, bounds.

    Arguments are still checked against the full schema, and its errors say what was left out here.
    """
    first = spec.description.strip().split("\n\n", 1)[0].replace("\n", " ")
    if len(first) > _COMPACT_DESCRIPTION:
        first = f"{first[: _COMPACT_DESCRIPTION - 1].rstrip()}…"
    return replace(spec, description=first, parameters=_compact(spec.parameters))


def _compact(schema: Any) -> Any:
    if isinstance(schema, list | tuple):
        return [_compact(item) for item in schema]
    if not isinstance(schema, Mapping):
        return schema
    kept: dict[str, Any] = {}
    for key, value in schema.items():
        if key in ("properties", "$defs"):
            # Names of these are the author's, not keywords.
            kept[key] = {name: _compact(item) for name, item in value.items()}
        elif key in ("enum", "const", "required"):
            kept[key] = value
        elif key in _COMPACT_KEPT:
            kept[key] = _compact(value)
    return kept
