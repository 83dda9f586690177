"""Call one operation of a document without a database: its source stands in memory, its secrets are given."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from django.conf import settings

from apps.tools.connectors.base import IN_DB
from apps.tools.connectors.openapi import KIND
from apps.tools.connectors.openapi.operations import document_read
from apps.tools.connectors.secrets import SourceSecret
from apps.tools.models import ToolSource, ToolVersion
from basics.net_policy import NetPolicy
from tenancy.crypto import Secret
from toolloop.messages import ToolCall, ToolResult
from toolloop.tools import ToolContext, Toolset
from toolloop.tools.runtime import CheckedCall, call_prepare, call_run


def secret(value: str, placement: str = "bearer", parameter: str = "") -> SourceSecret:
    return SourceSecret(placement, parameter, Secret(value))


def source_of(url: str, **fields: Any) -> ToolSource:
    return ToolSource(pk=1, tenant_id=1, kind="openapi", name="shop", url=url, **fields)


def policy() -> NetPolicy:
    """Return where calls may go; tests put their own here."""
    return NetPolicy.of(settings.FETCH_NETWORKS)


def call(
    source: ToolSource,
    item: Mapping[str, Any],
    arguments: Mapping[str, Any] | None = None,
    *,
    path: str = "/things",
    secrets: Sequence[SourceSecret] = (),
    timeout_s: float = 10,
    **rest: Any,
) -> ToolResult:
    """Call the only operation of a path item; returns its result as a model gets it."""
    text = json.dumps({"openapi": "3.0.0", "info": {}, "paths": {path: item}, **rest})
    (found,) = document_read(text, prefix="shop").tools
    version = ToolVersion(pk=1, source=source, tool_name=found.name, number=1, spec=found.to_json())
    tools = Toolset(KIND.make(source, [version]))

    async def in_db(function: Callable[..., Any], *args: Any) -> Any:
        return source, list(secrets), policy()

    async def run() -> ToolResult:
        prepared = call_prepare(ToolCall("1", found.name, dict(arguments or {})), tools)
        if not isinstance(prepared, CheckedCall):
            return prepared
        return await call_run(prepared, ToolContext(data={IN_DB: in_db}), timeout_s=timeout_s)

    return asyncio.run(run())
