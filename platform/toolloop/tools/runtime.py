"""Run one tool call: validate, convert, time, and turn whatever happens into a result."""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import functools
import inspect
import json
import logging
import threading
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from typing import Any

from toolloop.deferred import ParkCall
from toolloop.errors import ConfigurationError
from toolloop.messages import ToolCall, ToolResult
from toolloop.tools.tool import CallRefused, Tool, ToolContext, ToolError, ToolOutput
from toolloop.tools.toolset import Toolset
from toolloop.tools.validation import problems_find

logger = logging.getLogger(__name__)

BlockingRunner = Callable[[Callable[[], Any]], Awaitable[Any]]


@dataclass(frozen=True, slots=True)
class Prepared:
    """A call that may run: its tool and the arguments as the function expects them."""

    call: ToolCall
    tool: Tool
    arguments: dict[str, Any]


def error_result(
    call: ToolCall,
    code: str,
    text: str,
    *,
    severity: str = "non_fatal",
    raised: BaseException | None = None,
) -> ToolResult:
    """Answer a call with an error for the model; the payload repeats it for the application.

    ``raised`` is named in the payload by its nearest built-in class: a program that made the call catches it by that.
    """
    payload = {"error": code, "severity": severity, "message": text}
    if raised is not None:
        kind = next(c for c in type(raised).__mro__ if c.__module__ == "builtins")
        payload["exception"] = kind.__name__
    return ToolResult(call.id, call.name, text, is_error=True, payload=payload, error_code=code)


def call_prepare(call: ToolCall, toolset: Toolset) -> Prepared | ToolResult:
    """Find the tool and check the arguments; an error result in words the model can repair otherwise."""
    tool = toolset.get(call.name)
    if tool is None:
        return error_result(call, "unknown_tool", toolset.missing(call.name))
    if call.arguments is None:
        reason = call.problem or "they could not be read"
        return error_result(
            call,
            "invalid_arguments",
            f"The arguments of {call.name} are no JSON object: {reason}. Send one JSON object.",
        )
    problems = [
        f"{name} is set by the application: leave it out"
        for name in call.arguments
        if name in tool.injected
    ] or problems_find(call.arguments, tool.parameters)
    if not problems:
        try:
            return Prepared(call, tool, _converted(tool, call.arguments))
        except (ValueError, TypeError) as error:
            # pydantic's ValidationError is a ValueError: constraints that JSON Schema cannot state.
            problems = [str(error)]
    text = (
        f"The arguments do not fit {call.name}: {'; '.join(problems)}. Correct them and call again."
    )
    return error_result(call, "invalid_arguments", text)


def _converted(tool: Tool, arguments: dict[str, Any]) -> dict[str, Any]:
    if not tool.converters:
        return arguments
    return {
        name: tool.converters[name](value) if name in tool.converters else value
        for name, value in arguments.items()
    }


async def run_in_thread(function: Callable[[], Any]) -> Any:
    """Run a blocking function in a thread of its own, with a copy of the context variables.

    A daemon thread and not an executor: a tool that hangs beyond its timeout must neither take a place from other
    runs nor hold up the end of the process.
    """
    loop = asyncio.get_running_loop()
    future: asyncio.Future[Any] = loop.create_future()
    context = contextvars.copy_context()

    def deliver(value: Any, error: BaseException | None) -> None:
        if future.done():
            return  # Timed out or cancelled meanwhile: nobody waits any more.
        if error is None:
            future.set_result(value)
        elif isinstance(error, StopIteration):
            future.set_exception(RuntimeError("the tool raised StopIteration"))
        else:
            future.set_exception(error)

    def work() -> None:
        value, error = None, None
        try:
            value = context.run(function)
        except BaseException as caught:  # noqa: BLE001 - handed to the waiting task, whatever it is
            error = caught
        # The loop may be closed when the process is ending; then nobody waits for the result.
        with contextlib.suppress(RuntimeError):
            loop.call_soon_threadsafe(deliver, value, error)

    threading.Thread(target=work, name="toolloop-blocking-tool", daemon=True).start()
    return await future


