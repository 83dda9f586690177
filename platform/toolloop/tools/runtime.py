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
from typing import Any, TypeVar

from toolloop.deferred import ParkCall
from toolloop.errors import ConfigurationError
from toolloop.json_cut import json_cut
from toolloop.messages import ToolCall, ToolResult
from toolloop.storable import text_storable
from toolloop.tools.context import CallRefused, ToolContext, ToolError, ToolOutput
from toolloop.tools.streams import Pieces, is_stream, stream_read
from toolloop.tools.tool import Tool, is_async
from toolloop.tools.toolset import Toolset
from toolloop.tools.validation import problems_find

logger = logging.getLogger(__name__)

BlockingRunner = Callable[[Callable[[], Any]], Awaitable[Any]]


@dataclass(frozen=True, slots=True)
class CheckedCall:
    """A call that may run: its tool and the arguments as the function expects them."""

    call: ToolCall
    tool: Tool
    arguments: dict[str, Any]


def error_result(
    call: ToolCall, code: str, text: str, *, severity: str = "non_fatal", raised: BaseException | None = None
) -> ToolResult:
    """Answer a call with an error for the model; the payload repeats it for the application.

    ``raised`` is named in the payload by its nearest built-in class: a program that made the call catches it by that.
    """
    payload = {"error": code, "severity": severity, "message": text}
    if raised is not None:
        kind = next(c for c in type(raised).__mro__ if c.__module__ == "builtins")
        payload["exception"] = kind.__name__
    return ToolResult(call.id, call.name, text, is_error=True, payload=payload, error_code=code)


def call_prepare(call: ToolCall, toolset: Toolset) -> CheckedCall | ToolResult:
    """Find the tool and check the arguments; an error result in words the model can repair otherwise."""
    tool = toolset.get(call.name)
    if tool is None:
        if why := toolset.withheld(call.name):
            text = f"{call.name} was not run: it is not permitted here, because {why}."
            return error_result(call, "denied", text, severity="fatal")
        return error_result(call, "unknown_tool", toolset.missing(call.name))
    if call.arguments is None:
        reason = call.problem or "they could not be read"
        return error_result(
            call,
            "invalid_arguments",
            f"The arguments of {call.name} are no JSON object: {reason}. Send one JSON object.",
        )
    try:
        json.dumps(call.arguments, allow_nan=False)
    except (ValueError, RecursionError):
        text = f"The arguments of {call.name} are no JSON: NaN and infinite numbers, or too many levels. Correct them."
        return error_result(call, "invalid_arguments", text)
    problems = [
        f"{name} is set by the application: leave it out" for name in call.arguments if name in tool.injected
    ] or problems_find(call.arguments, tool.parameters)
    if not problems:
        arguments = dict(call.arguments)
        problems = _convert(tool, arguments)
        if not problems:
            return CheckedCall(call, tool, arguments)
    text = f"The arguments do not fit {call.name}: {'; '.join(problems)}. Correct them and call again."
    return error_result(call, "invalid_arguments", text)


def _convert(tool: Tool, arguments: dict[str, Any]) -> list[str]:
    """Turn JSON values into what the function expects; return what is wrong with them, which JSON Schema cannot say."""
    problems = []
    for name in tool.converters.keys() & arguments.keys():
        try:
            arguments[name] = tool.converters[name](arguments[name])
        except (ValueError, TypeError) as error:
            problems.append(f"{name}: {error}")
        except Exception as error:
            # A validator of the tool's own author: its text may be for no model.
            logger.exception("the argument %s of %s could not be converted", name, tool.name)
            problems.append(f"{name}: it could not be converted ({type(error).__name__})")
    return sorted(problems)


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
        elif isinstance(error, StopIteration | GeneratorExit):
            # A future refuses the one, and the other would close the coroutine that waits for it.
            future.set_exception(RuntimeError(f"the tool raised {type(error).__name__}"))
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
    prepared: CheckedCall,
    context: ToolContext,
    *,
    timeout_s: float,
    run_blocking: BlockingRunner = run_in_thread,
    run_admission: BlockingRunner | None = None,
    mock: bool = False,
) -> ToolResult:
    """Run a prepared call.

    Args:
        prepared: from ``call_prepare``.
        context: given to the tool if it asks for one.
        timeout_s: used when the tool states no timeout of its own.
        run_blocking: runs plain functions off the event loop.
        run_admission: runs the tool's ``admit`` off the event loop; None for ``run_blocking``.
        mock: call the tool's mock instead; without one, the result says what would have been called.

    Returns:
        Its result; an error result when the tool failed or timed out, whatever it raised. A tool that returned what has no
        JSON form was carried out, and its result says so.

    Raises:
        ParkCall: the tool wants a person's decision first, or an answer from outside.
        asyncio.CancelledError: when cancelled from outside; ``context.cancelled`` is set then.
    """
    call, tool = prepared.call, prepared.tool
    seconds = timeout_s if tool.timeout_s is None else tool.timeout_s
    if mock and tool.mock is None:
        return result_of(call, {"mock": True, "tool": call.name, "arguments": call.arguments})
    target = tool.mock if mock and tool.mock is not None else tool.function
    scope = asyncio.timeout(seconds)
    pieces = Pieces(context.on_piece)
    before = _cancellations()
    try:
        async with scope:
            if tool.admit is not None and not mock and not _goes_on(context):
                admission = functools.partial(tool.admit, call.arguments or {})
                await (run_admission or run_blocking)(admission)
            function = functools.partial(target, **_filled(prepared, context))
            in_thread = tool.blocking and not is_async(target)
            value = await run_blocking(function) if in_thread else function()
            if inspect.isawaitable(value):
                value = await value
            if is_stream(value):
                # What is left of a plain generator runs where a plain function does.
                runner = run_blocking if tool.blocking or is_async(target) else None
                value = await stream_read(value, pieces, context.cancelled, runner)
        return result_of(call, value)
    except ParkCall:
        raise
    except CallRefused as error:
        refused = error_result(call, error.code, error.message, severity=error.severity)
        return replace(refused, payload={**refused.payload, **error.data})
    except ToolError as error:
        return _told(call, error)
    except asyncio.CancelledError:
        if _cancellations() > before:
            context.cancelled.set()
            raise
        # Nobody asked for it: the tool has raised it itself.
        text = f"{call.name} was cancelled from within."
        return error_result(call, "cancelled", text, severity="fatal")
    except BaseExceptionGroup as group:
        if (waits := _first(group, ParkCall)) is not None:
            raise waits from None
        told = _first(group, ToolError)
        return _told(call, told) if told is not None else _failed(call, group)
    except BaseException as error:  # noqa: BLE001 - SystemExit and its like end the call, never the run or the process
        if isinstance(error, TimeoutError) and scope.expired():
            context.cancelled.set()
            return _timed_out(call, tool, seconds, pieces)
        return _failed(call, error)


