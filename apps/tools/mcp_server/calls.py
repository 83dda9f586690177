"""Tools over MCP: offered, decided about, run and recorded as over REST (``apps.tools.calls.services``)."""

from __future__ import annotations

import asyncio
import json
import uuid
from collections.abc import Mapping
from concurrent.futures import Future
from typing import Any

from django.urls import reverse
from mcp.shared.exceptions import MCPError
from mcp_types import (
    INVALID_PARAMS,
    CallToolResult,
    ImageContent,
    ListToolsResult,
    TextContent,
    Tool,
    ToolAnnotations,
)

from apps.tools.calls.services import MAX_OUTPUT, call_parse, calls_execute
from apps.tools.mcp_server.caller import Caller
from apps.tools.mcp_server.cursors import PAGE, cursor_read, cursor_write
from apps.tools.mcp_server.outcomes import CallsOutcome, outcome_get
from apps.tools.toolset.direct_calls import offer_guard, offer_tools
from runs.models import CallPath, Run
from tenancy.database.waiting import in_db
from toolloop.messages import ToolResult
from toolloop.tools import Tool as OurTool
from toolloop.tools.runtime import output_cut

OUTCOME = "approval_result"
_OUTCOME_TOOL = Tool(
    name=OUTCOME,
    description="Tell what became of a call that waits for a person's approval: its result once it was approved and has run, "
    "the reason when it was refused, or that it still waits.",
    input_schema={
        "type": "object",
        "properties": {
            "run": {"type": "integer", "description": "Number of the run, as the call was answered."}
        },
        "required": ["run"],
        "additionalProperties": False,
    },
    annotations=ToolAnnotations(read_only_hint=True),
)


def tool_page(caller: Caller, cursor: str) -> ListToolsResult:
    """Return the tools that some call of the caller could be allowed, by name, and the server's own for approvals."""
    after = cursor_read(cursor)
    offered = offer_tools(offer_guard(actor=caller.actor, collections=None))
    tools = {tool.name: _shown(tool) for tool in offered}
    if tools and caller.actor.can("run.read"):
        tools[OUTCOME] = _OUTCOME_TOOL
    names = sorted(name for name in tools if name > after)
    is_last = len(names) <= PAGE
    return ListToolsResult(
        tools=[tools[name] for name in names[:PAGE]],
        next_cursor=None if is_last else cursor_write(names[PAGE - 1]),
    )


async def tool_call(caller: Caller, name: str, arguments: Mapping[str, Any]) -> CallToolResult:
    """Run a call when it is allowed, let it wait where a person must approve it, refuse it otherwise.

    Cancelled, it stops the call, and the run that records it says so.

    Raises:
        MCPError: no such tool for the caller.
        DomainError: from the service.
    """
    stop: Future[None] = Future()
    try:
        return await in_db(_call, caller, name, arguments, stop)
    except asyncio.CancelledError:
        stop.set_result(None)
        raise


def _call(caller: Caller, name: str, arguments: Mapping[str, Any], stop: Future[None]) -> CallToolResult:
    if name == OUTCOME:
        return _outcome(caller, arguments)
    call = call_parse(f"mcp_{uuid.uuid4().hex}", name, json.dumps(arguments))
    done = calls_execute(tenant=caller.tenant, actor=caller.actor, calls=[call], path=CallPath.MCP, stop=stop)
    result = done.results[0]
    if result is not None and result.error_code == "unknown_tool":
        raise MCPError(INVALID_PARAMS, result.content, {"code": "unknown_tool"})
    if result is not None:
        return _answered(result, done.run)
    if done.waiting is None:
        raise AssertionError("a call neither ended nor waits")
    return _waiting(caller, name, done.waiting.pk)


def _shown(tool: OurTool) -> Tool:
    return Tool(
        name=tool.name,
        description=tool.description,
        input_schema=dict(tool.parameters),
        annotations=ToolAnnotations(read_only_hint=not tool.side_effects, idempotent_hint=tool.idempotent),
    )


def _answered(result: ToolResult, run: Run | None) -> CallToolResult:
    pictures = [
        ImageContent(data=part.data, mime_type=part.media_type)
        for part in result.parts
        if part.data and part.media_type.startswith("image/")
    ]
    return CallToolResult(
        content=[TextContent(text=output_cut(result.content, MAX_OUTPUT)), *pictures],
        is_error=result.is_error,
        _meta={"groundwork/run": run and run.pk, "groundwork/error_code": result.error_code},
    )


def _waiting(caller: Caller, name: str, run: int) -> CallToolResult:
    address = caller.base_url + reverse("tools:approvals", args=[caller.tenant.slug])
    text = (
        f"{name} has not run yet: a person must approve this call first. It waits as run {run}, and is decided about at "
        f"{address}. Do not make the call again. Ask {OUTCOME} with run {run} for its result later."
    )
    facts = {
        "status": "waiting_for_approval",
        "run": run,
        "decide_at": address,
        "decide_by_rest_at": caller.base_url + reverse("api:decisions-list", args=[run]),
        "result_at": f"groundwork://runs/{run}",
    }
    return CallToolResult(content=[TextContent(text=text)], structured_content=facts)


def _outcome(caller: Caller, arguments: Mapping[str, Any]) -> CallToolResult:
    run = arguments.get("run")
    if not isinstance(run, int) or isinstance(run, bool) or not 0 < run < 2**63:
        raise MCPError(INVALID_PARAMS, "Give the number of the run.", {"code": "invalid"})
    found: CallsOutcome = outcome_get(actor=caller.actor, pk=run)
    return CallToolResult(
        content=[TextContent(text=found.text())], structured_content=found.facts(), is_error=found.is_error
    )
