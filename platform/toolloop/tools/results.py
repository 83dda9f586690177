"""What a tool returns, as JSON: one rule for each type, for results, payloads and the arguments of nested calls.

- text: as it is, NUL and halves of surrogate pairs as U+FFFD (no store and no wire takes them)
- numbers: as they are; NaN and the infinities as the texts ``NaN``, ``Infinity``, ``-Infinity``; whole numbers of more than
  4,000 digits as hexadecimal text (``0x...``)
- ``Decimal``, ``Fraction``, ``complex``, ``UUID``, paths, IP addresses, time zones, patterns: as text
- dates, times: ISO 8601; ``timedelta``: ISO 8601 duration (``P1DT2H``)
- bytes: their text where they are UTF-8, else ``data:;base64,...``
- enum members: their value, or their name where the value is no plain one
- dataclasses, attrs classes, ``SimpleNamespace``: objects of their fields; pydantic models: ``model_dump(mode="json")``
- lists, tuples, named tuples, deques, ranges, views, generators: arrays; sets: sorted arrays
- mappings: objects; keys as JSON writes them (``True`` is ``true``), of other types by the rules above
- exceptions: ``ValueError: its text``; numpy's scalars and arrays: what ``item`` and ``tolist`` give
"""

from __future__ import annotations

import base64
import collections
import dataclasses
import datetime as dt
import enum
import io
import json
import math
import os
import re
import types
from collections.abc import Iterable, Iterator, Mapping, MappingView
from typing import Any

from toolloop.storable import text_storable

MOST_VALUES = 1_000_000
"""Values in one result; a generator without end must not fill the memory."""
_MOST_DEPTH = 150
_MOST_BITS = 13_000  # About 4,000 digits; Python writes no number of more than 4,300.

# By name, so that a process that knows none of them need not load their modules.
_TEXTUAL = frozenset(
    {
        ("decimal", "Decimal"),
        ("fractions", "Fraction"),
        ("uuid", "UUID"),
        ("ipaddress", "_BaseAddress"),
        ("ipaddress", "_BaseNetwork"),
    }
)
MOMENTS: tuple[type, ...] = (dt.date, dt.time)  # datetime is a date.
BINARY: tuple[type, ...] = (bytes, bytearray, memoryview)
ARRAYS: tuple[type, ...] = (list, tuple, collections.deque, range, collections.abc.Set, MappingView, Iterator)
OBJECTS: tuple[type, ...] = (Mapping, types.SimpleNamespace)


class NoJsonForm(TypeError):
    """A value has no JSON form; the message says what and where."""


def json_text(value: Any) -> tuple[str, Any]:
    """Return a value as JSON text, and as the JSON value that this text holds.

    Raises:
        NoJsonForm: it has none.
    """
    try:
        text = json.dumps(value, ensure_ascii=False, allow_nan=False)
        text.encode()
        if "\\u0000" not in text:
            plain = json.loads(text)
            # What is equal has lost nothing, and Python compares faster than we look; tuples are never equal to arrays.
            if plain == value or not _has_lost_keys(value, plain):
                return text, plain
    except (TypeError, ValueError, RecursionError):
        pass  # Not plain JSON, or a lone surrogate: the rules of this module.
    plain = json_value(value)
    return json.dumps(plain, ensure_ascii=False, allow_nan=False), plain


def json_copy(value: Any) -> Any:
    """Return the JSON value that ``json_text`` returns beside its text, without writing a text that nobody reads.

    Raises:
        NoJsonForm: it has none.
    """
    try:
        return _copied(value)
    except (_NotPlain, UnicodeEncodeError, RecursionError):
        return json_text(value)[1]


class _NotPlain(Exception):
    """A value is not written as it is."""


