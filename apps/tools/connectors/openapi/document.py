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
from basics.texts import Told, number_told
from basics.texts import gettext as _

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
        for _hop in range(_MAX_HOPS):
            if not isinstance(node, Mapping) or "$ref" not in node:
                return node, at
            ref = node["$ref"]
            node, at = self.find(ref, at), str(ref)
        raise error_at(at, _("The references are circular."))

    def find(self, ref: Any, at: str) -> Any:
        """Return what a reference points to. Raises SourceError."""
        if not isinstance(ref, str):
            raise error_at(at, _("“$ref” must be text."))
        if not ref.startswith("#"):
            text = _(
                "It refers to another document (%(ref)s), which isn't fetched. Bundle the API's description into one "
                "document."
            )
            raise error_at(at, text % {"ref": ref[:200]})
        node: Any = self.root
        for part in ref[1:].split("/")[1:]:
            key = unquote(part).replace("~1", "/").replace("~0", "~")
            if isinstance(node, Mapping) and key in node:
                node = node[key]
            elif isinstance(node, list) and key.isascii() and key.isdecimal() and int(key[:9]) < len(node):
                node = node[int(key)]
            else:
                text = _("%(ref)s points to nothing in the document.")
                raise error_at(at, text % {"ref": ref[:200]})
        if ref != "#" and not ref.startswith("#/"):
            text = _("%(ref)s isn't a path in the document (#/...).")
            raise error_at(at, text % {"ref": ref[:200]})
        return node


def mapping_at(value: Any, at: str) -> Mapping[str, Any]:
    """Return a value that must be an object. Raises SourceError naming its place."""
    if not isinstance(value, Mapping):
        raise error_at(at, _("Expected an object, found: %(kind)s.") % {"kind": _kind(value)})
    return value


def list_at(value: Any, at: str) -> list[Any]:
    """Return a value that must be a list. Raises SourceError naming its place."""
    if not isinstance(value, list):
        raise error_at(at, _("Expected a list, found: %(kind)s.") % {"kind": _kind(value)})
    return value


def text_at(value: Any, at: str) -> str:
    """Return a value that must be a text. Raises SourceError naming its place."""
    if not isinstance(value, str):
        raise error_at(at, _("Expected a text, found: %(kind)s.") % {"kind": _kind(value)})
    return value


def error_at(at: str, text: str) -> SourceError:
    """Return the error that a document is wrong at a place.

    Args:
        at: the place, "" for the top of the document.
        text: a sentence that says what is wrong.
    """
    return SourceError(
        _("At %(at)s: %(text)s") % {"at": at or _("the top of the document"), "text": text},
    )


def _kind(value: Any) -> Told:
    if value is None:
        return _("nothing")
    names = {dict: _("an object"), list: _("a list"), str: _("a text"), bool: _("true or false")}
    return names.get(type(value), _("a number"))


def _parsed(text: str) -> dict[str, Any]:
    text = text.removeprefix("\ufeff")
    try:
        value = json.loads(text) if text.lstrip().startswith("{") else _yaml(text)
    except json.JSONDecodeError as error:
        text = _("The document isn't valid JSON. Line %(line)s, column %(column)s: %(why)s.")
        raise SourceError(text % {"line": error.lineno, "column": error.colno, "why": error.msg}) from error
    except RecursionError as error:
        raise SourceError(_("The document is nested too deeply.")) from error
    if not isinstance(value, dict):
        raise SourceError(_("This isn't an OpenAPI document: expected an object with “openapi” and “paths”."))
    plain: dict[str, Any] = _plain(value, "", 0, [MAX_NODES])
    return plain


def _yaml(text: str) -> Any:
    try:
        return yaml.load(text, Loader=_Loader)  # noqa: S506 - derived from the safe one
    except yaml.MarkedYAMLError as error:
        mark, why = error.problem_mark, error.problem or type(error).__name__
        if mark is None:
            raise _neither(why) from error
        text = _("The document is neither JSON nor YAML. Line %(line)s, column %(column)s: %(why)s.")
        raise SourceError(text % {"line": mark.line + 1, "column": mark.column + 1, "why": why}) from error
    except (yaml.YAMLError, ValueError, TypeError) as error:
        raise _neither(str(error)[:200]) from error


def _neither(why: str) -> SourceError:
    return SourceError(_("The document is neither JSON nor YAML: %(why)s.") % {"why": why})


def _plain(value: Any, at: str, depth: int, left: list[int]) -> Any:
    """Return a copy with the types of JSON; aliases of YAML are copied too, so their number is bounded here."""
    left[0] -= 1
    if left[0] < 0:
        text = _("The document has more than %(most)s values, aliases included.")
        raise SourceError(text % {"most": number_told(MAX_NODES)})
    if depth > MAX_DEPTH:
        raise SourceError(_("The document is nested deeper than %(most)s levels.") % {"most": MAX_DEPTH})
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
    raise error_at(at, _("%(kind)s isn't a JSON value.") % {"kind": type(value).__name__})


def _key(key: Any, at: str) -> str:
    if isinstance(key, str):
        return key
    if isinstance(key, bool):
        return "true" if key else "false"
    if key is None or isinstance(key, int | float):
        return "null" if key is None else str(key)
    raise error_at(at, _("A key must be a text."))


def _version(root: Mapping[str, Any]) -> int:
    if "swagger" in root:
        raise SourceError(
            _(
                "This is a Swagger 2.0 document. Convert it to OpenAPI 3 first, for example with editor.swagger.io."
            )
        )
    given = root.get("openapi")
    if isinstance(given, str) and given.startswith("3.0"):
        return 30
    if isinstance(given, str) and given.startswith("3.1"):
        return 31
    if given is None:
        raise SourceError(_("This isn't an OpenAPI document: it has no “openapi” field."))
    text = _("OpenAPI documents of version 3.0 or 3.1 can be read; this one has version %(version)s.")
    raise SourceError(text % {"version": str(given)[:20]})
