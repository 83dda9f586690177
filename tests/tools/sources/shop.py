"""A source whose tools are what a test says, and what is done with sources."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from django.db import connection

from apps.tools.connectors.base import FoundTool
from apps.tools.models import ToolSource, ToolVersion
from apps.tools.sources import services as sources_services
from apps.tools.sources import versions as sources_versions
from basics.errors import DomainError, Invalid
from jobs.models import Job
from jobs.runner import run_here
from tenancy.models import AuditEvent
from tenancy.scope import tenant_scope
from tests.cast import Cast
from toolloop.tools import Tool


def tool_of(name: str, **facts: Any) -> FoundTool:
    parameters = facts.pop("parameters", None) or {
        "type": "object",
        "properties": {"id": {"type": "integer"}},
        "required": ["id"],
    }
    facts = {"side_effects": False, "idempotent": True, **facts}
    return FoundTool(name, f"Do {name}.", parameters, **facts)


class Shop:
    """A kind of source whose tools are what the test says, and whose calls answer what it says."""

    def __init__(self) -> None:
        self.tools: list[FoundTool] = [tool_of("shop_get"), tool_of("shop_list")]
        self.answer: Any = {"id": 1, "name": "Lamp"}
        self.problem: DomainError | None = None
        self.reads = 0
        self.on_read: Any = None

    def check(self, source: ToolSource) -> None:
        if source.url and not source.url.startswith("https://"):
            raise Invalid("invalid", "No.", data={"fields": {"url": ["No."]}})

    def read(self, source: ToolSource) -> Sequence[FoundTool]:
        assert not connection.in_atomic_block
        self.reads += 1
        if self.on_read:
            self.on_read()
        if self.problem:
            raise self.problem
        return self.tools

    def make(self, source: ToolSource, versions: Sequence[ToolVersion]) -> Iterable[Tool]:
        async def call(**arguments: Any) -> Any:
            return self.answer

        for version in versions:
            spec = version.spec
            yield Tool(spec["name"], spec["description"], spec["parameters"], call)


def create(cast: Cast, **fields: Any) -> ToolSource:
    values = {"kind": "openapi", "name": "shop", "url": "https://shop.example.org/v1", **fields}
    row = sources_services.source_create(tenant=cast.tenant, actor=cast.actor("admin"), **values)
    work(cast)
    return row


def work(cast: Cast) -> list[str]:
    """Run the waiting jobs; returns how they ended."""
    with tenant_scope(cast.tenant.pk):
        waiting = list(Job.objects.filter(status="queued", kind="tools.source_refresh").order_by("pk"))
    return [run_here(cast.tenant.pk, job.pk).status for job in waiting]


def refresh(cast: Cast, source: ToolSource, **options: Any) -> list[str]:
    sources_services.source_refresh(tenant=cast.tenant, actor=cast.actor("admin"), pk=source.pk, **options)
    return work(cast)


def states(cast: Cast, **only: Any) -> list[str]:
    """Return the versions as texts: name, number, state, gone."""
    with tenant_scope(cast.tenant.pk):
        rows = ToolVersion.objects.filter(**only).order_by("tool_name", "number")
        return [f"{v} {v.state}{' gone' if v.is_gone else ''}" for v in rows]


def waiting(cast: Cast) -> list[int]:
    with tenant_scope(cast.tenant.pk):
        return list(ToolVersion.objects.filter(state="waiting").values_list("pk", flat=True))


def accept(cast: Cast, *pks: int, **options: Any) -> list[ToolVersion]:
    return sources_versions.version_accept(
        tenant=cast.tenant, actor=cast.actor("admin"), pks=pks or waiting(cast), **options
    )


def audited(cast: Cast, action: str) -> list[dict[str, Any]]:
    with tenant_scope(cast.tenant.pk):
        return list(AuditEvent.objects.filter(action=action).order_by("pk").values_list("data", flat=True))
