"""Structured answers: a schema the provider enforces where it can, and a check that does not trust it.

The schema comes from a pydantic model or is JSON Schema itself. Providers with a strict mode get a closed form of it, in
which every property is required and those that were optional may be null; nulls that the original does not know are taken
out again before the check.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

from toolloop.errors import ConfigurationError
from toolloop.providers._common import is_recursive, is_strict_schema
from toolloop.providers.base import ModelRequest, ResponseSchema
from toolloop.providers.profiles import Profile
from toolloop.tools.validation import problems_find

_NAME = re.compile(r"[^a-zA-Z0-9_-]+")
_FENCE = re.compile(r"```[a-zA-Z0-9_-]*[ \t]*\n(.*?)(?:\n[ \t]*```|\Z)", re.DOTALL)
_TRAILING_COMMA = re.compile(r",(\s*[}\]])")
_LITERALS = {"True": "true", "False": "false", "None": "null"}
_WORDS_OF_SCHEMA = {
    "minimum": "at least {}", "maximum": "at most {}", "exclusiveMinimum": "above {}", "exclusiveMaximum": "below {}",
    "minLength": "at least {} characters", "maxLength": "at most {} characters", "pattern": "matches {}",
    "minItems": "at least {} items", "maxItems": "at most {} items", "format": "format {}",
    "multipleOf": "multiple of {}", "uniqueItems": "no item twice",
}  # fmt: skip
_PROMPT = "Answer with one JSON value and nothing else: no explanation, no code fence. It must fit this JSON Schema:\n{}"


@dataclass(frozen=True, slots=True)
class Output:
    """The form an answer must have; make one with ``output_of``.

    Attributes:
        name: for the provider.
        schema: what answers are checked against.
        model: pydantic model the value is made into, None for the JSON value itself.
        wire: what a provider is told.
        asked_by_provider: the provider itself asks for the form, in the turn that answers (``toolloop.modes``).
        is_recursive: what a provider is told refers to itself, which not every one takes.
        is_required: an answer that does not fit in the end fails the run; otherwise it stays as text, and
            ``RunFinished.data["output_problem"]`` says what is wrong with it.
    """

    name: str
    schema: Mapping[str, Any]
    model: Any
    wire: ResponseSchema
    asked_by_provider: bool = False
    is_required: bool = True
    is_recursive: bool = False

    def parse(self, text: str) -> tuple[Any, str]:
        """Read an answer.

        Returns:
            The value and "", or None and what is wrong with it, in words a model can repair.
        """
        try:
            value = extract_json(text)
        except ValueError as error:
            return None, str(error)
        value = _without_nulls(value, self.schema, self.schema)
        if self.model is None:
            problems = problems_find(value, self.schema, "the answer")
            return (None, "; ".join(problems)) if problems else (value, "")
        try:
            return self.model.model_validate(value), ""
        except ValueError as error:  # pydantic's ValidationError is one
            return None, str(error)


def output_of(form: type[Any] | Mapping[str, Any] | Output, name: str = "") -> Output:
    """Make an ``Output`` from a pydantic model or a JSON Schema.

    Raises:
        ConfigurationError: for anything else, or a schema that is no object at its root (no provider takes another).
    """
    if isinstance(form, Output):
        return form
    if isinstance(form, Mapping):
        return _output(form, None, name)
    model: Any = form
    if hasattr(model, "model_json_schema"):
        return _output_of_model(model, name)
    raise ConfigurationError(f"{form!r} is neither a pydantic model nor a JSON Schema")


@lru_cache(maxsize=256)
def _output_of_model(model: Any, name: str) -> Output:
    # pydantic makes the schema anew each time, which takes longer than a question costs otherwise.
    return _output(model.model_json_schema(), model, name)


def _output(schema: Mapping[str, Any], model: Any, name: str) -> Output:
    root = _resolved(schema, schema)
    if root.get("type") != "object":
        raise ConfigurationError("the schema of an answer must be of type object at its root")
    if "$ref" in schema:
        # Recursive models: pydantic refers to the root, which providers want to see as an object.
        schema = {**root, "$defs": schema.get("$defs", {})}
    own = name or schema.get("title") or getattr(model, "__name__", "") or "answer"
    closed = _closed(schema, schema)
    strict = is_strict_schema(closed)
    wire = ResponseSchema(
        _NAME.sub("_", str(own))[:64].strip("_") or "answer",
        closed if strict else dict(schema),
        strict,
    )
    return Output(wire.name, schema, model, wire, is_recursive=is_recursive(wire.schema))


def request_structured(request: ModelRequest, output: Output, profile: Profile) -> ModelRequest:
    """Ask for structured output natively where the model has it for this request, else in the system prompt."""
    native = profile.structured_output == "always" or (
        profile.structured_output == "without_tools" and not request.tools
    )
    # Not every provider that enforces schemas takes recursive ones, so these are said in words as well.
    if native and output.wire.strict and not output.is_recursive:
        return replace(request, response_schema=output.wire)
    prompt = _PROMPT.format(json.dumps(output.schema, ensure_ascii=False))
    system = f"{request.system}\n\n{prompt}" if request.system else prompt
    return replace(request, system=system, response_schema=output.wire if native else None)


def clean_json(text: str) -> str:
    """Return the JSON of a text without code fences and chatter around it, as it stands otherwise.

    The first fenced block that begins like JSON wins, then the first balanced object or array. Text without any comes
    back stripped.
    """
    body = text.strip().lstrip("\ufeff")
    for block in _FENCE.findall(body):
        if block.strip()[:1] in ("{", "["):
            body = block.strip()
            break
    if body[:1] not in ("{", "["):
        starts = [at for at in (body.find("{"), body.find("[")) if at >= 0]
        if not starts:
            return body
        body = body[min(starts) :]
    return body[: _end_of_value(body)]


def extract_json(text: str) -> Any:
    """Read the JSON value in what a model wrote: fences, chatter, trailing commas and Python's literals are forgiven.

    A truncated value is never completed: half an answer must not look like a whole one.

    Raises:
        ValueError: when there is none; the message is fit for the model.
    """
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        cleaned = clean_json(text)
    if cleaned[:1] not in ("{", "["):
        # Among words, a bare number or string is hardly the answer.
        raise ValueError("the answer holds no JSON")
    try:
        return json.loads(cleaned)
    except RecursionError:
        raise ValueError("the answer is nested too deeply") from None
    except ValueError as first:
        try:
            return json.loads(_repaired(cleaned))
        except (ValueError, RecursionError):
            raise ValueError(f"the answer is not valid JSON: {first}") from None


def _end_of_value(text: str) -> int:
    """Return where the object or array that begins a text ends; the text's end when it is not complete."""
    depth, in_string, escaped = 0, False, False
    for at, char in enumerate(text):
        if in_string:
            if escaped:
                escaped = False
            elif char == "\\":
                escaped = True
            elif char == '"':
                in_string = False
        elif char == '"':
            in_string = True
        elif char in "{[":
            depth += 1
        elif char in "}]":
            depth -= 1
            if depth == 0:
                return at + 1
    return len(text)


