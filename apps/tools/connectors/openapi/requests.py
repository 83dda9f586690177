"""Write a call's arguments into an HTTP request, in the styles of OpenAPI.

https://spec.openapis.org/oas/v3.1.0#style-values. What an argument contains never changes where a request goes: values in
paths are encoded, a segment can be neither ``.`` nor ``..``, and headers hold no control characters.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterable, Mapping, Sequence
from typing import Any
from urllib.parse import quote, urlencode

import httpx2

_DELIMITERS = {"spaceDelimited": "%20", "pipeDelimited": "%7C"}


class Unwritable(Exception):
    """An argument cannot be sent; the text tells the model why."""


def request_build(wire: Mapping[str, Any], base: str, arguments: Mapping[str, Any]) -> httpx2.Request:
    """Return the request of a call.

    Args:
        wire: ``FoundTool.wire`` of an operation.
        base: address of the server, without a trailing slash.
        arguments: as the model gave them; null counts as not given, but in a body.

    Raises:
        Unwritable: a value cannot be sent where it belongs.
    """
    path, query = str(wire["path"]), []
    headers: dict[str, str] = {"Accept": "application/json, text/*;q=0.8, */*;q=0.5"}
    cookies: list[str] = []
    for argument, where in wire.get("parameters", {}).items():
        value = arguments.get(argument)
        name, place = where["name"], where["in"]
        if place == "path":
            path = path.replace(f"{{{name}}}", _in_path(argument, name, value, where))
        elif value is None:
            continue
        elif place == "query":
            query += _in_query(name, value, where)
        elif place == "header":
            headers[name] = _in_header(argument, value, where)
        else:
            cookies += _in_cookie(name, value, where)
    if any(part in (".", "..") for part in path.split("/")):
        raise Unwritable(
            "A part of the path would be “.” or “..”, which leads elsewhere. Give another value."
        )
    if cookies:
        headers["Cookie"] = "; ".join(cookies)
    content = _body(wire.get("body"), arguments, headers)
    url = f"{base}{path}" + (f"?{'&'.join(query)}" if query else "")
    try:
        return httpx2.Request(str(wire["method"]), url, headers=headers, content=content)
    except (httpx2.InvalidURL, ValueError, UnicodeError) as error:
        raise Unwritable(f"The arguments make no address that can be called ({error}).") from error


def _text(value: Any) -> str:
    """Return one value as it is written outside of JSON."""
    if isinstance(value, str):
        return value
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def _encoded(value: Any) -> str:
    return quote(_text(value), safe="")


def _pairs(value: Mapping[str, Any]) -> Iterable[tuple[str, str]]:
    return ((quote(str(k), safe=""), _encoded(v)) for k, v in value.items() if v is not None)


def _joined(value: Any, *, explode: bool, delimiter: str = ",") -> str:
    """Return a value in the ``simple`` way: parts joined, an object as ``k,v`` or exploded as ``k=v``."""
    if isinstance(value, list):
        return delimiter.join(_encoded(item) for item in value)
    if isinstance(value, Mapping):
        if explode:
            return delimiter.join(f"{k}={v}" for k, v in _pairs(value))
        return delimiter.join(part for pair in _pairs(value) for part in pair)
    return _encoded(value)


def _in_path(argument: str, name: str, value: Any, where: Mapping[str, Any]) -> str:
    if value is None or value in ("", [], {}):
        raise Unwritable(f"{argument} is part of the path and must not be empty.")
    style, explode = where.get("style"), where.get("explode") is True
    if style == "json":
        return _encoded(json.dumps(value, ensure_ascii=False))
    if style == "label":
        return "." + _joined(value, explode=explode, delimiter="." if explode else ",")
    if style == "matrix":
        key = quote(name, safe="")
        if isinstance(value, list) and explode:
            return "".join(f";{key}={_encoded(item)}" for item in value)
        if isinstance(value, Mapping) and explode:
            return "".join(f";{k}={v}" for k, v in _pairs(value))
        return f";{key}={_joined(value, explode=False)}"
    return _joined(value, explode=explode)


def _in_query(name: str, value: Any, where: Mapping[str, Any]) -> list[str]:
    key, style, explode = quote(name, safe=""), where.get("style"), where.get("explode") is True
    if style == "json":
        return [f"{key}={quote(json.dumps(value, ensure_ascii=False), safe='')}"]
    if isinstance(value, Mapping):
        if style == "deepObject":
            return [
                f"{key}%5B{k}%5D={_encoded(item)}"
                for k, given in ((quote(str(k), safe=""), v) for k, v in value.items() if v is not None)
                for item in (given if isinstance(given, list) else [given])
            ]
        if explode:
            return [f"{k}={v}" for k, v in _pairs(value)]
    elif isinstance(value, list):
        if explode or style == "deepObject":
            return [f"{key}={_encoded(item)}" for item in value]
        if not value:
            return []
    return [f"{key}={_joined(value, explode=False, delimiter=_DELIMITERS.get(str(style), ','))}"]


def _in_header(argument: str, value: Any, where: Mapping[str, Any]) -> str:
    if where.get("style") == "json":
        text = json.dumps(value)
    elif isinstance(value, list):
        text = ",".join(_text(item) for item in value)
    elif isinstance(value, Mapping):
        joint = "=" if where.get("explode") is True else ","
        text = ",".join(f"{k}{joint}{_text(v)}" for k, v in value.items() if v is not None)
    else:
        text = _text(value)
    if not text.isascii() or not text.isprintable():
        raise Unwritable(f"{argument} goes into a header, which takes one line of ASCII.")
    return text


def _in_cookie(name: str, value: Any, where: Mapping[str, Any]) -> list[str]:
    key = quote(name, safe="")
    if where.get("style") == "json":
        return [f"{key}={_encoded(json.dumps(value))}"]
    if isinstance(value, list) and where.get("explode") is True:
        return [f"{key}={_encoded(item)}" for item in value]
    if isinstance(value, Mapping) and where.get("explode") is True:
        return [f"{k}={v}" for k, v in _pairs(value)]
    return [f"{key}={_joined(value, explode=False)}"]


def _body(
    given: Mapping[str, Any] | None, arguments: Mapping[str, Any], headers: dict[str, str]
) -> bytes | None:
    if given is None or given["argument"] not in arguments:
        return None
    value = arguments[given["argument"]]
    media_type = str(given["media_type"])
    kind = media_type.partition(";")[0].strip().lower()
    if kind == "application/x-www-form-urlencoded":
        headers["Content-Type"] = kind
        return urlencode(_fields(given, value)).encode()
    if kind == "multipart/form-data":
        boundary = uuid.uuid4().hex
        headers["Content-Type"] = f"{kind}; boundary={boundary}"
        return _multipart(_fields(given, value), set(given.get("files", ())), boundary)
    if kind.startswith("text/"):
        headers["Content-Type"] = f"{kind}; charset=utf-8"
        return _text(value).encode()
    headers["Content-Type"] = "application/json" if "*" in kind else media_type
    return json.dumps(value, ensure_ascii=False).encode()


def _fields(given: Mapping[str, Any], value: Any) -> Sequence[tuple[str, str]]:
    if not isinstance(value, Mapping):
        raise Unwritable(f"{given['argument']} is a form: give an object.")
    return [
        (str(name), _text(item))
        for name, part in value.items()
        if part is not None
        for item in (part if isinstance(part, list) else [part])
    ]


def _multipart(fields: Sequence[tuple[str, str]], files: set[str], boundary: str) -> bytes:
    """Return a form as RFC 7578 has it; the boundary is random, so that no value can end a part."""
    parts: list[bytes] = []
    for name, text in fields:
        # As browsers write names (WHATWG HTML, multipart form data).
        plain = name.replace('"', "%22").replace("\r", "%0D").replace("\n", "%0A")
        head = f'Content-Disposition: form-data; name="{plain}"'
        if name in files:
            head += f'; filename="{plain}.txt"\r\nContent-Type: text/plain; charset=utf-8'
        parts.append(f"--{boundary}\r\n{head}\r\n\r\n{text}\r\n".encode())
    return b"".join([*parts, f"--{boundary}--\r\n".encode()])
