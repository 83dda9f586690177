"""OpenAPI documents for tests and the benchmark."""

from __future__ import annotations

from typing import Any

NOUNS = (
    "order",
    "customer",
    "invoice",
    "shipment",
    "product",
    "warehouse",
    "ticket",
    "user",
    "report",
    "price",
)


def large_document(operations: int = 150, server: str = "https://api.example.org/v1") -> dict[str, Any]:
    """Return a document like that of a business API: shared and recursive schemas, parameters, bodies, errors."""
    paths: dict[str, Any] = {}
    schemas: dict[str, Any] = {
        "Error": {
            "type": "object",
            "properties": {"code": {"type": "string"}, "message": {"type": "string"}},
        },
        "Page": {
            "type": "object",
            "properties": {"next": {"type": "string", "nullable": True}, "total": {"type": "integer"}},
        },
    }
    count = 0
    while count < operations:
        noun = f"{NOUNS[count // 5 % len(NOUNS)]}{count // 5}"
        name = noun.capitalize()
        schemas[name] = _resource(name)
        one, many = {"$ref": f"#/components/schemas/{name}"}, f"/{noun}s"
        page = {
            "allOf": [
                {"$ref": "#/components/schemas/Page"},
                {"type": "object", "properties": {"items": {"type": "array", "items": one}}},
            ]
        }
        identified = [{"$ref": "#/components/parameters/Id"}]
        made = [
            (many, "get", {"operationId": f"list{name}", "parameters": _filters(), **_answers(page)}),
            (many, "post", {"operationId": f"create{name}", **_takes(one), **_answers(one)}),
            (
                f"{many}/{{id}}",
                "get",
                {"operationId": f"get{name}", "parameters": identified, **_answers(one)},
            ),
            (
                f"{many}/{{id}}",
                "put",
                {"operationId": f"replace{name}", "parameters": identified, **_takes(one), **_answers(one)},
            ),
            (
                f"{many}/{{id}}",
                "delete",
                {
                    "operationId": f"delete{name}",
                    "parameters": identified,
                    "responses": {"204": {"description": "Gone."}},
                },
            ),
        ]
        for path, method, operation in made[: operations - count]:
            operation |= {
                "summary": f"{method} {noun}",
                "description": "Works on one of them. " * 8,
                "tags": [noun],
            }
            paths.setdefault(path, {})[method] = operation
            count += 1
    return {
        "openapi": "3.0.3",
        "info": {"title": "Business API", "version": "1"},
        "servers": [{"url": server}],
        "paths": paths,
        "components": {
            "schemas": schemas,
            "parameters": {
                "Id": {
                    "name": "id",
                    "in": "path",
                    "required": True,
                    "schema": {"type": "string", "format": "uuid"},
                }
            },
            "responses": {
                "Problem": {
                    "description": "No.",
                    "content": {"application/json": {"schema": {"$ref": "#/components/schemas/Error"}}},
                }
            },
            "securitySchemes": {"key": {"type": "apiKey", "in": "header", "name": "X-Api-Key"}},
        },
        "security": [{"key": []}],
    }


def _resource(name: str) -> dict[str, Any]:
    plain = {
        f"field_{i}": {"type": "string", "description": f"The {i}th fact about it.", "maxLength": 200}
        for i in range(15)
    }
    return {
        "type": "object",
        "required": ["id", "field_0"],
        "properties": {
            "id": {"type": "string", "format": "uuid", "readOnly": True},
            **plain,
            "state": {"type": "string", "enum": ["new", "open", "closed"], "nullable": True},
            "amount": {"type": "number", "minimum": 0, "exclusiveMinimum": True},
            "parent": {"$ref": f"#/components/schemas/{name}"},
            "children": {"type": "array", "items": {"$ref": f"#/components/schemas/{name}"}},
        },
    }


def _filters() -> list[dict[str, Any]]:
    return [
        {
            "name": "limit",
            "in": "query",
            "schema": {"type": "integer", "minimum": 1, "maximum": 100},
            "example": 10,
        },
        {"name": "state", "in": "query", "schema": {"type": "array", "items": {"type": "string"}}},
        {
            "name": "filter",
            "in": "query",
            "style": "deepObject",
            "explode": True,
            "schema": {"type": "object"},
        },
    ]


def _takes(schema: dict[str, Any]) -> dict[str, Any]:
    return {"requestBody": {"required": True, "content": {"application/json": {"schema": schema}}}}


def _answers(schema: dict[str, Any]) -> dict[str, Any]:
    return {
        "responses": {
            "200": {"description": "Done.", "content": {"application/json": {"schema": schema}}},
            "default": {"$ref": "#/components/responses/Problem"},
        }
    }
