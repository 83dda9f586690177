"""The API's reference: one page of plain HTML from the OpenAPI schema, so that the strict CSP holds here too."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_GET
from drf_spectacular.generators import SchemaGenerator

_METHODS = ("get", "post", "put", "patch", "delete")


@require_GET
def api_docs(request: HttpRequest) -> HttpResponse:
    """Show every operation by tag: parameters, body, answers, how to authenticate."""
    return render(request, "web/api_docs.html", reference())


@lru_cache(maxsize=1)
def reference() -> dict[str, Any]:
    """Return what the page shows; the schema cannot change while the process lives."""
    schema = SchemaGenerator().get_schema(request=None, public=True)  # type: ignore[no-untyped-call]
    groups: dict[str, list[dict[str, Any]]] = {}
    for path, item in sorted(schema["paths"].items()):
        for method in _METHODS:
            if method in item:
                operation = item[method]
                tag = (operation.get("tags") or ["other"])[0]
                groups.setdefault(tag, []).append(_operation(schema, method, path, operation))
    return {
        "info": schema["info"],
        "groups": [{"tag": tag, "operations": found} for tag, found in sorted(groups.items())],
    }


def _operation(schema: dict[str, Any], method: str, path: str, operation: dict[str, Any]) -> dict[str, Any]:
    description = operation.get("description", "").strip()
    summary, _, rest = description.partition("\n")
    body = operation.get("requestBody", {}).get("content", {})
    return {
        "id": operation["operationId"],
        "method": method.upper(),
        "path": path,
        "summary": operation.get("summary") or summary,
        "description": rest.strip(),
        "parameters": [
            {
                "name": p["name"],
                "where": p["in"],
                "is_required": p.get("required", False),
                "kind": type_name(p.get("schema", {})),
                "description": p.get("description", ""),
            }
            for p in operation.get("parameters", [])
        ],
        "body_types": list(body),
        "body": _fields(schema, _content(operation.get("requestBody", {}))),
        "answers": [
            {
                "status": status,
                "description": answer.get("description", ""),
                "kind": type_name(_content(answer)),
                "fields": _fields(schema, _content(answer)) if status.startswith("2") else [],
            }
            for status, answer in operation["responses"].items()
        ],
    }


def _content(part: dict[str, Any]) -> dict[str, Any]:
    """Return the schema of a body's or an answer's first media type, {} where it has none."""
    for media in part.get("content", {}).values():
        found: dict[str, Any] = media.get("schema", {})
        return found
    return {}


def _fields(schema: dict[str, Any], part: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the properties of an object schema, one level deep; those of a page are its rows'."""
    found = _resolved(schema, part)
    if found.get("type") == "array":
        found = _resolved(schema, found.get("items", {}))
    rows = found.get("properties", {}).get("results")
    if rows:
        found = _resolved(schema, rows.get("items", {}))
    required = set(found.get("required", []))
    return [
        {
            "name": name,
            "kind": type_name(value),
            "is_required": name in required,
            "description": value.get("description", ""),
        }
        for name, value in found.get("properties", {}).items()
    ]


def _resolved(schema: dict[str, Any], part: dict[str, Any]) -> dict[str, Any]:
    if "$ref" in part:
        found: dict[str, Any] = schema["components"]["schemas"][part["$ref"].rsplit("/", 1)[-1]]
        return found
    if len(part.get("allOf", [])) == 1:
        return _resolved(schema, part["allOf"][0])
    return part


def type_name(part: dict[str, Any]) -> str:
    """Return a schema's type in a few words: "string", "list of Chunk", "integer or null"."""
    if "$ref" in part:
        return str(part["$ref"]).rsplit("/", 1)[-1]
    for key, joiner in (("allOf", " and "), ("oneOf", " or "), ("anyOf", " or ")):
        if key in part:
            return joiner.join(filter(None, (type_name(p) for p in part[key])))
    kind = part.get("type", "")
    if isinstance(kind, list):
        return " or ".join(kind)
    if kind == "array":
        return f"list of {type_name(part.get('items', {})) or 'anything'}"
    if "enum" in part:
        return ", ".join(f"“{v}”" for v in part["enum"] if v is not None)
    name = str(part.get("format") or kind)
    return f"{name} or null" if part.get("nullable") else name