E = TypeVar("E", bound=BaseException)


def _cancellations() -> int:
    task = asyncio.current_task()
    return 0 if task is None else task.cancelling()


def _first(group: BaseExceptionGroup[BaseException], kind: type[E]) -> E | None:
    """Return the first exception of a kind in a group, at any depth (``asyncio.TaskGroup`` raises groups)."""
    for error in group.exceptions:
        found = _first(error, kind) if isinstance(error, BaseExceptionGroup) else error
        if isinstance(found, kind):
            return found
    return None


def _told(call: ToolCall, error: ToolError) -> ToolResult:
    return error_result(call, "tool_error", error.message, severity=error.severity, raised=error.__cause__)


def _failed(call: ToolCall, error: BaseException) -> ToolResult:
    logger.error("tool %s failed in call %s", call.name, call.id, exc_info=error)
    # The text of an unexpected error may hold what no model should read (queries, paths): it stays in the log.
    text = f"{call.name} failed with an internal error ({type(error).__name__})."
    return error_result(call, "exception", text, severity="fatal", raised=error)


def _timed_out(call: ToolCall, tool: Tool, seconds: float, pieces: Pieces) -> ToolResult:
    text = f"{call.name} did not answer within {seconds:g} s and was given up."
    if tool.side_effects or not tool.idempotent:
        text += " It may have had an effect already."
    if pieces.text:
        text += f" It had told this much:\n{pieces.text}"
    return error_result(call, "timeout", text, severity="fatal")


def _goes_on(context: ToolContext) -> bool:
    """Tell whether the tool runs again after it parked itself: it is the same call."""
    return context.decision is not None and context.decision.state is not None


def _filled(prepared: CheckedCall, context: ToolContext) -> dict[str, Any]:
    """Add what the application gives to the arguments that the model gave."""
    tool, arguments = prepared.tool, dict(prepared.arguments)
    for parameter, key in tool.injected.items():
        if key in context.data:
            arguments[parameter] = context.data[key]
        elif inspect.signature(tool.function).parameters[parameter].default is inspect.Parameter.empty:
            raise ConfigurationError(f"tool {tool.name!r} needs {key!r} in the run's context")
    if tool.context_parameter:
        arguments[tool.context_parameter] = context
    return arguments


def result_of(call: ToolCall, value: Any) -> ToolResult:
    """Return what a tool gave as the result of its call; see ``toolloop.tools.results`` for how types are written.

    What cannot be written is told as what it is: the call was carried out. A failure would be repeated.
    """
    # With the first call: see test_import_cost.
    from toolloop.tools.results import NoJsonForm, json_copy, json_text

    try:
        if isinstance(value, ToolOutput):
            given: Any = value.content
            content = given if isinstance(given, str) else json_text(given)[0]
            payload = None if value.payload is None else json_copy(value.payload)
            return ToolResult(
                call.id, call.name, text_storable(content), payload=payload, parts=tuple(value.parts)
            )
        if isinstance(value, ToolResult):
            value = value.content
        if type(value) is str:
            return ToolResult(call.id, call.name, text_storable(value))
        if value is None:
            return ToolResult(call.id, call.name, "Done; there is no output.")
        content, payload = json_text(value)
        if isinstance(payload, str):
            content, payload = payload, None
        return ToolResult(call.id, call.name, content, payload=payload)
    except Exception as error:
        logger.exception("the result of %s cannot be shown (call %s)", call.name, call.id)
        why = str(error) if isinstance(error, NoJsonForm) else type(error).__name__
        text = (
            f"{call.name} was carried out, but its result cannot be shown ({text_storable(why)}). Do not call it again to "
            "see it."
        )
        return ToolResult(call.id, call.name, text, payload={"is_shown": False, "problem": text})


def output_cut(content: str, limit: int) -> str:
    """Cut what the model sees to ``limit`` characters, and say so in the text; JSON stays JSON, and says so in itself."""
    if len(content) <= limit:
        return content
    if (found := json_cut(content, limit)) is not None:
        return found
    return f"{content[:limit]}\n[... cut: the first {limit} of {len(content)} characters are shown ...]"
