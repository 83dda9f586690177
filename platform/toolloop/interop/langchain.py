"""Our tools as LangChain tools, and LangChain tools as ours.

LangChain is an optional extra: install ``requirements/langchain.txt``.
"""

from __future__ import annotations

import base64
import binascii
import json
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from toolloop.deferred import ParkCall, PendingCall
from toolloop.errors import ConfigurationError, MediaRefused
from toolloop.interop.portal import run_in_portal
from toolloop.media import Media
from toolloop.messages import ToolCall, ToolResult
from toolloop.tools.context import ToolContext, ToolDefinitionError, ToolError, ToolOutput
from toolloop.tools.gate import call_gate
from toolloop.tools.runtime import (
    BlockingRunner,
    CheckedCall,
    call_prepare,
    call_run,
    output_cut,
    run_in_thread,
)
from toolloop.tools.tool import ApprovalRule, Tool
from toolloop.tools.toolset import Toolset

if TYPE_CHECKING:
    from langchain_core.tools import BaseTool, StructuredTool

# LangChain's own keywords of the methods that take a tool's arguments as keywords.
_TAKEN = frozenset({"config", "run_manager", "self"})


def _langchain() -> Any:
    try:
        import langchain_core.tools
    except ImportError as error:
        raise ConfigurationError(
            "LangChain is not installed: pip install -r requirements/langchain.txt (or: pip install langchain-core)"
        ) from error
    return langchain_core.tools


def langchain_require() -> None:
    """Raise ConfigurationError, which says how to install it, unless LangChain is there."""
    _langchain()


def to_langchain(
    tool: Tool,
    *,
    context: Mapping[str, Any] | None = None,
    handle_errors: bool = True,
    approval_elsewhere: bool = False,
    timeout_s: float = 60.0,
    max_output_chars: int = 40_000,
) -> StructuredTool:
    """Return a tool of ours as a LangChain ``StructuredTool``, for sync and async use.

    The arguments are checked by us, whatever LangChain does. The message's content is the text for the model, its
    artifact the payload for the application.

    Args:
        tool: any tool that does not wait for an answer from outside.
        context: what tools get as ``ToolContext.data``.
        handle_errors: give failures to the model as a message with status "error"; False raises ``ToolException`` from
            ``invoke``, which ends most agents.
        approval_elsewhere: the application asks for approvals itself (LangChain's human-in-the-loop middleware, say);
            else a call that needs one fails.
        timeout_s: for a tool that states none.
        max_output_chars: of a result that the model sees.

    Raises:
        ConfigurationError: LangChain is not installed.
        ToolDefinitionError: LangChain cannot call such a tool.
    """
    if tool.external:
        raise ToolDefinitionError(
            f"tool {tool.name!r} is answered from outside, and LangChain can't wait for that"
        )
    taken = sorted(_TAKEN & set(tool.parameters.get("properties", {})))
    if taken:
        raise ToolDefinitionError(
            f"tool {tool.name!r}: LangChain keeps the argument name {taken[0]!r} for itself; rename it"
        )
    tools = _langchain()
    toolset = Toolset([tool])

    async def coroutine(**arguments: Any) -> tuple[Any, Any]:
        call_id = f"lc_{uuid.uuid4().hex}"
        call = ToolCall(call_id, tool.name, arguments, json.dumps(arguments, default=str))
        result = await _run(call, toolset, ToolContext(context or {}, call_id))
        content = output_cut(result.content, max_output_chars)
        if result.is_error:
            raise tools.ToolException(content)
        return with_parts(content, result.parts), result.payload

    async def _run(call: ToolCall, toolset: Toolset, told: ToolContext) -> ToolResult:
        prepared = call_prepare(call, toolset)
        if isinstance(prepared, ToolResult):
            return prepared
        if not approval_elsewhere:
            gated = call_gate(prepared, toolset, told, None)
            if isinstance(gated, PendingCall):
                raise tools.ToolException(f"{tool.name} was not run: a person must approve it.")
        try:
            return await call_run(prepared, told, timeout_s=timeout_s)
        except ParkCall as parked:
            reason = parked.reason or "a person must decide"
            raise tools.ToolException(f"{tool.name} was not run: {reason}.") from parked

    def function(**arguments: Any) -> tuple[Any, Any]:
        return run_in_portal(coroutine(**arguments))

    made: StructuredTool = tools.StructuredTool.from_function(
        func=function,
        coroutine=coroutine,
        name=tool.name,
        description=tool.description,
        args_schema=dict(tool.parameters),
        infer_schema=False,
        response_format="content_and_artifact",
        handle_tool_error=handle_errors,
        tags=list(tool.tags),
        metadata={"side_effects": tool.side_effects, "category": tool.category},
    )
    return made


