"""A form for the arguments of a call, made of the tool's JSON Schema. Pure.

Each input is named by the JSON Pointer (RFC 6901) of its value, ``/filter/tags/0``; ``<pointer>#`` holds how many items a
list has. What a form cannot show well (several possible forms, free objects, deep nesting) is an input of JSON.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Literal

from django.utils.translation import gettext as _

from toolloop.tools.validation import number_is_finite, problems_find

Kind = Literal["text", "number", "boolean", "choice", "object", "array", "json"]
MAX_ITEMS = 50
_MAX_DEPTH = 5
_MAX_REFS = 20
_INPUT_TYPES = {"date": "date", "email": "email", "uri": "url", "time": "time"}
_MISSING: Final = object()


@dataclass(slots=True)
class Field:
    """One input, or the heading over those of an object or a list.

    Attributes:
        pointer: name of the input.
        at: the same place as sentences about problems name it, ``filter.tags[0]``.
        label, help: for people.
        kind: how it is shown.
        type: its JSON type in words.
        raw: text of the input.
        choices: of a choice, (text of the input, words).
        limits: what the schema demands, in words.
        children: inputs of an object's properties, or of a list's items.
        errors: what is wrong with it.
    """

    pointer: str
    at: str
    label: str
    kind: Kind
    schema: Mapping[str, Any]
    is_required: bool
    raw: str = ""
    choices: Sequence[tuple[str, str]] = ()
    children: list[Field] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)

    @property
    def help(self) -> str:
        """Return the schema's description."""
        return str(self.schema.get("description", ""))

    @property
    def id(self) -> str:
        """Return an id for the element."""
        return "arg" + re.sub(r"[^A-Za-z0-9]+", "-", self.pointer)

    @property
    def input_type(self) -> str:
        """Return the type of the HTML input, "" for a text area."""
        if self.kind == "number":
            return "text"
        return _INPUT_TYPES.get(str(self.schema.get("format", "")), "")

    @property
    def placeholder(self) -> str:
        """Return the default or the first example, shown while the input is empty."""
        if "default" in self.schema and self.schema["default"] not in (None, ""):
            return _("default: %(value)s") % {"value": _text(self.schema["default"])}
        examples = self.schema.get("examples")
        return (
            _("e.g. %(value)s") % {"value": _text(examples[0])}
            if isinstance(examples, list) and examples
            else ""
        )

    @property
    def type(self) -> str:
        """Return the JSON type in words."""
        return type_words(self.schema)

    @property
    def limits(self) -> str:
        """Return what the schema demands beside the type, in words."""
        return limit_words(self.schema)

    def walk(self) -> Iterator[Field]:
        """Yield this field and all below it."""
        yield self
        for child in self.children:
            yield from child.walk()