def _copied(value: Any) -> Any:
    """Return a copy of what a JSON reader could have made. Raises _NotPlain, UnicodeEncodeError."""
    kind = type(value)
    if kind is str:
        if "\x00" in value:
            raise _NotPlain
        if not value.isascii():
            value.encode()
        return value
    if kind is dict:
        if any(type(key) is not str for key in value):
            raise _NotPlain
        return {_copied(key): _copied(item) for key, item in value.items()}
    if kind is list:
        return [_copied(item) for item in value]
    if value is None or kind is bool:
        return value
    if (kind is int and value.bit_length() <= _MOST_BITS) or (kind is float and math.isfinite(value)):
        return value
    raise _NotPlain


def json_value(value: Any) -> Any:
    """Return a value as JSON values (str, int, float, bool, None, list, dict), which any JSON writer takes.

    Raises:
        NoJsonForm: it has none: an object of a class this module has no rule for, one that contains itself, two keys of one
            text, more than ``MOST_VALUES`` values, or more than 150 levels.
    """
    return _Encoder().encode(value, "", 0)


def _has_lost_keys(value: Any, plain: Any) -> bool:
    """Tell whether two keys of a mapping became one text: ``{1: ..., "1": ...}``."""
    if isinstance(value, dict):
        return len(value) != len(plain) or any(
            _has_lost_keys(a, b) for a, b in zip(value.values(), plain.values(), strict=True)
        )
    if isinstance(value, list | tuple):
        return any(_has_lost_keys(a, b) for a, b in zip(value, plain, strict=True))
    return False


class _Encoder:
    """One walk over a value."""

    def __init__(self) -> None:
        self._left = MOST_VALUES
        self._open: set[int] = set()

    def encode(self, value: Any, at: str, depth: int) -> Any:
        self._left -= 1
        if self._left < 0:
            raise NoJsonForm(f"it has more than {MOST_VALUES:,} values")
        if value is None or value is True or value is False:
            return value
        if isinstance(value, enum.Enum):
            return self._member(value, at, depth)
        if isinstance(value, str):
            return text_storable(str(value))
        if isinstance(value, int):
            return int(value) if value.bit_length() <= _MOST_BITS else hex(value)
        if isinstance(value, float):
            return float(value) if math.isfinite(value) else _not_finite(value)
        if depth > _MOST_DEPTH:
            raise NoJsonForm(f"it has more than {_MOST_DEPTH} levels")
        if id(value) in self._open:
            raise NoJsonForm(f"{at or 'it'} contains itself")
        self._open.add(id(value))
        try:
            return self._compound(value, at, depth + 1)
        finally:
            self._open.discard(id(value))

    def _compound(self, value: Any, at: str, depth: int) -> Any:
        if isinstance(value, Mapping):
            return self._mapping(value.items(), at, depth)
        if isinstance(value, list | tuple):
            return self._array(value, at, depth)
        if isinstance(value, BINARY):
            data: Any = value
            return bytes_text(bytes(data))
        if isinstance(value, dt.date | dt.time):
            return value.isoformat()
        if isinstance(value, dt.timedelta):
            return duration_text(value)
        if isinstance(value, re.Pattern):
            return self.encode(value.pattern, at, depth)
        if isinstance(value, BaseException):
            return text_storable(f"{type(value).__name__}: {value}")
        if is_textual(type(value)):
            return text_storable(str(value))
        if not isinstance(value, type):
            return self._object(value, at, depth)
        raise NoJsonForm(f"{at or 'it'} is the class {value.__name__}")

    def _object(self, value: Any, at: str, depth: int) -> Any:
        if callable(getattr(value, "model_dump", None)):
            return self.encode(_dumped(value), at, depth)
        if dataclasses.is_dataclass(value):
            names = [field.name for field in dataclasses.fields(value)]
            return self._mapping(((n, getattr(value, n)) for n in names), at, depth)
        if hasattr(type(value), "__attrs_attrs__"):
            names = [field.name for field in type(value).__attrs_attrs__]
            return self._mapping(((n, getattr(value, n)) for n in names), at, depth)
        if isinstance(value, types.SimpleNamespace):
            return self._mapping(vars(value).items(), at, depth)
        if isinstance(value, collections.abc.Set) and not isinstance(value, MappingView):
            return sorted(self._array(value, at, depth), key=lambda v: json.dumps(v, sort_keys=True))
        if type(value).__module__.partition(".")[0] == "numpy":
            return self.encode(value.tolist(), at, depth)
        if isinstance(value, io.IOBase):
            raise NoJsonForm(f"{at or 'it'} is an open file")
        if isinstance(value, ARRAYS):
            items: Any = value
            return self._array(items, at, depth)
        raise NoJsonForm(f"{at or 'it'} is a {type(value).__name__}, which has no JSON form")

    def _member(self, value: enum.Enum, at: str, depth: int) -> Any:
        return self.encode(value.value if is_plain(value.value) else value.name, at, depth)

    def _array(self, items: Iterable[Any], at: str, depth: int) -> list[Any]:
        return [self.encode(item, f"{at}[{n}]", depth) for n, item in enumerate(items)]

    def _mapping(self, items: Iterable[tuple[Any, Any]], at: str, depth: int) -> dict[str, Any]:
        made: dict[str, Any] = {}
        for key, item in items:
            name = self._name(key, at, depth)
            if name in made:
                raise NoJsonForm(f"two keys of {at or 'it'} are {name[:60]!r} as text")
            made[name] = self.encode(item, f"{at}.{name[:60]}" if at else name[:60], depth)
        return made

    def _name(self, key: Any, at: str, depth: int) -> str:
        plain = self.encode(key, f"a key of {at or 'it'}", depth)
        return plain if isinstance(plain, str) else json.dumps(plain, ensure_ascii=False)