async def call_run(
    prepared: Prepared,
    context: ToolContext,
    *,
    timeout_s: float,
    run_blocking: BlockingRunner = run_in_thread,
    mock: bool = False,
) -> ToolResult:
    """Run a prepared call.

    Args:
        prepared: from ``call_prepare``.
        context: given to the tool if it asks for one.
        timeout_s: used when the tool states no timeout of its own.
        run_blocking: runs the function of a blocking tool off the event loop.
        mock: call the tool's mock instead; without one, the result says what would have been called.

    Returns:
        Its result; an error result when the tool failed, timed out or returned what is not JSON.

    Raises:
        ParkCall: the tool wants a person's decision first, or an answer from outside.
        asyncio.CancelledError: when cancelled from outside; ``context.cancelled`` is set then.
    """
    call, tool = prepared.call, prepared.tool
    seconds = timeout_s if tool.timeout_s is None else tool.timeout_s
    if mock and tool.mock is None:
        return _result(call, {"mock": True, "tool": call.name, "arguments": call.arguments})
    target = tool.mock if mock and tool.mock is not None else tool.function
    scope = asyncio.timeout(seconds)
    try:
        async with scope:
            if tool.admit is not None and not mock and not _goes_on(context):
                await run_blocking(functools.partial(tool.admit, call.arguments or {}))
            function = functools.partial(target, **_filled(prepared, context))
            value = await run_blocking(function) if tool.blocking else function()
            if inspect.isawaitable(value):
                value = await value
        return _result(call, value)
    except CallRefused as error:
        refused = error_result(call, error.code, error.message, severity=error.severity)
        return replace(refused, payload={**refused.payload, **error.data})
    except ToolError as error:
        return error_result(
            call, "tool_error", error.message, severity=error.severity, raised=error.__cause__
        )
    except asyncio.CancelledError:
        context.cancelled.set()
        raise
    except ParkCall:
        raise
    except Exception as error:
        if isinstance(error, TimeoutError) and scope.expired():
            context.cancelled.set()
            text = f"{call.name} did not answer within {seconds:g} s and was given up."
            return error_result(call, "timeout", text, severity="fatal")
        logger.exception("tool %s failed in call %s", call.name, call.id)
        # The text of an unexpected error may hold what no model should read (queries, paths): it stays in the log.
        text = f"{call.name} failed with an internal error ({type(error).__name__})."
        return error_result(call, "exception", text, severity="fatal", raised=error)


def _goes_on(context: ToolContext) -> bool:
    """Tell whether the tool runs again after it parked itself: it is the same call."""
    return context.decision is not None and context.decision.state is not None


def _filled(prepared: Prepared, context: ToolContext) -> dict[str, Any]:
    """Add what the application gives to the arguments that the model gave."""
    tool, arguments = prepared.tool, dict(prepared.arguments)
    for parameter, key in tool.injected.items():
        if key in context.data:
            arguments[parameter] = context.data[key]
        elif (
            inspect.signature(tool.function).parameters[parameter].default
            is inspect.Parameter.empty
        ):
            raise ConfigurationError(f"tool {tool.name!r} needs {key!r} in the run's context")
    if tool.context_parameter:
        arguments[tool.context_parameter] = context
    return arguments


def _result(call: ToolCall, value: Any) -> ToolResult:
    if isinstance(value, ToolOutput):
        return ToolResult(
            call.id, call.name, value.content, payload=value.payload, parts=value.parts
        )
    if isinstance(value, str):
        return ToolResult(call.id, call.name, value)
    if value is None:
        return ToolResult(call.id, call.name, "Done; there is no output.")
    content = json.dumps(value, ensure_ascii=False, default=_jsonable)
    return ToolResult(call.id, call.name, content, payload=json.loads(content))


def _jsonable(value: Any) -> Any:
    if hasattr(value, "model_dump"):
        return value.model_dump(mode="json")
    if isinstance(value, set | frozenset):
        return sorted(value, key=str)
    if hasattr(value, "isoformat"):
        return value.isoformat()
    raise TypeError(f"a tool returned {type(value).__name__}, which has no JSON form")


def output_cut(content: str, limit: int) -> str:
    """Cut what the model sees to ``limit`` characters, and say so in the text."""
    if len(content) <= limit:
        return content
    return f"{content[:limit]}\n[... cut: the first {limit} of {len(content)} characters are shown ...]"
