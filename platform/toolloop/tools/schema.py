"""From a function's type hints and docstring to the JSON Schema of its arguments.

Understands str, int, float, bool, None, Any, Optional and unions, list, tuple, set, dict, Literal, Enum, TypedDict, NewType
and ``Annotated`` (a string describes, pydantic's ``Field`` constrains). Every other type is pydantic's: dataclasses, named
tuples, models, Decimal, bytes (text, as UTF-8), dates and times, UUID, paths and what else a ``TypeAdapter`` has a JSON Schema
for; an argument is read as it reads JSON. pydantic is imported when a tool needs it, not before.
"""

from __future__ import annotations

import collections.abc
import enum
import inspect
import json
import types
import typing
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any, Literal, Union, get_args, get_origin, get_type_hints, is_typeddict

from toolloop.tools.context import FromContext, ToolContext, ToolDefinitionError
from toolloop.tools.docchecks import names_compare, type_compare, words_compare
from toolloop.tools.docstrings import docstring_read
from toolloop.tools.results import NoJsonForm, is_plain, json_value
from toolloop.tools.returns import return_check
from toolloop.tools.validation import MAX_PROBLEMS, json_equal, problems_find

Converter = Callable[[Any], Any]

_PLAIN: dict[Any, dict[str, Any]] = {
    str: {"type": "string"},
    int: {"type": "integer"},
    float: {"type": "number"},
    bool: {"type": "boolean"},
    type(None): {"type": "null"},
    None: {"type": "null"},
    Any: {},
    object: {},
    list: {"type": "array"},
    dict: {"type": "object"},
}
_SEQUENCES = (list, collections.abc.Sequence, collections.abc.Iterable, collections.abc.Collection)
_SETS = (set, frozenset, collections.abc.Set)
_MAPPINGS = (dict, collections.abc.Mapping, collections.abc.MutableMapping)


@dataclass(frozen=True, slots=True)
class Signature:
    """What ``signature_read`` found; the fields are those of ``Tool``."""

    description: str
    parameters: dict[str, Any]
    converters: dict[str, Converter]
    context_parameter: str
    injected: dict[str, str]


@dataclass(frozen=True, slots=True)
class _Form:
    """A type as JSON Schema, and what turns a valid JSON value into it (None: it already is one)."""

    schema: dict[str, Any]
    convert: Converter | None = None


