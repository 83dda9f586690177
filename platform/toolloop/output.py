"""Structured answers: a schema the provider enforces where it can, and a check that does not trust it.

The schema comes from a type (``output_types``) or is JSON Schema itself. Providers with a strict mode get a closed form of
it, in which every property is required and those that were optional may be null; nulls that the original does not know are
taken out again before the check. A type whose values are no JSON objects goes out as an object with one property,
``value``, as every provider wants an object, and comes back without it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from toolloop.errors import ConfigurationError
from toolloop.json_reading import extract_json
from toolloop.output_types import OutputType, output_type
from toolloop.providers._common import is_recursive, is_strict_schema
from toolloop.providers.base import ModelRequest, ResponseSchema
from toolloop.providers.profiles import Profile
from toolloop.tools.validation import problems_find

_NAME = re.compile(r"[^a-zA-Z0-9_-]+")
_WORDS_OF_SCHEMA = {
    "minimum": "at least {}",
    "maximum": "at most {}",
    "exclusiveMinimum": "above {}",
    "exclusiveMaximum": "below {}",
    "minLength": "at least {} characters",
    "maxLength": "at most {} characters",
    "pattern": "matches {}",
    "minItems": "at least {} items",
    "maxItems": "at most {} items",
    "format": "format {}",
    "multipleOf": "multiple of {}",
    "uniqueItems": "no item twice",
}
_ONLY_FOR_PEOPLE = frozenset(
    (
        "default",
        "title",
        "examples",
        "discriminator",
        "description",
        "$schema",
        "$comment",
        "deprecated",
        "readOnly",
        "writeOnly",
        "contentEncoding",
        "contentMediaType",
    )
)
_PROMPT = "Answer with one JSON value and nothing else: no explanation, no code fence. It must fit this JSON Schema:\n{}"
WRAPPED = "value"
"""Property in which the value of a type goes out that is no object."""

Form = Any
"""What ``output=`` takes: whatever pydantic's ``TypeAdapter`` takes, a JSON Schema of an object, or an ``Output``. Python
has no type for the first of them yet."""


@dataclass(frozen=True, slots=True)
class Output:
    """The form an answer must have; make one with ``output_of``.

    Attributes:
        name: for the provider.
        schema: what answers are checked against.
        type: what the value is made into, None for the JSON value itself.
        wire: what a provider is told.
        asked_by_provider: the provider itself asks for the form, in the turn that answers (``toolloop.modes``).
        is_recursive: what a provider is told refers to itself, which not every one takes.
        is_required: an answer that does not fit in the end fails the run; otherwise it stays as text, and
            ``RunFinished.data["output_problem"]`` says what is wrong with it.
        is_wrapped: the value is in the property ``WRAPPED`` of the object that the model writes.
    """

    name: str
    schema: Mapping[str, Any]
    type: OutputType | None
    wire: ResponseSchema
    asked_by_provider: bool = False
    is_required: bool = True
    is_recursive: bool = False
    is_wrapped: bool = False

    def parse(self, text: str) -> tuple[Any, str]:
        """Read an answer.

        Returns:
            The value and "", or None and what is wrong with it, in words a model can repair.
        """
        try:
            exact = self.type is not None and self.type.has_decimals
            value = extract_json(text, exact_numbers=exact)
        except ValueError as error:
            return None, str(error)
        whole = without_nulls(value, self.schema)
        if self.type is None:
            problems = problems_find(whole, self.schema, "the answer")
            return (None, "; ".join(problems)) if problems else (whole, "")
        if not self.is_wrapped:
            return self.type.validated(whole)
        if not isinstance(whole, dict) or set(whole) != {WRAPPED}:
            # Models that were asked in words only may write the value itself.
            made, problem = self.type.validated(without_nulls(value, self.type.schema))
            return made, problem and f"the answer must be an object with {WRAPPED!r}; {problem}"
        made, problem = self.type.validated(whole[WRAPPED])
        if problem:
            bare, other = self.type.validated(without_nulls(value, self.type.schema))
            return (None, f"under {WRAPPED!r}: {problem}") if other else (bare, "")
        return made, ""


def output_of(form: Form, name: str = "") -> Output:
    """Make an ``Output`` from a type or a JSON Schema.

    Args:
        form: whatever pydantic's ``TypeAdapter`` takes (see ``output_types.output_type``), or a JSON Schema.
        name: for the provider; the schema's title or the type's name when "".

    Raises:
        ConfigurationError: for what is neither, for a type of which no JSON value can be one, or a JSON Schema that is no
            object at its root (no provider takes another).
    """
    if isinstance(form, Output):
        return form
    if isinstance(form, Mapping):
        root = resolved(form, form)
        if root.get("type") != "object":
            raise ConfigurationError("the schema of an answer must be of type object at its root")
        return _output(_plain_root(form, root), None, name)
    made = output_type(form)
    root = resolved(made.schema, made.schema)
    if root.get("type") == "object" and not {"anyOf", "oneOf", "allOf"} & set(root):
        return _output(_plain_root(made.schema, root), made, name)
    inner = {key: value for key, value in made.schema.items() if key != "$defs"}
    wrapped = {
        "type": "object",
        "properties": {WRAPPED: inner},
        "required": [WRAPPED],
        "additionalProperties": False,
    }
    if "$defs" in made.schema:
        wrapped["$defs"] = made.schema["$defs"]
    return replace(_output(wrapped, made, name), is_wrapped=True)


def _plain_root(schema: Mapping[str, Any], root: Mapping[str, Any]) -> Mapping[str, Any]:
    if "$ref" not in schema:
        return schema
    # Recursive models: pydantic refers to the root, which providers want to see as an object.
    return {**root, "$defs": schema.get("$defs", {})}


def _output(schema: Mapping[str, Any], made: OutputType | None, name: str) -> Output:
    own = name or schema.get("title") or (made.name if made is not None else "") or "answer"
    closed = _closed(schema, schema)
    strict = is_strict_schema(closed)
    wire = ResponseSchema(
        _NAME.sub("_", str(own))[:64].strip("_") or "answer", closed if strict else dict(schema), strict
    )
    return Output(wire.name, schema, made, wire, is_recursive=is_recursive(wire.schema))


def request_structured(request: ModelRequest, output: Output, profile: Profile) -> ModelRequest:
    """Ask for structured output natively where the model has it for this request, else in the system prompt."""
    native = profile.structured_output == "always" or (
        profile.structured_output == "without_tools" and not request.tools
    )
    # Not every provider that enforces schemas takes recursive ones, so these are said in words as well.
    if native and output.wire.strict and not output.is_recursive:
        return replace(request, response_schema=output.wire)
    prompt = schema_prompt(output.schema)
    system = f"{request.system}\n\n{prompt}" if request.system else prompt
    return replace(request, system=system, response_schema=output.wire if native else None)


def schema_prompt(schema: Mapping[str, Any]) -> str:
    """Return what asks a model in words for an answer of a form."""
    return _PROMPT.format(json.dumps(schema, ensure_ascii=False))


def resolved(schema: Any, root: Mapping[str, Any]) -> Mapping[str, Any]:
    """Follow references within a schema."""
    for _ in range(20):
        reference = schema.get("$ref") if isinstance(schema, Mapping) else None
        if not isinstance(reference, str) or not reference.startswith("#/"):
            break
        schema = root
        for step in reference[2:].split("/"):
            schema = schema.get(step, {}) if isinstance(schema, Mapping) else {}
    return schema if isinstance(schema, Mapping) else {}


def _closed(schema: Any, root: Mapping[str, Any]) -> Any:
    """Return the strict form of a schema; constraints no strict mode knows are moved into descriptions."""
    if isinstance(schema, list):
        return [_closed(item, root) for item in schema]
    if not isinstance(schema, Mapping):
        return schema
    kept: dict[str, Any] = {}
    said: list[str] = [str(schema["description"])] if "description" in schema else []
    for key, value in schema.items():
        if key in ("properties", "$defs"):
            kept[key] = {name: _closed(item, root) for name, item in value.items()}
        elif key in ("items", "anyOf"):
            kept[key] = _closed(value, root)
        elif key == "oneOf":
            kept["anyOf"] = _closed(value, root)
        elif key in _WORDS_OF_SCHEMA:
            said.append(_WORDS_OF_SCHEMA[key].format(value))
        elif key not in _ONLY_FOR_PEOPLE:
            kept[key] = value
    if "type" not in kept and ("enum" in kept or "const" in kept):
        values = kept["enum"] if "enum" in kept else [kept["const"]]
        types = sorted({_type_of(value) for value in values})
        kept["type"] = types[0] if len(types) == 1 else types
    if said and "$ref" not in kept:
        kept["description"] = "; ".join(said)
    if "$ref" in kept:
        return {"$ref": kept["$ref"], **({"$defs": kept["$defs"]} if "$defs" in kept else {})}
    if "properties" in kept:
        required = set(schema.get("required", ()))
        for name, item in kept["properties"].items():
            if name not in required and not _takes_null(schema["properties"][name], root):
                kept["properties"][name] = {"anyOf": [item, {"type": "null"}]}
        kept["required"] = list(kept["properties"])
        if schema.get("additionalProperties", False) in (True, False):
            kept["additionalProperties"] = False
    return kept


def _type_of(value: Any) -> str:
    if isinstance(value, bool):
        return "boolean"
    names = {str: "string", int: "integer", float: "number", type(None): "null", list: "array"}
    return names.get(type(value), "object")


def _takes_null(schema: Any, root: Mapping[str, Any]) -> bool:
    return not problems_find(None, {**schema, "$defs": root.get("$defs", {})})


def without_nulls(value: Any, schema: Any, root: Mapping[str, Any] | None = None) -> Any:
    """Take out nulls that mean "left out" in the strict form of a schema and that the schema itself does not take.

    Args:
        value: a JSON value.
        schema: of it.
        root: holds the definitions; the schema itself when None.
    """
    return _without_nulls(value, schema, schema if root is None else root)


def _without_nulls(value: Any, schema: Any, root: Mapping[str, Any], depth: int = 0) -> Any:
    if depth > 60 or not isinstance(value, dict | list):
        return value
    schema = resolved(schema, root)
    cleaned: list[Any] = []
    for option in (*schema.get("anyOf", ()), *schema.get("oneOf", ())):
        inner = resolved(option, root)
        if not _may_be(value, inner):
            continue
        made = _without_nulls(value, inner, root, depth + 1)
        if not problems_find(made, {**inner, "$defs": root.get("$defs", {})}):
            return made
        cleaned.append(made)
    if cleaned:
        return cleaned[0]
    if isinstance(value, list):
        first = schema.get("prefixItems", ())
        rest = schema.get("items", {})
        return [
            _without_nulls(item, first[at] if at < len(first) else rest, root, depth + 1)
            for at, item in enumerate(value)
        ]
    properties, required = schema.get("properties", {}), set(schema.get("required", ()))
    return {
        name: _without_nulls(item, properties.get(name, {}), root, depth + 1)
        for name, item in value.items()
        if not (
            item is None
            and name in properties
            and name not in required
            and not _takes_null(properties[name], root)
        )
    }


def _may_be(value: Any, schema: Mapping[str, Any]) -> bool:
    """Tell whether a list or an object can be meant by an option of a union."""
    if "anyOf" in schema or "oneOf" in schema:
        return True
    if isinstance(value, list):
        return schema.get("type") == "array"
    return schema.get("type") == "object" and set(value) <= set(schema.get("properties", {}))
