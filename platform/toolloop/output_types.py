"""Types as forms of an answer: whatever pydantic's ``TypeAdapter`` takes, its JSON Schema, and the check of a value.

pydantic is imported when the first type is given, as importing this package must stay cheap.
"""

from __future__ import annotations

import dataclasses
import json
import math
from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Any

from toolloop.errors import ConfigurationError

_NO_VALUES = {
    "generator": "it would be read after the answer has ended: use list",
    "call": "it is a function, not a type",
    "arguments": "it is a function, not a type",
    "callable": "a function cannot be written as JSON",
    "is-subclass": "a class cannot be written as JSON",
    "is-instance": "only an instance made in Python fits it",
}
_MOST_PROBLEMS = 20
_SHOWN_CHARS = 80


@dataclasses.dataclass(frozen=True, slots=True)
class OutputType:
    """A type that answers are made into; make one with ``output_type``.

    Attributes:
        name: of the type, as a person would write it; "" for one without a name.
        schema: JSON Schema of its values.
        adapter: pydantic's ``TypeAdapter``.
        has_decimals: numbers of more digits than a float keeps must stay whole.
    """

    name: str
    schema: Mapping[str, Any]
    adapter: Any
    has_decimals: bool

    def validated(self, value: Any) -> tuple[Any, str]:
        """Make a JSON value into one of the type.

        Returns:
            The value and "", or None and what is wrong with the JSON value, in words a model can repair.
        """
        from pydantic import ValidationError

        try:
            # As JSON and not as Python values: a strict type takes "2026-01-31" for a date in JSON only.
            made = self.adapter.validate_json(json.dumps(value, allow_nan=False))
        except ValidationError as error:
            return None, _problems(error)
        if not _is_finite(made):
            return None, "it contains NaN or an infinite number, which JSON doesn't have"
        return made, ""


def output_type(form: Any) -> OutputType:
    """Read a type.

    Args:
        form: a pydantic model, a dataclass, a ``TypedDict``, ``list[...]``, a union, ``Literal``, ``Annotated``, a plain
            type such as ``int`` or ``date``, or a ``TypeAdapter``.

    Raises:
        ConfigurationError: pydantic does not take it, or no JSON value can become one.
    """
    return _of_class(form) if isinstance(form, type) and _is_plain(form) else _read(form)


def _is_plain(form: type) -> bool:
    # list[int] is an instance of type before Python 3.11 only; equal unions may differ in order, so only classes are kept.
    return type(form).__hash__ is type.__hash__


@lru_cache(maxsize=256)
def _of_class(form: type) -> OutputType:
    # pydantic makes the schema each time, which takes longer than the rest of a question.
    return _read(form)


def _read(form: Any) -> OutputType:
    import pydantic
    from pydantic.errors import PydanticUndefinedAnnotation, PydanticUserError
    from pydantic_core import SchemaError

    if isinstance(form, str | bytes | int | float | list | tuple | set | Mapping):
        raise ConfigurationError(f"{form!r} is a value: output needs a type or a JSON Schema")
    try:
        adapter: Any = form
        if not isinstance(form, pydantic.TypeAdapter):
            adapter = pydantic.TypeAdapter(form)
        schema = adapter.json_schema()
        kinds = set(_kinds(adapter.core_schema))
    except (PydanticUserError, PydanticUndefinedAnnotation, SchemaError, TypeError, NameError) as error:
        said = str(error).split("\n\nFor further information", maxsplit=1)[0]
        raise ConfigurationError(
            f"{_name(form) or form!r} can't be used as output: {' '.join(said.split())}"
        ) from error
    unfit = sorted(kinds & set(_NO_VALUES))
    if unfit:
        raise ConfigurationError(f"{_name(form) or form!r} can't be used as output: {_NO_VALUES[unfit[0]]}")
    return OutputType(_name(form), schema, adapter, "decimal" in kinds)


def _kinds(core: Any) -> Iterator[str]:
    """Yield the kinds of pydantic's core schema and of all that it is made of."""
    if isinstance(core, Mapping):
        kind = core.get("type")
        # What a default, a constant or a serializer holds is no schema.
        if isinstance(kind, str):
            yield "" if kind == "is-instance" and "json_schema_input_schema" in core else kind
        for key, value in core.items():
            if key not in ("serialization", "metadata", "default", "expected"):
                yield from _kinds(value)
    elif isinstance(core, list | tuple):
        for item in core:
            yield from _kinds(item)


def _name(form: Any) -> str:
    return str(getattr(form, "__name__", "")) if isinstance(form, type) else ""


def _problems(error: Any) -> str:
    found = error.errors(include_url=False, include_context=False)
    lines = []
    for problem in found[:_MOST_PROBLEMS]:
        where = ".".join(str(part) for part in problem["loc"]) or "the answer"
        given = json.dumps(problem["input"], ensure_ascii=False, default=str)
        if len(given) > _SHOWN_CHARS:
            given = f"{given[:_SHOWN_CHARS]} …"
        lines.append(f"{where}: {problem['msg']} (given: {given})")
    if len(found) > _MOST_PROBLEMS:
        lines.append(f"and {len(found) - _MOST_PROBLEMS} more")
    return "; ".join(lines)


def _is_finite(value: Any) -> bool:
    """Tell whether there is no NaN and nothing infinite in a value made from JSON."""
    from decimal import Decimal  # late: the loop itself has no use for it

    waiting, seen = [value], set[int]()
    while waiting:
        item = waiting.pop()
        if isinstance(item, float):
            if not math.isfinite(item):
                return False
        elif isinstance(item, Decimal):
            if not item.is_finite():
                return False
        elif isinstance(item, Mapping):
            waiting += [*item.keys(), *item.values()]
        elif isinstance(item, list | tuple | set | frozenset):
            waiting += item
        elif not isinstance(item, str | bytes | int | type(None)) and id(item) not in seen:
            seen.add(id(item))
            if dataclasses.is_dataclass(item) and not isinstance(item, type):
                waiting += [getattr(item, f.name, None) for f in dataclasses.fields(item)]
            elif hasattr(type(item), "model_fields"):
                waiting += vars(item).values()
                waiting += (getattr(item, "model_extra", None) or {}).values()
    return True
