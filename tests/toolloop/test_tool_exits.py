"""Whatever a tool raises ends its own call, and nothing else; plain functions hold up nobody."""

from __future__ import annotations

import asyncio
import contextvars
import sys
import threading
from collections.abc import Callable
from itertools import product
from typing import Any

import pydantic
import pytest

from tests.patience import PATIENCE_S
from tests.toolloop.helpers import add, converse
from tests.walked import each
from toolloop.limits import Limits
from toolloop.providers.scripted import call, calls, says
from toolloop.tools import Tool, ToolContext, ToolDefinitionError, ToolError, tool
from toolloop.tools.builtins import builtin_tools
from toolloop.tools.classes import ToolClass


class Strange(pydantic.BaseModel):
    a: int

    @pydantic.field_validator("a")
    @classmethod
    def _check(cls, value: int) -> int:
        raise RuntimeError("password=hunter2")


def recurse() -> Any:
    return recurse()


class Odd(BaseException):
    pass


def raises(error: BaseException) -> Callable[[], Any]:
    def act() -> Any:
        raise error

    return act


ENDINGS: dict[str, Callable[[], Any]] = {
    "sys.exit": sys.exit,
    "sys.exit with a code": lambda: sys.exit(3),
    "KeyboardInterrupt": raises(KeyboardInterrupt()),
    "GeneratorExit": raises(GeneratorExit()),
    "CancelledError": raises(asyncio.CancelledError()),
    "RecursionError": recurse,
    "MemoryError": raises(MemoryError()),
    "BaseException": raises(Odd()),
    "group": raises(BaseExceptionGroup("many", [SystemExit(1), ValueError("x")])),
    "StopIteration": raises(StopIteration()),
    "StopAsyncIteration": raises(StopAsyncIteration()),
    "TimeoutError": raises(TimeoutError()),
}


@each("ending, where", product(ENDINGS, ["async", "thread", "quick", "nested", "generator", "gathered"]))
async def test_only_the_call_fails_whatever_its_tool_raises(ending: str, where: str) -> None:
    act = ENDINGS[ending]

    @tool(name="act")
    async def act_async() -> str:
        """Act."""
        return str(act())

    @tool(name="act")
    def act_thread() -> str:
        """Act."""
        return str(act())

    @tool(name="act", blocking=False)
    def act_quick() -> str:
        """Act."""
        return str(act())

    @tool(name="act")
    async def act_generator():
        """Act."""
        yield "begun"
        act()

    @tool
    async def outer(ctx: ToolContext) -> str:
        """Call others, and go on when one fails."""
        found = await ctx.call("act", {})
        return f"{found.error_code}, then {(await ctx.call('add', {'a': 1, 'b': 2})).content}"

    @tool
    async def gathering(ctx: ToolContext) -> str:
        """Call others at once."""
        found = await asyncio.gather(ctx.call("act", {}), ctx.call("add", {"a": 1, "b": 2}))
        return f"{found[0].error_code}, then {found[1].content}"

    tools: dict[str, Tool] = {
        "async": act_async,
        "thread": act_thread,
        "quick": act_quick,
        "generator": act_generator,
    }
    name = {"nested": "outer", "gathered": "gathering"}.get(where, "act")
    script = [calls(call(name), call("add", a=1, b=2)), says("done")]
    made = tools.get(where, act_async)
    dialogue = await converse(script, made, outer, gathering, add)
    assert (dialogue.end.status, dialogue.text) == ("completed", "done")
    failed, other = dialogue.told()
    assert other.content == "3"
    if name == "act":
        assert failed.is_error
        assert failed.error_code in ("exception", "cancelled")
    else:
        assert failed.content.endswith(", then 3")
        assert failed.content.partition(",")[0] in ("exception", "cancelled")


async def test_group_of_errors_tells_the_model_what_the_tool_meant_to_say() -> None:
    @tool
    async def many() -> str:
        """Work at several things."""

        async def one() -> None:
            raise ToolError("the second part is missing")

        async with asyncio.TaskGroup() as group:
            group.create_task(one())
        return ""

    dialogue = await converse([calls(call("many")), says("done")], many)
    assert dialogue.told()[-1].content == "the second part is missing"


async def test_plain_functions_do_not_hold_up_the_event_loop() -> None:
    entered, go_on = threading.Barrier(4), threading.Event()

    @tool
    def block(n: int) -> int:
        """Wait for the others, then for the event loop."""
        entered.wait(PATIENCE_S)
        assert go_on.wait(PATIENCE_S)
        return n

    @tool
    async def release() -> str:
        """Run in the event loop while the others wait in their threads."""
        await asyncio.to_thread(entered.wait, 10)
        go_on.set()
        return "released"

    script = [calls(*(call("block", n=n) for n in range(3)), call("release")), says("done")]
    dialogue = await converse(script, block, release, limits=Limits(max_parallel_tools=4))
    assert [result.content for result in dialogue.told()] == ["0", "1", "2", "released"]


async def test_plain_functions_see_the_context_of_the_run() -> None:
    tenant: contextvars.ContextVar[str] = contextvars.ContextVar("tenant")
    tenant.set("acme")

    @tool
    def whose() -> str:
        """Tell whose run this is."""
        assert threading.current_thread() is not threading.main_thread()
        return tenant.get()

    @tool(blocking=False)
    def whose_quick() -> str:
        """Tell whose run this is."""
        assert threading.current_thread() is threading.main_thread()
        return tenant.get()

    class Whose(ToolClass):
        """Tell whose run this is."""

        name = "whose_class"

        def run(self) -> str:
            assert threading.current_thread() is not threading.main_thread()
            return tenant.get()

    names = ("whose", "whose_quick", "whose_class")
    script = [calls(*map(call, names)), says("done")]
    dialogue = await converse(script, whose, whose_quick, Whose().as_tool())
    assert [result.content for result in dialogue.told()] == ["acme"] * 3


def test_blocking_is_true_for_plain_functions_unless_it_is_said_otherwise() -> None:
    def plain() -> str:
        """Act."""
        return ""

    async def waits() -> str:
        """Act."""
        return ""

    async def streams():
        """Act."""
        yield ""

    assert tool(plain).blocking is True
    assert tool(blocking=False)(plain).blocking is False
    assert tool(waits).blocking is False
    assert tool(streams).blocking is False
    assert [made.blocking for made in builtin_tools()] == [False] * len(builtin_tools())
    with pytest.raises(ToolDefinitionError, match="marked blocking"):
        tool(blocking=True)(waits)


async def test_validator_that_fails_oddly_refuses_the_call_only() -> None:
    @tool
    async def take(value: Strange) -> str:
        """Take."""
        return ""

    dialogue = await converse([calls(call("take", value={"a": 1})), says("done")], take)
    (result,) = dialogue.told()
    assert result.error_code == "invalid_arguments"
    assert "hunter2" not in result.content
