"""Operations of an OpenAPI document as tools: one for each path and method, with all that a call needs to know."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urljoin

from apps.tools.connectors.base import FoundTool, SourceError
from apps.tools.connectors.openapi.document import Document, error_at, list_at, mapping_at, text_at
from apps.tools.connectors.openapi.parameters import Arguments, arguments_read
from apps.tools.connectors.openapi.schemas import Schemas
from basics.texts import gettext as _
from basics.texts import gettext_noop
from toolloop.mcp.text import text_clean

METHODS = ("get", "head", "put", "post", "patch", "delete")
_UNUSED = ("options", "trace")
_READS = frozenset({"get", "head"})
_REPEATABLE = frozenset({"get", "head", "put", "delete"})
_NAME_MAX = 64
_MAX_DEFS = 40_000
_MAX_RETURNS = 10_000
_OTHER = re.compile(r"[^A-Za-z0-9_-]+")


@dataclass(frozen=True, slots=True)
class Found:
    """What a document offers.

    Attributes:
        tools: one per operation that can be called.
        skipped: operations that cannot, and why.
        server: the address it names, "" when it names none.
        title: of the API.
        security: how it wants to be signed in to, in the terms of ``ToolCredential``.
    """

    tools: tuple[FoundTool, ...]
    skipped: tuple[Mapping[str, str], ...]
    server: str
    title: str
    security: tuple[Mapping[str, str], ...]


@dataclass(slots=True)
class _Reader:
    document: Document
    prefix: str
    base: str
    schemas: Schemas = field(init=False)
    names: set[str] = field(default_factory=set)
    skipped: list[Mapping[str, str]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.schemas = Schemas(self.document)


def document_read(text: str, *, prefix: str, base: str = "") -> Found:
    """Return the tools of an OpenAPI document.

    Args:
        text: JSON or YAML.
        prefix: what names begin with, before ``_``.
        base: where the document was read; addresses of servers may be relative to it.

    Raises:
        SourceError: it cannot be used; the message names the place in it.
    """
    document = Document(text)
    reader = _Reader(document, prefix, base)
    root = document.root
    info = mapping_at(root.get("info", {}), "info")
    tools = tuple(_operations(reader))
    if not tools:
        raise SourceError(
            _(
                "The document has no operation that can be called: “paths” is empty, or nothing in it is supported."
            )
        )
    return Found(
        tools,
        tuple(reader.skipped),
        _server(root.get("servers"), "servers", base),
        text_clean(str(info.get("title", "")), 120),
        tuple(_security(document)),
    )


def _operations(reader: _Reader) -> Iterator[FoundTool]:
    paths = mapping_at(reader.document.root.get("paths", {}), "paths")
    for path, given in paths.items():
        if path.startswith("x-"):
            continue
        at = f"paths.{path}"
        if not path.startswith("/"):
            raise error_at(at, _("A path begins with “/”."))
        item = mapping_at(reader.document.resolve(given, at)[0], at)
        for method in (*METHODS, *_UNUSED):
            if method not in item:
                continue
            operation = mapping_at(item[method], f"{at}.{method}")
            if method in _UNUSED:
                _skip(reader, operation, path, method, gettext_noop("this method isn't supported"))
                continue
            found = _tool(reader, path, method, item, operation)
            if found is not None:
                yield found


def _skip(
    reader: _Reader, operation: Mapping[str, Any], path: str, method: str, why: str, offered: str = ""
) -> None:
    """Note an operation that is left out: why in English, which pages tell in the reader's language."""
    name = str(operation.get("operationId") or f"{method.upper()} {path}")[:200]
    reader.skipped.append({"operation": name, "why": why, **({"offered": offered} if offered else {})})


def _tool(
    reader: _Reader, path: str, method: str, item: Mapping[str, Any], operation: Mapping[str, Any]
) -> FoundTool | None:
    at = f"paths.{path}.{method}"
    arguments = arguments_read(reader.document, reader.schemas, path, item, operation, at)
    if arguments.unusable:
        _skip(reader, operation, path, method, arguments.unusable, arguments.offered)
        return None
    wire: dict[str, Any] = {"method": method.upper(), "path": path, **arguments.wire}
    servers = operation.get("servers", item.get("servers"))
    if servers:
        wire["server"] = _server(servers, f"{at}.servers", reader.base)
    if operation.get("security", reader.document.root.get("security")) == []:
        wire["public"] = True
    tags = [text_clean(str(t), 40) for t in list_at(operation.get("tags", []), f"{at}.tags")][:19]
    is_deprecated = operation.get("deprecated") is True
    return FoundTool(
        name=_name(reader, operation, path, method, at),
        title=text_clean(_line(operation, item, "summary", at), 120),
        description=_description(operation, item, path, method, at),
        parameters=_parameters(reader, arguments),
        returns=_returns(reader, operation, at),
        examples=arguments.examples,
        category=tags[0] if tags else "",
        tags=[*tags, "deprecated"] if is_deprecated else tags,
        side_effects=method not in _READS,
        idempotent=method in _REPEATABLE,
        wire=wire,
    )