@dataclass(slots=True)
class _Reader:
    """Reads the hints of one function; ``where`` names the parameter for errors, ``defs`` collects ``$defs``."""

    function: str
    where: str = ""
    defs: dict[str, Any] = field(default_factory=dict)
    open_types: list[Any] = field(default_factory=list)

    def fail(self, text: str) -> ToolDefinitionError:
        return ToolDefinitionError(f"{self.function}, parameter {self.where!r}: {text}")

    def read(self, hint: Any) -> _Form:
        if get_origin(hint) is Annotated:
            return self._annotated(hint)
        if isinstance(hint, collections.abc.Hashable) and hint in _PLAIN:
            return _Form(dict(_PLAIN[hint]), _whole if hint is int else None)
        alias = getattr(typing, "TypeAliasType", None)
        if alias is not None and isinstance(hint, alias):
            return self.read(hint.__value__)
        origin, args = get_origin(hint), get_args(hint)
        if hasattr(hint, "__supertype__"):
            return self.read(hint.__supertype__)
        if origin is Literal:
            return self._choice(args)
        if origin in (Union, types.UnionType):
            return self._union(args)
        if origin in _SEQUENCES:
            return self._sequence(args[0], list)
        if origin in _SETS or hint in (set, frozenset):
            form = self._sequence(args[0] if args else Any, frozenset if origin is frozenset else set)
            return _Form({**form.schema, "uniqueItems": True}, form.convert)
        if origin is tuple:
            return self._tuple(args)
        if origin in _MAPPINGS:
            return self._mapping(args)
        if is_typeddict(hint):
            return self._typed_dict(hint)
        if isinstance(hint, type) and issubclass(hint, enum.Enum):
            return self._choice(tuple(hint))
        return self._pydantic(hint)

    def _choice(self, members: tuple[Any, ...]) -> _Form:
        """Read an enum or the values of a Literal: members are known by what stands for them in JSON."""
        if not all(isinstance(m, enum.Enum) or (is_plain(m) and m == m) for m in members):
            raise self.fail(f"{members!r} has no JSON form; a Literal takes str, int, bool, None")
        values = [json_value(member) for member in members]
        if all(not isinstance(member, enum.Enum) for member in members):
            return _Form(_enum_schema(values))
        pairs = list(zip(values, members, strict=True))
        return _Form(_enum_schema(values), lambda value: next(m for v, m in pairs if json_equal(v, value)))

    def _annotated(self, hint: Any) -> _Form:
        inner, *marks = get_args(hint)
        texts = [mark for mark in marks if isinstance(mark, str)]
        described = len(texts) == len(marks)
        form = self.read(inner) if described else self._pydantic(hint)
        if texts:
            return _Form({**form.schema, "description": " ".join(texts)}, form.convert)
        return form

    def _union(self, args: tuple[Any, ...]) -> _Form:
        forms = [self.read(arg) for arg in args]
        schema = {"anyOf": [form.schema for form in forms]}
        if all(form.convert is None for form in forms):
            return _Form(schema)

        def convert(value: Any) -> Any:
            problem: ValueError | None = None
            for form in forms:
                if problems_find(value, {**form.schema, "$defs": self.defs}):
                    continue
                try:
                    return form.convert(value) if form.convert else value
                except ValueError as error:  # A schema says less than its type: not every text is a date.
                    problem = problem or error
            if problem is not None:
                raise problem
            return value

        return _Form(schema, convert)

    def _sequence(self, item: Any, make: Callable[[Any], Any]) -> _Form:
        form = self.read(item)
        schema: dict[str, Any] = {"type": "array"}
        if form.schema:
            schema["items"] = form.schema
        inner = form.convert
        if inner is None:
            return _Form(schema, None if make is list else make)
        return _Form(schema, lambda value: make(inner(v) for v in value))

    def _tuple(self, args: tuple[Any, ...]) -> _Form:
        if len(args) == 2 and args[1] is Ellipsis:
            return self._sequence(args[0], tuple)
        forms = [self.read(arg) for arg in args]
        schema = {
            "type": "array",
            "prefixItems": [form.schema for form in forms],
            "minItems": len(forms),
            "maxItems": len(forms),
        }
        return _Form(
            schema,
            lambda value: tuple(f.convert(v) if f.convert else v for f, v in zip(forms, value, strict=True)),
        )

    def _mapping(self, args: tuple[Any, ...]) -> _Form:
        if args[0] is not str:
            raise self.fail(f"JSON keys are strings: use dict[str, ...] instead of dict[{args[0]}, ...]")
        form = self.read(args[1])
        schema: dict[str, Any] = {"type": "object"}
        if form.schema:
            schema["additionalProperties"] = form.schema
        inner = form.convert
        if inner is None:
            return _Form(schema)
        return _Form(schema, lambda value: {k: inner(v) for k, v in value.items()})

    def _typed_dict(self, hint: type) -> _Form:
        if hint in self.open_types:
            raise self.fail(f"{hint.__name__} contains itself; use a pydantic model for recursive data")
        self.open_types.append(hint)
        required = set(hint.__required_keys__)  # type: ignore[attr-defined]
        forms: dict[str, _Form] = {}
        for name, item in get_type_hints(hint, include_extras=True).items():
            plain = item
            while (mark := get_origin(plain)) in (typing.Required, typing.NotRequired):
                # __required_keys__ misses these marks where annotations are strings.
                (required.add if mark is typing.Required else required.discard)(name)
                plain = get_args(plain)[0]
            forms[name] = self.read(plain)
        self.open_types.pop()
        schema: dict[str, Any] = {
            "type": "object",
            "properties": {name: form.schema for name, form in forms.items()},
            "required": [name for name in forms if name in required],
            "additionalProperties": False,
        }
        converters = {name: form.convert for name, form in forms.items() if form.convert}
        if not converters:
            return _Form(schema)
        return _Form(
            schema, lambda value: {k: converters[k](v) if k in converters else v for k, v in value.items()}
        )

    def _pydantic(self, hint: Any) -> _Form:
        import pydantic

        try:
            adapter: pydantic.TypeAdapter[Any] = pydantic.TypeAdapter(hint)
            schema = json_value(adapter.json_schema())  # A default may be NaN.
        except Exception as error:  # pydantic's own, and what hooks of the type's author raise
            shown = hint.__name__ if isinstance(hint, type) else repr(hint)
            raise self.fail(
                f"{shown} has no JSON form; use str, int, list, dict, Literal, a TypedDict, a dataclass or a pydantic model "
                f"({str(error).splitlines()[0]})"
            ) from error
        for name, definition in schema.pop("$defs", {}).items():
            if self.defs.setdefault(name, definition) != definition:
                raise self.fail(f"two different types are named {name}: rename one")
        schema.pop("title", None)

        def convert(value: Any) -> Any:
            try:
                return adapter.validate_json(json.dumps(value))
            except pydantic.ValidationError as error:
                raise ValueError(_problems(error.errors(include_url=False))) from error

        return _Form(schema, convert)


