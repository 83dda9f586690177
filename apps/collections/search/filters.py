"""Filters of a search. An unknown field or operator is an error, never ignored: a filter that silently does nothing
shows people passages they asked not to see.

A filter becomes a condition on documents or on chunks, and both are applied inside every leg, before any ranking.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from typing import Any, cast

from basics.errors import Invalid
from basics.texts import gettext as _
from toolloop.tools.validation import number_is_finite

MAX_VALUES = 1000
MAX_CONDITIONS = 50
_MAX_INT = 2**63 - 1
_MAX_TEXT = 1000
_KEY = re.compile(r"[^\x00-\x1f.]{1,100}\Z")
ATTRIBUTE = "attributes."

_SQL = {"eq": "=", "ne": "<>", "lt": "<", "lte": "<=", "gt": ">", "gte": ">="}
_SAME = ("eq", "in", "ne", "nin")
_ORDER = ("lt", "lte", "gt", "gte")


@dataclass(frozen=True, slots=True)
class SearchFilter:
    """One condition.

    Attributes:
        on: ``document`` or ``chunk``, whose row ``sql`` speaks of as ``d`` or ``c``.
        sql: the condition, with ``$VALUE`` and ``$KEY`` where its parameters go.
        value: the one parameter.
        key: the other, the name in the team's own metadata; "" for none.
    """

    on: str
    sql: str
    value: Any
    key: str = ""


@dataclass(frozen=True, slots=True)
class _Field:
    """A field that can be filtered on: where it stands, what values it has, which operators it takes."""

    on: str
    column: str
    kind: str
    operators: tuple[str, ...] = _SAME
    build: Callable[[str, str, Any], tuple[str, Any]] | None = field(default=None)


def _tags(name: str, operator: str, value: Any) -> tuple[str, Any]:
    comparison = {"in": "d.tags && $VALUE::varchar[]", "all": "d.tags @> $VALUE::varchar[]"}
    if operator in ("eq", "ne"):
        sql = "d.tags @> ARRAY[$VALUE]::varchar[]"
        return (sql if operator == "eq" else f"NOT ({sql})"), value
    if operator == "nin":
        return "NOT (d.tags && $VALUE::varchar[])", value
    return comparison[operator], value


def _headings(name: str, operator: str, value: Any) -> tuple[str, Any]:
    sql = "EXISTS (SELECT FROM jsonb_array_elements_text(c.headings) AS h (title) WHERE lower(h.title) " + (
        "= lower($VALUE))" if operator == "eq" else "LIKE $VALUE)"
    )
    return sql, value if operator == "eq" else f"%{_like(value.lower())}%"


def _page(name: str, operator: str, value: Any) -> tuple[str, Any]:
    """A chunk that runs over several pages is on each of them."""
    if operator == "eq":
        return "c.page_start <= $VALUE AND c.page_end >= $VALUE", value
    column = "c.page_end" if operator in ("gte", "gt") else "c.page_start"
    return f"{column} {_SQL[operator]} $VALUE", value


_FIELDS: Mapping[str, _Field] = {
    "document_id": _Field("document", "d.id", "number"),
    "name": _Field("document", "d.name", "text", (*_SAME, "prefix", "contains")),
    "path": _Field("document", "d.path", "text", (*_SAME, "prefix", "contains")),
    "media_type": _Field("document", "d.media_type", "text", (*_SAME, "prefix")),
    "document_type": _Field("document", "d.document_type", "text"),
    "source": _Field("document", "d.source", "text"),
    "tags": _Field("document", "d.tags", "text", ("eq", "ne", "in", "all", "nin"), _tags),
    "dated": _Field("document", "d.dated", "date", ("eq", *_ORDER)),
    "added": _Field("document", "d.created_at::date", "date", ("eq", *_ORDER)),
    "kind": _Field("chunk", "c.kind", "text"),
    "headings": _Field("chunk", "c.headings", "text", ("eq", "contains"), _headings),
    "page": _Field("chunk", "c.page_start", "number", ("eq", *_ORDER), _page),
    "source_index": _Field("chunk", "(c.metadata->>'source_index')::int", "number"),
    "qualified_name": _Field("chunk", "c.qualified_name", "text", (*_SAME, "prefix")),
}
FIELDS = (*_FIELDS, f"{ATTRIBUTE}<name>")
OPERATORS = ("eq", "ne", "in", "nin", "all", "lt", "lte", "gt", "gte", "prefix", "contains", "exists")
_ATTRIBUTE_OPERATORS = ("eq", "ne", "in", "nin", *_ORDER, "exists")


def parse_filters(filters: Mapping[str, Any] | None) -> list[SearchFilter]:
    """Check filters of the form ``{field: value}`` or ``{field: {operator: value}}``; all must hold.

    Fields of documents: ``document_id, name, path, media_type, document_type, source, tags, dated, added`` and
    ``attributes.<name>`` for the team's own metadata. Fields of chunks: ``kind, headings, page,
    qualified_name`` and ``source_index``, the place that an import's chunk had in its source.
    Operators: ``eq, ne, in, nin``; ``lt, lte, gt, gte`` for numbers and dates; ``prefix, contains`` for text; ``all``
    for tags; ``exists`` for metadata. ``ne`` and ``nin`` hold too where there is no value.

    Raises:
        Invalid: ``filter_unknown`` for a field or operator, ``filter_invalid`` for a value.
    """
    if filters is None:
        return []
    if not isinstance(filters, Mapping):
        raise _invalid("filters", _("Filters must be an object of fields."))
    found: list[SearchFilter] = []
    for name, condition in filters.items():
        operations = condition if isinstance(condition, Mapping) else {"eq": condition}
        if not operations:
            raise _invalid(str(name), _("The value is empty. Enter one."))
        for operator, value in operations.items():
            found.append(_filter(str(name), str(operator), value))
    if len(found) > MAX_CONDITIONS:
        raise _invalid("filters", _("Use at most %(most)s conditions.") % {"most": MAX_CONDITIONS})
    return found


def _filter(name: str, operator: str, value: Any) -> SearchFilter:
    if name.startswith(ATTRIBUTE):
        return _attribute(name, operator, value)
    known = _FIELDS.get(name)
    if known is None:
        message = _("There is no filter field “%(field)s”. Known: %(known)s.")
        raise _unknown(message % {"field": name[:100], "known": ", ".join(FIELDS)}, "fields", FIELDS)
    _check_operator(name, operator, known.operators)
    is_list = operator in ("in", "nin", "all")
    checked: Any = _values(name, known.kind, value) if is_list else _value(name, known.kind, value)
    if known.build is not None:
        sql, parameter = known.build(name, operator, checked)
        return SearchFilter(known.on, sql, parameter)
    if operator in ("in", "nin"):
        word = "NOT " if operator == "nin" else ""
        return SearchFilter(known.on, f"{word}{known.column} = ANY ($VALUE)", checked)
    if operator in ("prefix", "contains"):
        pattern = f"{'%' if operator == 'contains' else ''}{_like(checked)}%"
        like = "ILIKE" if operator == "contains" else "LIKE"
        return SearchFilter(known.on, f"{known.column} {like} $VALUE", pattern)
    sql = f"{known.column} {_SQL[operator]} $VALUE"
    if operator == "ne":
        sql = f"{known.column} IS DISTINCT FROM $VALUE"
    return SearchFilter(known.on, sql, checked)


def _attribute(name: str, operator: str, value: Any) -> SearchFilter:
    key = name.removeprefix(ATTRIBUTE)
    if not _KEY.match(key):
        raise _invalid(name[:120], _("A metadata name has 1 to 100 characters and no dot."))
    _check_operator(name, operator, _ATTRIBUTE_OPERATORS)
    here = "(d.attributes -> $KEY)"
    if operator == "exists":
        if not isinstance(value, bool):
            raise _invalid(name, _("“exists” needs true or false."))
        return SearchFilter("document", "(d.attributes ? $KEY) = $VALUE", value, key)
    if operator in _ORDER:
        if isinstance(value, str):
            typed = f"CASE WHEN jsonb_typeof({here}) = 'string' THEN d.attributes ->> $KEY END"
            moment = _date(name, value).isoformat()
            return SearchFilter("document", f"{typed} {_SQL[operator]} $VALUE", moment, key)
        typed = f"CASE WHEN jsonb_typeof({here}) = 'number' THEN ({here})::numeric END"
        number = _number(name, value)
        return SearchFilter("document", f"{typed} {_SQL[operator]} $VALUE", number, key)
    values = value if operator in ("in", "nin") else [value]
    if not isinstance(values, Sequence) or isinstance(values, (str, bytes)):
        raise _invalid(name, _("“in” and “nin” need a list of values."))
    if not 0 < len(values) <= MAX_VALUES:
        raise _invalid(name, _("Give 1 to %(most)s values.") % {"most": MAX_VALUES})
    texts = [_scalar(name, one) for one in values]
    word = "NOT " if operator in ("ne", "nin") else ""
    # A list in the metadata holds when one of its items does.
    sql = (
        f"{word}coalesce({here} = ANY ($VALUE::text[]::jsonb[]) OR (jsonb_typeof({here}) = 'array' AND EXISTS (SELECT "
        f"FROM jsonb_array_elements({here}) AS item (one) WHERE item.one = ANY ($VALUE::text[]::jsonb[]))), false)"
    )
    return SearchFilter("document", sql, texts, key)


def _check_operator(name: str, operator: str, known: Sequence[str]) -> None:
    if operator not in known:
        message = _("The filter “%(field)s” has no operator “%(operator)s”. Known: %(known)s.")
        facts = {"field": name[:120], "operator": operator[:40], "known": ", ".join(known)}
        raise _unknown(message % facts, "operators", known)


def _values(name: str, kind: str, value: Any) -> list[Any]:
    if not isinstance(value, Sequence) or isinstance(value, (str, bytes)):
        raise _invalid(name, _("“in”, “nin” and “all” need a list of values."))
    if len(value) > MAX_VALUES:
        raise _invalid(name, _("Use at most %(most)s values.") % {"most": MAX_VALUES})
    return [_value(name, kind, one) for one in value]


def _value(name: str, kind: str, value: Any) -> Any:
    if kind == "date":
        return _date(name, value)
    if kind == "number":
        if isinstance(value, int) and not isinstance(value, bool) and abs(value) <= _MAX_INT:
            return value
        raise _invalid(name, _("Each value must be a number."))
    if isinstance(value, str) and "\x00" not in value and len(value) <= _MAX_TEXT:
        return value
    raise _invalid(name, _("Each value must be text of at most %(most)s characters.") % {"most": _MAX_TEXT})


def _date(name: str, value: Any) -> date:
    try:
        return date.fromisoformat(value)
    except (TypeError, ValueError) as error:
        raise _invalid(name, _("Each value must be a date such as 2026-11-20.")) from error


def _number(name: str, value: Any) -> int | float:
    if number_is_finite(value):
        return cast("int | float", value)
    raise _invalid(name, _("Compare with a number, or with a date such as 2026-11-20."))


def _scalar(name: str, value: Any) -> str:
    """Return the text that PostgreSQL's jsonb gives for a JSON scalar."""
    if isinstance(value, bool) or value is None:
        return json.dumps(value)
    if isinstance(value, (int, float)):
        return json.dumps(_number(name, value))
    if isinstance(value, str) and "\x00" not in value and len(value) <= _MAX_TEXT:
        return json.dumps(value, ensure_ascii=False)
    raise _invalid(name, _("Each value must be text, a number, true, false or null."))


def _like(text: str) -> str:
    return text.replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_")


def _unknown(message: str, what: str, known: Sequence[str]) -> Invalid:
    return Invalid("filter_unknown", message, data={what: list(known)})


def _invalid(name: str, message: str) -> Invalid:
    return Invalid(
        "filter_invalid",
        _("Filter “%(name)s”: %(message)s") % {"name": name, "message": message},
        data={"fields": {name: [message]}},
    )
