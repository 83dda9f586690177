"""Compare a docstring with the signature it belongs to; what does not fit is an error at definition."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

from toolloop.tools.context import ToolDefinitionError
from toolloop.tools.docstrings import Docstring, Documented

Fail = Callable[[str], ToolDefinitionError]

_DOC_TYPES = {
    "str": "string",
    "string": "string",
    "int": "integer",
    "integer": "integer",
    "float": "number",
    "number": "number",
    "bool": "boolean",
    "boolean": "boolean",
    "list": "array",
    "dict": "object",
}


def type_compare(fail: Fail, entry: Documented, schema: Mapping[str, Any], has_default: bool) -> None:
    """Raise unless the type that a docstring names is one of those the schema takes."""
    options = {schema.get("type")} | {o.get("type") for o in schema.get("anyOf", ())}
    for word in _type_words(entry.type):
        wanted = _DOC_TYPES.get(word)
        if wanted and options != {None} and wanted not in options:
            raise fail(f"the docstring says {entry.type}, the type hint does not")
    if entry.optional and not has_default:
        raise fail("the docstring says optional, but it has no default")


def _type_words(written: str) -> list[str]:
    """Return the outermost types that a docstring names: "Optional[list[str]]" -> ["list"]."""
    text = written.strip()
    if text.startswith("Optional[") and text.endswith("]"):
        text = text.removeprefix("Optional[")[:-1]
    outer = re.sub(r"\[.*\]", "", text)
    return [word.strip() for word in outer.split("|") if word.strip()]


def words_compare(fail: Fail, written: str, hint: Any) -> None:
    """Raise for a type that is no part of the hint; for the compact form, where a type is always written."""
    shown = hint.__name__ if isinstance(hint, type) else str(hint)
    for word in _type_words(written):
        if word not in _DOC_TYPES and word not in ("None", "Any", "any", "enum") and word not in shown:
            raise fail(f"the docstring says {written}, the type hint says {shown}")


def names_compare(name: str, doc: Docstring, properties: Mapping[str, Any], hidden: set[str]) -> None:
    """Raise unless a docstring describes exactly the parameters the model sees; it may describe hidden ones."""
    if doc.unreadable:
        raise ToolDefinitionError(
            f"{name}: this line of the docstring's Args isn't 'name: text': {doc.unreadable[0]!r}"
        )
    unknown = [n for n in doc.parameters if n not in properties and n not in hidden]
    if unknown:
        raise ToolDefinitionError(
            f"{name}: the docstring describes {', '.join(unknown)}, which isn't a parameter"
        )
    if doc.has_args:
        missing = [n for n, s in properties.items() if not s.get("description")]
        if missing:
            raise ToolDefinitionError(f"{name}: the docstring's Args leave out {', '.join(missing)}")