class SchemaForm:
    """The inputs of one call.

    Args:
        schema: JSON Schema of the arguments object.
        sent: what a form sent, text by name; None shows ``value``.
        value: arguments that the inputs show at first.
    """

    def __init__(
        self,
        schema: Mapping[str, Any],
        *,
        sent: Mapping[str, str] | None = None,
        value: Mapping[str, Any] | None = None,
    ) -> None:
        self._root = schema
        self._sent = sent
        self._value = dict(value or {})
        self.problems: list[str] = []
        self.arguments: dict[str, Any] = {}
        found, self.field = self._read(schema, "", "", "", True, 0, self._value)
        if isinstance(found, dict):
            self.arguments = found
        # Nobody has asked yet whether it is right: what could not be read is shown by ``is_valid``.
        self._unread = [(place, place.errors) for place in self.field.walk() if place.errors]
        for place, _errors in self._unread:
            place.errors = []

    @property
    def fields(self) -> list[Field]:
        """Return the inputs of the arguments."""
        return self.field.children

    def replace(self, arguments: dict[str, Any]) -> None:
        """Take arguments as they are, also what no input could hold."""
        self.arguments, self._unread = arguments, []

    def is_valid(self) -> bool:
        """Tell whether the arguments fit the schema; puts each problem at its input, else into ``problems``."""
        by_place = {f.at: f for f in self.field.walk() if f.at}
        for place, errors in self._unread:
            place.errors = list(errors)
        has_errors = bool(self._unread)
        for problem in problems_find(self.arguments, self._root):
            at, _colon, text = problem.partition(": ")
            named = re.match(r"'([^']+)' is required and missing", text)
            prefix = "" if at == "the arguments" else f"{at}."
            shown = by_place.get(prefix + named[1]) if named else by_place.get(at)
            if shown is None:
                self.problems.append(problem)
            elif not shown.errors:
                shown.errors.append(_("This field is required.") if named else text)
            has_errors = True
        return not has_errors

    def _read(
        self, schema: Any, pointer: str, at: str, label: str, needed: bool, depth: int, value: Any
    ) -> tuple[Any, Field]:
        plain = schema_plain(schema, self._root)
        kind = _kind(plain) if depth < _MAX_DEPTH else "json"
        made = Field(pointer, at, str(plain.get("title") or label), kind, plain, needed)
        if kind == "object":
            return self._object(made, depth, value), made
        if kind == "array":
            return self._array(made, depth, value), made
        if kind == "choice":
            made.choices = [(str(i), _text(v)) for i, v in enumerate(_options(plain))]
        if self._sent is None:
            made.raw = _raw(made, value)
        else:
            made.raw = self._sent.get(pointer, "").replace("\r\n", "\n")
        return _parsed(made), made

    def _object(self, made: Field, depth: int, value: Any) -> Any:
        required = made.schema.get("required", ())
        found: dict[str, Any] = {}
        for name, part in made.schema.get("properties", {}).items():
            pointer = f"{made.pointer}/{name.replace('~', '~0').replace('/', '~1')}"
            inner = value.get(name, _MISSING) if isinstance(value, dict) else _MISSING
            at = f"{made.at}.{name}" if made.at else name
            item, child = self._read(part, pointer, at, name, name in required, depth + 1, inner)
            made.children.append(child)
            if item is not _MISSING:
                found[name] = item
        if not made.is_required and not any(f.raw.strip() for f in made.walk()):
            # Nothing of it was filled in: it is left out, not incomplete.
            for inside in made.walk():
                inside.errors.clear()
            return _MISSING
        return found

    def _array(self, made: Field, depth: int, value: Any) -> Any:
        items = made.schema.get("items", {})
        if self._sent is None:
            count = len(value) if isinstance(value, list) else 0
        else:
            text = self._sent.get(f"{made.pointer}#", "0")
            count = int(text) if text.isascii() and text.isdecimal() and len(text) < 4 else 0
        found = []
        for index in range(min(count, MAX_ITEMS)):
            inner = value[index] if isinstance(value, list) and index < len(value) else _MISSING
            place = f"{made.at}[{index}]"
            item, child = self._read(
                items, f"{made.pointer}/{index}", place, f"{made.label} {index + 1}", True, depth + 1, inner
            )
            made.children.append(child)
            if item is not _MISSING:
                found.append(item)
        return found if found or made.children or made.is_required else _MISSING


def items_resized(sent: Mapping[str, str], pointer: str, remove: int | None = None) -> dict[str, str]:
    """Return what a form sent with one more item in a list, or without one.

    Args:
        pointer: of the list.
        remove: position of the item to leave out; None adds one.
    """
    text = sent.get(f"{pointer}#", "0")
    count = int(text) if text.isascii() and text.isdecimal() and len(text) < 4 else 0
    if remove is None:
        return {**sent, f"{pointer}#": str(min(count + 1, MAX_ITEMS))}
    found: dict[str, str] = {}
    inside = re.compile(rf"{re.escape(pointer)}/(\d+)(.*)", re.S)
    for name, value in sent.items():
        match = inside.fullmatch(name)
        if match is None:
            found[name] = value
        elif int(match[1]) != remove:
            index = int(match[1]) - (int(match[1]) > remove)
            found[f"{pointer}/{index}{match[2]}"] = value
    return found | {f"{pointer}#": str(max(count - 1, 0))}


def schema_plain(schema: Any, root: Mapping[str, Any]) -> dict[str, Any]:
    """Return a schema without references and without "or null", as far as that leaves one form; ``{}`` for any value."""
    found: dict[str, Any] = dict(schema) if isinstance(schema, Mapping) else {}
    for _turn in range(_MAX_REFS):
        outer = {k: v for k, v in found.items() if k not in ("$ref", "anyOf", "oneOf", "allOf")}
        inner = _single(found, root)
        if inner is None:
            break
        found = {**inner, **outer}
    kinds = found.get("type")
    if isinstance(kinds, list):
        rest = [k for k in kinds if k != "null"]
        found["type"] = rest[0] if len(rest) == 1 else rest
    return found


