"""What the OpenAPI schema says on every operation: how to authenticate, and how errors look."""

from __future__ import annotations

from typing import Any

from drf_spectacular.extensions import OpenApiAuthenticationExtension

from tenancy.idempotency import MAX_KEY
from web.drf.idempotency import HEADER, REPLAYED, WRITES

ERROR_NAME = "Error"
ERROR = {
    "type": "object",
    "description": "The shape of every error.",
    "required": ["code", "message", "details", "request_id"],
    "properties": {
        "code": {"type": "string", "description": "Stable name of the error, in snake case."},
        "message": {"type": "string", "description": "What happened and what to do, for a person."},
        "details": {
            "type": "object",
            "additionalProperties": True,
            "description": "Facts for a program; `fields` maps input fields to their problems.",
        },
        "request_id": {"type": "string", "description": "Quote it when you ask for help."},
    },
}
_METHODS = ("get", "post", "put", "patch", "delete")
_COMMON = {
    "400": "The input is invalid.",
    "401": "No key or session, or an invalid one.",
    "403": "The key's scopes or the person's role do not allow this.",
    "404": "No such object in this workspace.",
    "409": "Its state, or that of another object, does not allow this now.",
    "410": "Its file is no longer stored.",
    "413": "The body is larger than this server accepts.",
    "422": "The stored data can't be read this way, or the Idempotency-Key was already used for a "
    "different request.",
    "429": "Too many requests from this caller or workspace; `Retry-After` and `details` say when to retry.",
}
IDEMPOTENCY = {
    "in": "header",
    "name": HEADER,
    "schema": {"type": "string", "minLength": 1, "maxLength": MAX_KEY, "pattern": "^[!-~]+$"},
    "description": "A unique value for this request, for example a UUID. For 24 hours, repeating the "
    f"request returns the first response with the header `{REPLAYED}: true` and changes nothing. While the "
    "first is in progress, the response is 409 with `Retry-After`; using the key for a different request "
    "is 422 (`idempotency_key_reused`). Refused requests don't use up the key.",
}
_REPLAYED = {
    REPLAYED: {
        "schema": {"type": "string", "enum": ["true"]},
        "description": "This is the response to an earlier request with the same Idempotency-Key.",
    }
}


class ApiKeyScheme(OpenApiAuthenticationExtension):  # type: ignore[no-untyped-call]
    target_class = "web.drf.auth.ApiKeyAuthentication"
    name = "apiKey"

    def get_security_definition(self, auto_schema: Any) -> dict[str, Any]:
        return {
            "type": "http",
            "scheme": "bearer",
            "bearerFormat": "gw_<prefix>_<secret>",
            "description": "An API key of a workspace: Settings, API keys.",
        }


class SessionScheme(OpenApiAuthenticationExtension):  # type: ignore[no-untyped-call]
    target_class = "web.drf.auth.TenantSessionAuthentication"
    name = "session"

    def get_security_definition(self, auto_schema: Any) -> dict[str, Any]:
        return {
            "type": "apiKey",
            "in": "cookie",
            "name": "groundwork_session",
            "description": "A signed-in browser. Name the workspace in the header `X-Tenant` or in `?tenant=`; "
            "writing needs the CSRF token.",
        }


def document_errors(result: dict[str, Any], generator: Any, request: Any, public: bool) -> Any:
    """Add the error answers to every operation (drf-spectacular's postprocessing hook)."""
    result.setdefault("components", {}).setdefault("schemas", {})[ERROR_NAME] = ERROR
    content = {"application/json": {"schema": {"$ref": f"#/components/schemas/{ERROR_NAME}"}}}
    for path, item in result.get("paths", {}).items():
        for method in _METHODS:
            if (operation := item.get(method)) is None:
                continue
            responses = operation["responses"]
            for status, description in _COMMON.items():
                if not _can_happen(status, path, method, operation):
                    continue
                responses.setdefault(status, {"description": description, "content": content})
            if method.upper() in WRITES:
                operation.setdefault("parameters", []).append(IDEMPOTENCY)
                for status, answer in responses.items():
                    if status.startswith("2"):
                        answer["headers"] = answer.get("headers", {}) | _REPLAYED
            for answer in responses.values():
                answer.setdefault("description", "")
            operation["responses"] = dict(sorted(responses.items()))
    return result


def _can_happen(status: str, path: str, method: str, operation: dict[str, Any]) -> bool:
    """Tell whether an error makes sense on an operation: reads without an id find something or nothing."""
    is_read = method == "get"
    return {
        # A question may name an object too, as the tools offered for a collection do.
        "404": "{" in path or not is_read or path.endswith("/tools"),
        # Two things that are read together may have nothing in common.
        "409": not is_read or path.endswith("/comparison"),
        "410": is_read and _is_file(operation),
        "413": "requestBody" in operation,
        # A repository is read when it is asked for, and may be none, damaged or too large.
        "422": not is_read or "/git/" in path,
    }.get(status, True)


def _is_file(operation: dict[str, Any]) -> bool:
    """Tell whether the answer is a file rather than an object or a stream of events."""
    types = operation["responses"].get("200", {}).get("content", {})
    return bool(types) and not types.keys() & {"application/json", "text/event-stream"}