def is_textual(kind: type) -> bool:
    """Tell whether values of a class are written as ``str`` shows them."""
    return issubclass(kind, complex | os.PathLike | dt.tzinfo) or any(
        (base.__module__, base.__name__) in _TEXTUAL for base in kind.__mro__
    )


def is_plain(value: Any) -> bool:
    """Tell whether an enum member's value stands for it in JSON."""
    return value is None or isinstance(value, str | int | float)


def bytes_text(data: bytes) -> str:
    """Return bytes as text: as UTF-8 where they are that, else as a data URL in base64."""
    try:
        text = data.decode()
    except UnicodeDecodeError:
        return f"data:;base64,{base64.b64encode(data).decode()}"
    return text if "\x00" not in text else f"data:;base64,{base64.b64encode(data).decode()}"


def duration_text(value: dt.timedelta) -> str:
    """Return a duration as ISO 8601 writes it, negative ones with a sign in front (``-PT30M``)."""
    sign, value = ("-", -value) if value < dt.timedelta(0) else ("", value)
    hours, seconds = divmod(value.seconds, 3600)
    minutes, seconds = divmod(seconds, 60)
    part = f".{value.microseconds:06d}".rstrip("0") if value.microseconds else ""
    days = f"{value.days}D" if value.days else ""
    units = ((hours, "H"), (minutes, "M"), (f"{seconds}{part}", "S"))
    clock = "".join(f"{n}{unit}" for n, unit in units if str(n) != "0")
    text = f"{days}T{clock}" if clock else days
    return f"{sign}P{text or 'T0S'}"


def _not_finite(value: float) -> str:
    if math.isnan(value):
        return "NaN"
    return "Infinity" if value > 0 else "-Infinity"


def _dumped(value: Any) -> Any:
    """Return a pydantic model's JSON values; its plain ones where it holds what pydantic cannot write."""
    try:
        return value.model_dump(mode="json")
    except Exception as error:
        # PydanticSerializationError, and whatever a serializer of the model's own raises.
        fields = getattr(type(value), "model_fields", None)
        if fields is None:
            raise NoJsonForm(f"{type(value).__name__} could not be written: {error}") from error
        return {name: getattr(value, name) for name in fields}