def functions_of(toolset: Toolset) -> list[dict[str, Any]]:
    """Return tools in OpenAI's function format, as LangChain writes it; ours word for word.

    Raises:
        ConfigurationError: LangChain is not installed.
    """
    tools = _langchain()
    from langchain_core.utils.function_calling import convert_to_openai_tool

    return [convert_to_openai_tool(_declared(tools, tool, _never)) for tool in toolset]


async def call_run_langchain(
    prepared: CheckedCall,
    context: ToolContext,
    *,
    timeout_s: float,
    run_blocking: BlockingRunner = run_in_thread,
) -> ToolResult:
    """Run a prepared call as ``call_run`` does and with the same result, as the call of a LangChain tool.

    What an application hangs on LangChain's tools (callbacks, tracing) sees it.

    Raises:
        ConfigurationError: LangChain is not installed.
    """
    tools = _langchain()

    async def coroutine(**arguments: Any) -> tuple[Any, ToolResult]:
        call = replace(prepared.call, arguments=arguments)
        again = call_prepare(call, Toolset([prepared.tool]))
        if isinstance(again, ToolResult):
            return again.content, again
        result = await call_run(again, context, timeout_s=timeout_s, run_blocking=run_blocking)
        return with_parts(result.content, result.parts), result

    call = prepared.call
    sent = {"name": call.name, "args": dict(call.arguments or {}), "id": call.id, "type": "tool_call"}
    message = await _declared(tools, prepared.tool, coroutine).ainvoke(sent)
    result: ToolResult = message.artifact
    return result


def _declared(tools: Any, tool: Tool, coroutine: Any) -> StructuredTool:
    made: StructuredTool = tools.StructuredTool.from_function(
        coroutine=coroutine,
        name=tool.name,
        description=tool.description,
        args_schema=dict(tool.parameters),
        infer_schema=False,
        response_format="content_and_artifact",
    )
    return made


async def _never(**arguments: Any) -> tuple[Any, Any]:
    raise ConfigurationError("this tool was created only to be shown, not called")


def with_parts(text: str, parts: Sequence[Media]) -> Any:
    """Return a message's content: the text, or with images and files LangChain's standard blocks."""
    if not parts:
        return text
    blocks: list[dict[str, Any]] = [{"type": "text", "text": text}]
    for part in parts:
        kind = part.kind if part.kind in ("image", "audio") else "file"
        where = {"url": part.url} if part.url else {"base64": part.data}
        blocks.append({"type": kind, "mime_type": part.media_type, **where})
    return blocks


def from_langchain(
    tool: BaseTool,
    *,
    name: str = "",
    side_effects: bool = True,
    idempotent: bool | None = None,
    sequential: bool = False,
    timeout_s: float | None = 60.0,
    needs_approval: ApprovalRule = False,
    images: bool = False,
    category: str = "langchain",
    group: str = "",
) -> Tool:
    """Return a LangChain tool as one of ours.

    The schema is what LangChain would show a model. Injected arguments (``InjectedToolArg`` and its kinds) are not in
    it: they are filled from ``ToolContext.data`` by their own names, and the call's id by LangChain itself. A
    ``content_and_artifact`` tool's artifact becomes the payload; ``ToolException`` becomes ``ToolError``.

    Args:
        tool: any ``BaseTool``; one without an async form runs in a thread of LangChain's.
        name: replaces its name, where providers would not take that.
        side_effects: LangChain does not say, so the careful answer is the default. False lets a crash repeat the call.
        idempotent: the opposite of ``side_effects`` when None.
        images: show images it returns to the model, which must take them; else a note says that there was one.
        sequential, timeout_s, needs_approval, category, group: see ``Tool``.

    Raises:
        ConfigurationError: LangChain is not installed.
        ToolDefinitionError: the tool has no usable name, description or schema.
    """
    tools = _langchain()
    if not isinstance(tool, tools.BaseTool):
        raise ToolDefinitionError(f"{tool!r} isn't a LangChain tool")
    from pydantic import ValidationError

    schema = _schema(tool)
    hidden, injected = _injected(tool, set(schema.get("properties", {})))

    async def function(told: ToolContext, arguments: dict[str, Any]) -> ToolOutput:
        forbidden = sorted(hidden & set(arguments))
        if forbidden:
            raise ToolError(f"{forbidden[0]} is set by the application: leave it out.")
        given = dict(arguments)
        for parameter, is_required in injected.items():
            if parameter in told.data:
                given[parameter] = told.data[parameter]
            elif is_required:
                raise ConfigurationError(
                    f"LangChain tool {tool.name!r} needs {parameter!r} in the run's context"
                )
        call = {"name": tool.name, "args": given, "id": told.call_id or "call", "type": "tool_call"}
        try:
            message = await tool.ainvoke(call)
        except tools.ToolException as error:
            raise ToolError(str(error) or "The tool failed.") from error
        except ValidationError as error:
            problems = "; ".join(
                f"{'.'.join(str(part) for part in e['loc'])}: {e['msg']}" for e in error.errors()
            )
            raise ToolError(f"The arguments do not fit {tool.name}: {problems}.") from error
        return _output(message, images=images)

    return Tool(
        name=name or tool.name,
        description=tool.description,
        parameters=schema,
        function=_Caller(function),
        side_effects=side_effects,
        idempotent=not side_effects if idempotent is None else idempotent,
        sequential=sequential,
        timeout_s=timeout_s,
        context_parameter=_CONTEXT,
        needs_approval=needs_approval,
        category=category,
        group=group,
        tags=tuple(tool.tags or ()),
    )


