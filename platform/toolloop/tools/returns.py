"""Refuse a tool whose return annotation names a type that cannot be shown to a model, when the tool is defined."""

from __future__ import annotations

import collections.abc
import dataclasses
import datetime as dt
import enum
import inspect
import re
import types
import typing
from typing import Annotated, Any, Literal, TypeVar, get_args, get_origin, get_type_hints

from toolloop.messages import ToolResult
from toolloop.tools.context import ToolDefinitionError, ToolOutput
from toolloop.tools.results import ARRAYS, BINARY, MOMENTS, OBJECTS, is_textual

_WRITTEN: tuple[type, ...] = (
    str,
    int,
    float,
    bool,
    type(None),
    dt.timedelta,
    re.Pattern,
    BaseException,
    enum.Enum,
    ToolOutput,
    ToolResult,
    *MOMENTS,
    *BINARY,
    *ARRAYS,
    *OBJECTS,
)
# Their instances may be of a type that can be written: that is seen when the call has ended.
_OPEN = frozenset(
    {
        Any,
        object,
        collections.abc.Iterable,
        collections.abc.Collection,
        collections.abc.Sequence,
        collections.abc.Hashable,
        collections.abc.Sized,
        collections.abc.Container,
        collections.abc.Reversible,
        collections.abc.AsyncIterable,
        collections.abc.AsyncIterator,
        collections.abc.AsyncGenerator,
        collections.abc.Awaitable,
        collections.abc.Coroutine,
        collections.abc.Buffer if hasattr(collections.abc, "Buffer") else bytes,
    }
)


def return_check(function: str, hint: Any) -> None:
    """Check a return annotation, parts and fields included.

    Args:
        function: its name, for the error.
        hint: the resolved annotation, None where there is none.

    Raises:
        ToolDefinitionError: a type in it has no JSON form.
    """
    problem = _problem(hint, set())
    if problem:
        raise ToolDefinitionError(
            f"{function} returns {problem}, which has no JSON form: return text, numbers, lists, dicts, a dataclass, a "
            "pydantic model or a ToolOutput (toolloop.tools.results lists all types)"
        )


def _problem(hint: Any, seen: set[Any]) -> str:
    """Return the name of a type within a hint that cannot be written, "" where all can."""
    if hint is None or hint is Ellipsis or isinstance(hint, TypeVar | str):
        return ""
    hint = getattr(hint, "__supertype__", hint)
    if isinstance(hint, collections.abc.Hashable) and (hint in _OPEN or hint in seen):
        return ""
    alias = getattr(typing, "TypeAliasType", None)
    if alias is not None and isinstance(hint, alias):
        return _problem(hint.__value__, seen)
    origin, args = get_origin(hint), get_args(hint)
    if origin is Annotated:
        return _problem(args[0], seen)
    if origin is Literal:
        return ""
    if origin in (collections.abc.Callable, type):
        return repr(hint)
    if origin is collections.abc.Generator or origin is collections.abc.Coroutine:
        args = (args[0], args[2]) if origin is collections.abc.Generator else args[2:]
    if origin is not None:
        is_class = isinstance(origin, type) and origin is not types.UnionType
        own = _problem(origin, seen) if is_class else ""
        return own or next((p for arg in args if (p := _problem(arg, seen))), "")
    if not isinstance(hint, type):
        return ""
    return _class_problem(hint, seen)


def _class_problem(kind: type, seen: set[Any]) -> str:
    seen.add(kind)
    if dataclasses.is_dataclass(kind) and not issubclass(kind, ToolOutput | ToolResult):
        try:
            hints = get_type_hints(kind)
        except (NameError, TypeError):
            return ""  # What cannot be resolved is seen when the call has ended.
        fields = (hints.get(field.name) for field in dataclasses.fields(kind))
        return next((p for hint in fields if (p := _problem(hint, seen))), "")
    written = (
        issubclass(kind, _WRITTEN)
        or is_textual(kind)
        or inspect.isabstract(kind)
        or callable(getattr(kind, "model_dump", None))
        or hasattr(kind, "__attrs_attrs__")
        or getattr(kind, "_is_protocol", False)
        or kind.__module__.partition(".")[0] == "numpy"
    )
    return "" if written else kind.__name__
