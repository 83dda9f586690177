"""What the tests of the admin of tools share: its addresses, its forms, and rows to show."""

from __future__ import annotations

from typing import Any

from django.urls import reverse

from apps.tools.connectors.base import FoundTool
from apps.tools.models import ToolSource, ToolVersion
from tenancy.models import AuditEvent
from tenancy.scope import tenant_scope
from tests.cast import Cast

CANARY = "canary-secret-4711-abcd"


def url(name: str, *args: Any, **query: Any) -> str:
    address = reverse(f"admin:tools_{name}", args=args)
    return address + ("?" + "&".join(f"{k}={v}" for k, v in query.items()) if query else "")


def who(cast: Cast, role: str = "owner") -> Any:
    return {"tenant": cast.tenant, "actor": cast.actor(role)}


def trail(cast: Cast) -> list[str]:
    with tenant_scope(cast.tenant.pk):
        return list(AuditEvent.objects.order_by("pk").values_list("action", flat=True))


def make_source(cast: Cast, **values: Any) -> ToolSource:
    with tenant_scope(cast.tenant.pk):
        source: ToolSource = ToolSource.objects.create(
            **{
                "tenant": cast.tenant,
                "kind": "openapi",
                "name": "crm",
                "url": "https://crm.example.org/api",
                "document_url": "https://crm.example.org/openapi.json",
                **values,
            }
        )
    return source


def make_version(source: ToolSource, number: int = 1, state: str = "current", **spec: Any) -> ToolVersion:
    found = FoundTool(
        **{
            "name": "crm_find",
            "description": "Find.",
            "parameters": {"type": "object", "properties": {}},
            **spec,
        }
    )
    with tenant_scope(source.tenant_id):
        row: ToolVersion = ToolVersion.objects.create(
            tenant_id=source.tenant_id,
            source=source,
            tool_name=found.name,
            number=number,
            state=state,
            spec=found.to_json(),
            digest=found.digest(),
        )
    return row


ENTRY: dict[str, Any] = {
    "title": "",
    "description": "",
    "category": "",
    "tags": "",
    "cost_hint": "",
    "timeout_s": "",
    "is_enabled": "on",
}
GRANT: dict[str, Any] = {
    "effect": "deny",
    "target_kind": "tool",
    "target": "pay",
    "toolkit": "",
    "calls": "any",
    "who": "everyone:",
    "collection": "",
    "arguments": "[]",
    "expires_at_0": "",
    "expires_at_1": "",
    "note": "",
}
MEMBERS = {"members-TOTAL_FORMS": "2", "members-INITIAL_FORMS": "0"}