def _name(reader: _Reader, operation: Mapping[str, Any], path: str, method: str, at: str) -> str:
    """Return prefix, ``_`` and the operation's id; a hash ends one that is too long, a number one that is taken."""
    given = text_at(operation.get("operationId") or f"{method}{path}", f"{at}.operationId")
    full = f"{reader.prefix}_{_OTHER.sub('_', given).strip('_') or method}"
    if len(full) > _NAME_MAX:
        digest = hashlib.sha256(given.encode()).hexdigest()[:8]
        full = f"{full[: _NAME_MAX - 9]}_{digest}"
    number, name = 1, full
    while name in reader.names:
        number += 1
        name = f"{full[: _NAME_MAX - 1 - len(str(number))]}_{number}"
    reader.names.add(name)
    return name


def _line(operation: Mapping[str, Any], item: Mapping[str, Any], key: str, at: str) -> str:
    return text_at(operation.get(key) or item.get(key) or "", f"{at}.{key}").strip()


def _description(
    operation: Mapping[str, Any], item: Mapping[str, Any], path: str, method: str, at: str
) -> str:
    summary, longer = (_line(operation, item, key, at) for key in ("summary", "description"))
    if summary and longer and not longer.startswith(summary):
        longer = f"{summary.rstrip('.')}. {longer}"
    text = text_clean(longer or summary, 2_000) or f"{method.upper()} {path}"
    return f"Deprecated. {text}" if operation.get("deprecated") is True else text


def _parameters(reader: _Reader, arguments: Arguments) -> dict[str, Any]:
    schema: dict[str, Any] = {
        "type": "object",
        "properties": dict(arguments.properties),
        "additionalProperties": False,
    }
    if arguments.required:
        schema["required"] = list(arguments.required)
    defs = reader.schemas.defs(arguments.properties.values(), "request", _MAX_DEFS)
    return {**schema, "$defs": defs} if defs else schema


def _returns(reader: _Reader, operation: Mapping[str, Any], at: str) -> dict[str, Any]:
    """Return the schema of the first success that is JSON, {} when none is stated or it is too large to be of use."""
    responses = mapping_at(operation.get("responses", {}), f"{at}.responses")
    for status in sorted(responses):
        if not status.startswith("2"):
            continue
        response, where = reader.document.resolve(responses[status], f"{at}.responses.{status}")
        content = mapping_at(mapping_at(response, where).get("content", {}), f"{where}.content")
        for media_type, media in content.items():
            if not is_json(media_type) or not isinstance(media, Mapping) or "schema" not in media:
                continue
            place = f"{where}.content.{media_type}.schema"
            schema = reader.schemas.convert(media["schema"], place, "response")
            defs = reader.schemas.defs([schema], "response", _MAX_RETURNS)
            return {**schema, "$defs": defs} if defs else schema
    return {}


def is_json(media_type: str) -> bool:
    """Tell whether a media type is JSON: ``application/json``, ``application/problem+json``."""
    kind = media_type.partition(";")[0].strip().lower()
    return kind in ("application/json", "text/json") or kind.endswith("+json")


def _server(servers: Any, at: str, base: str) -> str:
    """Return the address of the first server, its variables filled in, absolute where ``base`` allows; "" for none."""
    for index, given in enumerate(list_at(servers or [], at)):
        server = mapping_at(given, f"{at}[{index}]")
        url = text_at(server.get("url", ""), f"{at}[{index}].url")
        variables = mapping_at(server.get("variables", {}), f"{at}[{index}].variables")
        for name, variable in variables.items():
            default = mapping_at(variable, f"{at}[{index}].variables.{name}").get("default", "")
            url = url.replace(f"{{{name}}}", str(default))
        found = urljoin(base, url) if base else url
        return found.rstrip("/") if found.startswith(("http://", "https://")) else ""
    return ""


def _security(document: Document) -> Iterator[Mapping[str, str]]:
    components = mapping_at(document.root.get("components", {}), "components")
    schemes = mapping_at(components.get("securitySchemes", {}), "components.securitySchemes")
    for name, given in schemes.items():
        at = f"components.securitySchemes.{name}"
        scheme = mapping_at(document.resolve(given, at)[0], at)
        kind, where = str(scheme.get("type", "")), str(scheme.get("in", ""))
        http = str(scheme.get("scheme", "")).lower()
        parameter, text = "", text_clean(str(scheme.get("description", "")), 300)
        if kind == "apiKey" and where in ("header", "query"):
            placement, parameter = where, str(scheme.get("name", ""))[:80]
        elif kind == "apiKey" and where == "cookie":
            placement, parameter = "header", "Cookie"
            text = f"Enter {str(scheme.get('name', ''))[:80]}=… as the secret. {text}".strip()
        elif kind == "http" and http == "basic":
            placement = "basic"
        elif (kind == "http" and http == "bearer") or kind in ("oauth2", "openIdConnect"):
            placement = "bearer"
        else:
            placement, text = "", f"This way of signing in is not supported. {text}".strip()
        yield {"scheme": name[:80], "placement": placement, "parameter": parameter, "text": text}
