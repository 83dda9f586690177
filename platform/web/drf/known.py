"""Refuse what an operation does not know: parameters of the address and fields of a body that its schema does not name.

The OpenAPI schema is the one list of what may be sent. What is not in it would be ignored, and a misspelt filter that is
ignored gives an answer that looks right. So does a value of the wrong kind that counts as none.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Mapping, Sequence
from datetime import date
from functools import cache
from typing import Any

from django.utils.datastructures import MultiValueDict
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, OpenApiRequest
from rest_framework import exceptions, serializers
from rest_framework.request import Request
from rest_framework.settings import api_settings

EVERYWHERE = frozenset({"tenant"})  # of a signed-in browser: see TenantSessionAuthentication
_JSON = "application/json"
_MOST_NAMED = 20
_WHOLE = re.compile(r"-?[0-9]{1,19}")
_BOOLS = frozenset({"true", "false", "1", "0"})
Fields = Mapping[str, "Fields | None"]
"""Names of fields; each with its own fields where it is an object (or a list of objects), else None."""


def parameters_check(view: Any, request: Request) -> None:
    """Refuse parameters of the address that the operation does not have, or not with such a value.

    Raises:
        ValidationError: it names each of them, and the nearest that there is, or which values it takes.
    """
    if not request.query_params:
        return
    known = parameters_known(view.__class__, str(request.method))
    if known is None:
        return
    problems = _problems([n for n in request.query_params if n not in known], known, "parameter")
    for name, values in request.query_params.lists():
        if name in known and (problem := _value_problem(known[name], values)):
            problems[name] = [problem]
    if problems:
        raise exceptions.ValidationError(problems)


def body_check(view: Any, request: Request) -> None:
    """Refuse fields of the body that the operation does not have, inside of objects and lists too.

    Raises:
        ParseError: the body cannot be read.
        ValidationError: it names each of them, and the nearest that there is.
    """
    known = fields_known(view.__class__, str(request.method))
    if known is not None and (problems := _unknown_in(request.data, known)):
        raise exceptions.ValidationError(problems)


@cache
def parameters_known(view_class: Any, method: str) -> Mapping[str, OpenApiParameter | None] | None:
    """Return the parameters that an operation has, as its schema says; None for an operation without one (MCP).

    A parameter is None where its view checks the values.
    """
    schema = _schema(view_class, method)
    if schema is None:
        return None
    found: dict[str, OpenApiParameter | None] = dict.fromkeys(EVERYWHERE)
    for parameter in schema.get_override_parameters():
        if isinstance(parameter, OpenApiParameter):
            if parameter.location == OpenApiParameter.QUERY:
                found[parameter.name] = parameter
        else:
            found |= dict.fromkeys(_serializer(parameter).fields)
    if len(view_class.renderer_classes) > 1:
        found[str(api_settings.URL_FORMAT_OVERRIDE)] = None
    pages = getattr(view_class, "pagination_class", None)
    if pages is not None and method in {"GET", "HEAD"}:
        own = pages().get_schema_operation_parameters(view_class())
        found |= dict.fromkeys(parameter["name"] for parameter in own)
    return found


@cache
def fields_known(view_class: Any, method: str) -> Fields | None:
    """Return the fields of an operation's body; None when its schema does not tell, or it has none."""
    schema = _schema(view_class, method)
    shape = None if schema is None else schema.get_request_serializer()
    if isinstance(shape, Mapping):
        shape = shape.get(_JSON) or shape.get("multipart/form-data")
    if isinstance(shape, OpenApiRequest):
        shape = shape.request
    return _fields(shape)


def _schema(view_class: Any, method: str) -> Any:
    """Return drf-spectacular's description of an operation, None for one that has none."""
    name = "get" if method == "HEAD" else method.lower()
    made = getattr(getattr(view_class, name, None), "kwargs", {}).get("schema")
    if made is None:
        return None
    schema = made()
    schema.method, schema.view = name.upper(), view_class()
    schema.view.request, schema.view.kwargs = None, {}
    return schema


def _value_problem(parameter: OpenApiParameter | None, values: Sequence[str]) -> str:
    """Return what is wrong with the values of a parameter, "" for nothing; an empty value counts as not given."""
    if len(values) > 1 and (parameter is None or not parameter.many):
        return "Give it only once."
    if any("\x00" in value for value in values):
        return "Text can't contain NUL."
    if parameter is None:
        return ""
    for value in filter(None, (value.strip() for value in values)):
        if parameter.enum is not None and value not in parameter.enum:
            return f"Choose one of {', '.join(map(str, parameter.enum))}."
        if parameter.type is int and not _WHOLE.fullmatch(value):
            return "Give a whole number."
        if parameter.type is bool and value.lower() not in _BOOLS:
            return "Give true or false."
        if parameter.type is OpenApiTypes.DATE and not _is_date(value):
            return "Give a day as YYYY-MM-DD."
    return ""


def _is_date(value: str) -> bool:
    try:
        return date.fromisoformat(value).isoformat() == value
    except ValueError:
        return False


def _serializer(shape: Any) -> Any:
    return shape() if isinstance(shape, type) else shape


def _fields(shape: Any) -> Fields | None:
    shape = _serializer(shape)
    while isinstance(shape, serializers.ListSerializer | serializers.ListField):
        shape = shape.child
    if not isinstance(shape, serializers.Serializer):
        return None
    return {name: _fields(field) for name, field in shape.fields.items() if not field.read_only}


def _unknown_in(data: Any, known: Fields) -> dict[str, Any]:
    """Return the problems of an object, by field; {} for a value of another kind, which its shape refuses."""
    if not isinstance(data, Mapping | MultiValueDict):
        return {}
    problems: dict[str, Any] = _problems([n for n in data if n not in known], known, "field")
    for name, inner in known.items():
        if inner is None or name not in data:
            continue
        value = data[name]
        if isinstance(value, list):
            found = {str(i): f for i, item in enumerate(value) if (f := _unknown_in(item, inner))}
        else:
            found = _unknown_in(value, inner)
        if found:
            problems[name] = found
    return problems


def _problems(unknown: Iterable[str], known: Iterable[str], kind: str) -> dict[str, list[str]]:
    names = sorted(known)
    problems = {}
    for name in list(unknown)[:_MOST_NAMED]:
        near = difflib.get_close_matches(str(name)[:100], names, n=1)
        hint = f" Did you mean “{near[0]}”?" if near else f" It has: {', '.join(names) or 'none'}."
        problems[str(name)[:100]] = [f"There is no such {kind} here.{hint}"]
    return problems
