"""An OpenAPI document as plain values: parsed in bounded time, its version known, its references followed inside it.

Formats: OpenAPI 3.0 and 3.1 (https://spec.openapis.org), as JSON or YAML; of YAML the types that JSON has.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any
from urllib.parse import unquote

import yaml

from apps.tools.connectors.base import SourceError

MAX_NODES = 1_000_000
MAX_DEPTH = 100
_MAX_HOPS = 50


class _Loader(yaml.CSafeLoader):
    """YAML with the types of JSON alone: a date stays a text, and so do ``yes`` and ``on``."""

    yaml_implicit_resolvers: dict[str, Any] = {}


for _tag, _pattern, _first in (
    ("tag:yaml.org,2002:bool", r"true|True|TRUE|false|False|FALSE", "tTfF"),
    ("tag:yaml.org,2002:null", r"~|null|Null|NULL|", "~nN\0"),
    ("tag:yaml.org,2002:int", r"[-+]?[0-9]+", "-+0123456789"),
    ("tag:yaml.org,2002:float", r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?", "-+0123456789."),
    ("tag:yaml.org,2002:merge", r"<<", "<"),
):
    # The first one that fits is taken: "12" is an int before it is a float.
    _Loader.add_implicit_resolver(
        _tag, re.compile(rf"(?:{_pattern})\Z"), [c if c != "\0" else "" for c in _first]
    )


def _int(loader: Any, node: Any) -> int:
    # YAML 1.1 would read 010 as eight.
    return int(loader.construct_scalar(node))


_Loader.add_constructor("tag:yaml.org,2002:int", _int)


class Document:
    """A parsed document.

    Attributes:
        root: its values, as JSON has them.
        version: 30 or 31.

    Raises:
        SourceError: it is no OpenAPI document that can be read.
    """

    def __init__(self, text: str) -> None:
        self.root: dict[str, Any] = _parsed(text)
        self.version = _version(self.root)

    def resolve(self, node: Any, at: str) -> tuple[Any, str]:
        """Follow ``$ref`` until there is none; returns the value and where it stands.

        Args:
            at: where the node stands, for messages: ``paths./pets.get``.

        Raises:
            SourceError: it leads nowhere, in a circle, or to another document.
        """
        for _ in range(_MAX_HOPS):
            if not isinstance(node, Mapping) or "$ref" not in node:
                return node, at
            ref = node["$ref"]
            node, at = self.find(ref, at), str(ref)
        raise SourceError(f"At {at}: the references are circular.")

    def find(self, ref: Any, at: str) -> Any:
        """Return what a reference points to. Raises SourceError."""
        if not isinstance(ref, str):
            raise SourceError(f"At {at}: “$ref” must be text.")
        if not ref.startswith("#"):
            raise SourceError(
                f"At {at}: it refers to another document ({ref[:200]}), which is not fetched. Bundle the "
                f"API's description into one document."
            )
        node: Any = self.root
        for part in ref[1:].split("/")[1:]:
            key = unquote(part).replace("~1", "/").replace("~0", "~")
            if isinstance(node, Mapping) and key in node:
                node = node[key]
            elif isinstance(node, list) and key.isascii() and key.isdecimal() and int(key[:9]) < len(node):
                node = node[int(key)]
            else:
                raise SourceError(f"At {at}: {ref[:200]} points to nothing in the document.")
        if ref != "#" and not ref.startswith("#/"):
            raise SourceError(f"At {at}: {ref[:200]} isn't a path in the document (#/...).")
        return node


def mapping_at(value: Any, at: str) -> Mapping[str, Any]:
    """Return a value that must be an object. Raises SourceError naming its place."""
    if not isinstance(value, Mapping):
        raise SourceError(f"At {at}: expected an object, found {_kind(value)}.")
    return value


def list_at(value: Any, at: str) -> list[Any]:
    """Return a value that must be a list. Raises SourceError naming its place."""
    if not isinstance(value, list):
        raise SourceError(f"At {at}: expected a list, found {_kind(value)}.")
    return value


def text_at(value: Any, at: str) -> str:
    """Return a value that must be a text. Raises SourceError naming its place."""
    if not isinstance(value, str):
        raise SourceError(f"At {at}: expected a text, found {_kind(value)}.")
    return value


def _kind(value: Any) -> str:
    if value is None:
        return "nothing"
    names = {dict: "an object", list: "a list", str: "a text", bool: "true or false"}
    return names.get(type(value), "a number")


def _parsed(text: str) -> dict[str, Any]:
    text = text.removeprefix("\ufeff")
    try:
        value = json.loads(text) if text.lstrip().startswith("{") else _yaml(text)
    except json.JSONDecodeError as error:
        raise SourceError(
            f"The document isn't valid JSON: line {error.lineno}, column {error.colno}: {error.msg}."
        ) from error
    except RecursionError as error:
        raise SourceError("The document is nested too deeply.") from error
    if not isinstance(value, dict):
        raise SourceError("This isn't an OpenAPI document: expected an object with “openapi” and “paths”.")
    plain: dict[str, Any] = _plain(value, "", 0, [MAX_NODES])
    return plain


def _yaml(text: str) -> Any:
    try:
        return yaml.load(text, Loader=_Loader)  # noqa: S506 - derived from the safe one
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark
        where = f"line {mark.line + 1}, column {mark.column + 1}: " if mark else ""
        raise SourceError(
            f"The document is neither JSON nor YAML: {where}{error.problem or 'it cannot be read'}."
        ) from error
    except (yaml.YAMLError, ValueError, TypeError) as error:
        raise SourceError(f"The document is neither JSON nor YAML: {str(error)[:200]}.") from error


def _plain(value: Any, at: str, depth: int, left: list[int]) -> Any:
    """Return a copy with the types of JSON; aliases of YAML are copied too, so their number is bounded here."""
    left[0] -= 1
    if left[0] < 0:
        raise SourceError(f"The document has more than {MAX_NODES:,} values, aliases included.")
    if depth > MAX_DEPTH:
        raise SourceError(f"The document is nested deeper than {MAX_DEPTH}.")
    if isinstance(value, dict):
        found: dict[str, Any] = {}
        for key, item in value.items():
            # Status codes are numbers to YAML.
            name = _key(key, at)
            found[name] = _plain(item, name, depth + 1, left)
        return found
    if isinstance(value, list):
        return [_plain(item, at, depth + 1, left) for item in value]
    if value is None or isinstance(value, str | bool | int | float):
        return value
    raise SourceError(f"At {at or 'its top'}: {type(value).__name__} isn't a JSON value.")


def _key(key: Any, at: str) -> str:
    if isinstance(key, str):
        return key
    if isinstance(key, bool):
        return "true" if key else "false"
    if key is None or isinstance(key, int | float):
        return "null" if key is None else str(key)
    raise SourceError(f"At {at or 'its top'}: a key must be a text.")


def _version(root: Mapping[str, Any]) -> int:
    if "swagger" in root:
        raise SourceError(
            "This is a Swagger 2.0 document: convert it to OpenAPI 3 first (editor.swagger.io does)."
        )
    given = root.get("openapi")
    if isinstance(given, str) and given.startswith("3.0"):
        return 30
    if isinstance(given, str) and given.startswith("3.1"):
        return 31
    shown = f"version {str(given)[:20]}" if given is not None else "no “openapi” field"
    raise SourceError(f"This isn't an OpenAPI document of version 3.0 or 3.1: it has {shown}.")