def _repaired(text: str) -> str:
    """Repair outside of strings: trailing commas, and True, False and None."""
    parts = re.split(r'("(?:[^"\\]|\\.)*")', text)
    for index in range(0, len(parts), 2):
        part = re.sub(r"\b(True|False|None)\b", lambda m: _LITERALS[m.group()], parts[index])
        parts[index] = part
    joined = "".join(parts)
    # Commas stand between parts as well, so they go in a second pass over the whole.
    pieces = re.split(r'("(?:[^"\\]|\\.)*")', joined)
    for index in range(0, len(pieces), 2):
        pieces[index] = _TRAILING_COMMA.sub(r"\1", pieces[index])
    return "".join(pieces)


def _resolved(schema: Any, root: Mapping[str, Any]) -> Mapping[str, Any]:
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
        elif key not in ("default", "title", "examples", "discriminator", "description", "$schema"):
            kept[key] = value
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


def _takes_null(schema: Any, root: Mapping[str, Any]) -> bool:
    return not problems_find(None, {**schema, "$defs": root.get("$defs", {})})


def _without_nulls(value: Any, schema: Any, root: Mapping[str, Any], depth: int = 0) -> Any:
    """Take out nulls that stand for "left out" in the strict form and that the schema itself does not take."""
    if depth > 60:
        return value
    schema = _resolved(schema, root)
    if isinstance(value, list) and isinstance(schema.get("items"), Mapping):
        return [_without_nulls(item, schema["items"], root, depth + 1) for item in value]
    if not isinstance(value, dict):
        return value
    for option in schema.get("anyOf", schema.get("oneOf", ())):
        inner = _resolved(option, root)
        if inner.get("type") == "object" and set(value) <= set(inner.get("properties", {})):
            return _without_nulls(value, inner, root, depth + 1)
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