# No argument of a model can have this name: a provider would not take it in a schema.
_CONTEXT = " context"


class _Caller:
    """Takes the arguments as keywords, whatever their names, and the context beside them."""

    def __init__(self, function: Any) -> None:
        self._function = function

    async def __call__(self, /, **arguments: Any) -> ToolOutput:
        told = arguments.pop(_CONTEXT)
        output: ToolOutput = await self._function(told, arguments)
        return output


def _schema(tool: BaseTool) -> dict[str, Any]:
    shown: Any = tool.tool_call_schema
    schema = dict(shown) if isinstance(shown, dict) else shown.model_json_schema()
    for told_elsewhere in ("title", "description"):
        schema.pop(told_elsewhere, None)
    schema.setdefault("type", "object")
    schema.setdefault("properties", {})
    return schema


def _injected(tool: BaseTool, shown: set[str]) -> tuple[set[str], dict[str, bool]]:
    """Return the arguments a model must not see, and of those that we fill in, whether each must be there."""
    from langchain_core.tools import InjectedToolCallId

    if isinstance(tool.args_schema, dict):
        return set(), {}
    fields = getattr(tool.get_input_schema(), "model_fields", {})
    hidden = {n: f for n, f in fields.items() if n not in shown and (f.alias or n) not in shown}
    ours = {
        name: field.is_required()
        for name, field in hidden.items()
        # The call's id LangChain fills in.
        if not any(m is InjectedToolCallId or isinstance(m, InjectedToolCallId) for m in field.metadata)
    }
    return set(hidden), ours


def _output(message: Any, *, images: bool) -> ToolOutput:
    from langchain_core.messages import ToolMessage
    from pydantic_core import to_jsonable_python

    if not isinstance(message, ToolMessage):
        # A Command of LangGraph changes a graph's state; outside of a graph there is none.
        raise ToolError(
            "The tool answered with a command for a LangGraph graph; it can only be used in one.", "fatal"
        )
    text, parts = _content(message.content, images=images)
    if message.status == "error":
        raise ToolError(text or "The tool failed.")
    payload = None
    if message.artifact is not None:
        payload = to_jsonable_python(message.artifact, fallback=str)
    return ToolOutput(text, payload, parts)


def _content(content: Any, *, images: bool) -> tuple[str, tuple[Media, ...]]:
    if isinstance(content, str):
        return content, ()
    lines: list[str] = []
    parts: list[Media] = []
    for block in content:
        if isinstance(block, str):
            lines.append(block)
        elif block.get("type") == "text":
            lines.append(str(block.get("text", "")))
        elif images and (part := _image(block)) is not None:
            parts.append(part)
        else:
            lines.append(f"[{block.get('type', 'block')}: not shown]")
    return "\n".join(lines), tuple(parts)


def _image(block: Mapping[str, Any]) -> Media | None:
    """Read LangChain's standard image block with its bytes; None for any other."""
    if block.get("type") != "image" or not isinstance(block.get("base64"), str):
        return None
    try:
        content = base64.b64decode(block["base64"], validate=True)
        media = Media.from_bytes(content, str(block.get("mime_type", "")))
    except (MediaRefused, binascii.Error):
        return None
    return media if media.kind == "image" else None