def _single(schema: Mapping[str, Any], root: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return the one schema behind a reference or a combination, None where there is none or several."""
    if "$ref" in schema:
        target: Any = root
        for part in str(schema["$ref"]).partition("#")[2].split("/")[1:]:
            key = part.replace("~1", "/").replace("~0", "~")
            target = target.get(key) if isinstance(target, Mapping) else None
        return dict(target) if isinstance(target, Mapping) else {}
    for keyword in ("anyOf", "oneOf", "allOf"):
        parts = schema.get(keyword)
        if isinstance(parts, list):
            real = [p for p in parts if isinstance(p, Mapping) and p.get("type") != "null"]
            return dict(real[0]) if len(real) == 1 else None
    return None


def type_words(schema: Mapping[str, Any]) -> str:
    """Return the type of a plain schema in words, for example "list of text"."""
    if "enum" in schema or "const" in schema:
        return _("one of %(values)s") % {"values": ", ".join(_text(v) for v in _options(schema)[:12])}
    kind = schema.get("type")
    if kind == "array":
        items = schema.get("items")
        if not isinstance(items, Mapping) or not items:
            return _("list of values")
        return _("list of %(type)s") % {"type": type_words(items)}
    names = {
        "string": _("text"),
        "integer": _("whole number"),
        "number": _("number"),
        "object": _("object"),
        "boolean": _("yes or no"),
    }
    if isinstance(kind, list):
        return _(" or ").join(names.get(k, str(k)) for k in kind)
    if kind is None and ("anyOf" in schema or "oneOf" in schema):
        return _("one of several types")
    return names.get(str(kind), str(kind)) if kind else _("any value")


def limit_words(schema: Mapping[str, Any]) -> str:
    """Return the limits of a plain schema in words, for example "at least 1, at most 50"."""
    words = {
        "minimum": _("at least %(limit)s"),
        "exclusiveMinimum": _("above %(limit)s"),
        "maximum": _("at most %(limit)s"),
        "exclusiveMaximum": _("below %(limit)s"),
        "multipleOf": _("a multiple of %(limit)s"),
        "minLength": _("at least %(limit)s characters"),
        "maxLength": _("at most %(limit)s characters"),
        "pattern": _("matching %(limit)s"),
        "minItems": _("at least %(limit)s items"),
        "maxItems": _("at most %(limit)s items"),
        "format": _("as %(limit)s"),
    }
    found = [text % {"limit": schema[key]} for key, text in words.items() if key in schema]
    if "default" in schema and schema["default"] is not None:
        found.append(_("default %(value)s") % {"value": _text(schema["default"])})
    return ", ".join(found)


def _kind(schema: Mapping[str, Any]) -> Kind:
    if "enum" in schema or "const" in schema:
        return "choice"
    if "anyOf" in schema or "oneOf" in schema or "allOf" in schema:
        return "json"
    kind = schema.get("type")
    if kind == "string":
        return "text"
    if kind in ("integer", "number"):
        return "number"
    if kind == "boolean":
        return "boolean"
    if kind == "object" and schema.get("properties"):
        return "object"
    if kind == "array" and isinstance(schema.get("items"), Mapping) and schema["items"]:
        return "array"
    return "json"


def _options(schema: Mapping[str, Any]) -> list[Any]:
    options = [schema["const"]] if "const" in schema else schema.get("enum")
    return list(options) if isinstance(options, list) else []


def _raw(made: Field, value: Any) -> str:
    if value is _MISSING or (value is None and made.kind != "json"):
        return ""
    if made.kind == "choice":
        return next((raw for raw, words in made.choices if words == _text(value)), "")
    if made.kind == "boolean":
        return "true" if value is True else "false" if value is False else ""
    if made.kind == "json":
        return json.dumps(value, ensure_ascii=False, indent=2)
    return _text(value)


def _parsed(made: Field) -> Any:
    raw = made.raw if made.kind == "text" else made.raw.strip()
    if raw == "":
        if made.is_required and made.pointer:
            made.errors.append(_("This field is required."))
        return _MISSING
    if made.kind == "text":
        return raw
    if made.kind == "boolean":
        return raw == "true"
    if made.kind == "choice":
        options = _options(made.schema)
        if raw.isascii() and raw.isdecimal() and len(raw) < 6 and int(raw) < len(options):
            return options[int(raw)]
        made.errors.append(_("Choose one of the values."))
        return _MISSING
    try:
        value = json.loads(raw)
    except (ValueError, RecursionError):
        value = _MISSING
    if made.kind == "json":
        if value is _MISSING:
            made.errors.append(_('Write JSON, for example "text", 7, ["a", "b"] or {"key": 1}.'))
        return value
    if not number_is_finite(value):
        made.errors.append(_("Give a number."))
        return _MISSING
    return value


def _text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