def _problems(errors: Sequence[Any]) -> str:
    """Return what pydantic finds wrong, in one line."""
    found = []
    for error in errors[:MAX_PROBLEMS]:
        at = ".".join(str(part) for part in error["loc"])
        found.append(f"{at}: {error['msg']}" if at else str(error["msg"]))
    return "; ".join(found)


def _whole(value: Any) -> Any:
    """Make 5.0, which JSON Schema counts as an integer, the int that the function expects."""
    return int(value) if isinstance(value, float) else value


def _enum_schema(values: list[Any]) -> dict[str, Any]:
    names = {str: "string", bool: "boolean", int: "integer", float: "number", type(None): "null"}
    kinds = sorted({names[type(value)] for value in values if type(value) in names})
    schema: dict[str, Any] = {"enum": values}
    if len(kinds) == 1:
        schema = {"type": kinds[0], **schema}
    return schema


def signature_read(
    function: Callable[..., Any], *, excluded: Sequence[str] = (), doc: str | None = None
) -> Signature:
    """Read a function's signature and docstring.

    Args:
        function: a plain or async function, or a bound method.
        excluded: parameters that are the application's, not the model's.
        doc: used instead of the function's own docstring.

    Raises:
        ToolDefinitionError: for a missing or unusable type hint, ``*args``, a docstring that names parameters the function
            does not have, leaves some out, or states another type than the hint; a return type without a JSON form.
    """
    name = getattr(function, "__name__", repr(function))
    try:
        hints = get_type_hints(function, include_extras=True)
    except NameError as error:
        raise ToolDefinitionError(
            f"{name}: a type hint cannot be resolved ({error}); use types its module imports at run time"
        ) from error
    return_check(name, hints.get("return"))
    read = docstring_read(function.__doc__ if doc is None else doc)
    reader = _Reader(name)
    properties: dict[str, Any] = {}
    required: list[str] = []
    converters: dict[str, Converter] = {}
    context = ""
    injected: dict[str, str] = {}
    signature = inspect.signature(function).parameters
    if unknown := [n for n in excluded if n not in signature]:
        raise ToolDefinitionError(f"{name}: excluded {', '.join(unknown)} isn't a parameter")
    for parameter in signature.values():
        reader.where = parameter.name
        if parameter.kind not in (parameter.POSITIONAL_OR_KEYWORD, parameter.KEYWORD_ONLY):
            raise reader.fail("a model cannot fill *args, **kwargs or positional-only parameters")
        hint = hints.get(parameter.name)
        key = _context_key(parameter.name, hint, excluded)
        if key:
            injected[parameter.name] = key
            continue
        if hint is None:
            raise reader.fail("has no type hint")
        if hint is ToolContext:
            context = parameter.name
            continue
        form = reader.read(hint)
        schema = form.schema
        if parameter.default is parameter.empty:
            required.append(parameter.name)
        elif (default := _json_default(parameter.default)) is not parameter.empty:
            schema = {**schema, "default": default}
        entry = read.parameters.get(parameter.name)
        if entry is not None:
            type_compare(reader.fail, entry, schema, parameter.default is not parameter.empty)
            if read.is_compact:
                words_compare(reader.fail, entry.type, hint)
            if entry.text:
                schema = {**schema, "description": entry.text}
        properties[parameter.name] = schema
        if form.convert is not None:
            converters[parameter.name] = form.convert
    names_compare(name, read, properties, {context, *injected})
    parameters: dict[str, Any] = {
        "type": "object",
        "properties": properties,
        "required": required,
        "additionalProperties": False,
    }
    if reader.defs:
        parameters["$defs"] = reader.defs
    return Signature(read.description, parameters, converters, context, injected)


def _context_key(name: str, hint: Any, excluded: Sequence[str]) -> str:
    """Return the key of the context a parameter is filled from, "" for one that the model fills."""
    if get_origin(hint) is Annotated:
        for mark in get_args(hint)[1:]:
            if isinstance(mark, FromContext):
                return mark.key or name
    return name if name in excluded else ""


def _json_default(value: Any) -> Any:
    try:
        return json_value(value)
    except NoJsonForm:
        # The default stays the function's own business; the model only needs to know that it may leave it out.
        return inspect.Parameter.empty
