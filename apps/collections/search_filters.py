"""Filters of a search. An unknown field or operator is an error, never ignored: a filter that silently does nothing
shows people passages they asked not to see."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from basics.errors import Invalid

_COLUMNS: Mapping[str, tuple[str, type]] = {
    "document_id": ("id", int),
    "media_type": ("media_type", str),
}
OPERATORS = ("eq", "in")
MAX_VALUES = 1000
_MAX_INT = 2**63 - 1


@dataclass(frozen=True, slots=True)
class SearchFilter:
    """One condition on documents: the column's value is one of these."""

    column: str
    values: tuple[int | str, ...]


def parse_filters(filters: Mapping[str, Any] | None) -> list[SearchFilter]:
    """Check filters of the form ``{field: value}``, ``{field: {"eq": value}}`` or ``{field: {"in": [values]}}``.

    Args:
        filters: fields are ``document_id`` (number) and ``media_type`` (text); all must hold.

    Raises:
        Invalid: ``filter_unknown`` for a field or operator, ``filter_invalid`` for a value.
    """
    if filters is None:
        return []
    if not isinstance(filters, Mapping):
        raise _invalid("filters", "Filters are an object of fields.")
    found: list[SearchFilter] = []
    for name, condition in filters.items():
        if name not in _COLUMNS:
            raise _unknown(f"There is no filter field “{name}”", "fields", list(_COLUMNS))
        column, kind = _COLUMNS[name]
        operations = condition if isinstance(condition, Mapping) else {"eq": condition}
        if not operations:
            raise _invalid(name, "It says nothing; give a value.")
        for operator, value in operations.items():
            if operator not in OPERATORS:
                raise _unknown(
                    f"The filter “{name}” has no operator “{operator}”",
                    "operators",
                    list(OPERATORS),
                )
            values = [value] if operator == "eq" else value
            if not isinstance(values, Sequence) or isinstance(values, (str, bytes)):
                raise _invalid(name, "“in” needs a list of values.")
            if len(values) > MAX_VALUES:
                raise _invalid(name, f"At most {MAX_VALUES} values.")
            found.append(SearchFilter(column, tuple(_value(name, kind, item) for item in values)))
    return found


def _value(name: str, kind: type, value: Any) -> int | str:
    if kind is int and isinstance(value, int) and not isinstance(value, bool):
        if abs(value) <= _MAX_INT:
            return value
    elif kind is str and isinstance(value, str) and "\x00" not in value and len(value) <= 255:
        return value
    expected = "a number" if kind is int else "text"
    raise _invalid(name, f"Each value must be {expected}.")


def _unknown(message: str, what: str, known: list[str]) -> Invalid:
    return Invalid("filter_unknown", f"{message}. Known: {', '.join(known)}.", data={what: known})


def _invalid(name: str, message: str) -> Invalid:
    return Invalid(
        "filter_invalid", f"Filter “{name}”: {message}", data={"fields": {name: [message]}}
    )
