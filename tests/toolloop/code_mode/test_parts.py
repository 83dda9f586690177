"""Images that tools of a program return reach the model with the program's result."""

from __future__ import annotations

import base64
from typing import Any

from tests.toolloop.helpers import loop_values
from toolloop.code_mode import CodeMode
from toolloop.events import RunFinished
from toolloop.loop import run_loop
from toolloop.media import Media
from toolloop.messages import ToolResult, UserMessage
from toolloop.providers.scripted import ScriptedProvider, call, says
from toolloop.tools import ToolOutput, tool

IMAGE = base64.b64encode(b"\x89PNG\r\n\x1a\n" + bytes(range(60))).decode()


@tool
def chart(name: str) -> ToolOutput:
    """Draw a chart."""
    return ToolOutput(f"chart of {name}", {"name": name}, parts=(Media("image/png", IMAGE),))


@tool(needs_approval=True)
def publish(name: str) -> str:
    """Publish a chart."""
    return f"published {name}"


def mode() -> CodeMode:
    return CodeMode([chart, publish], state_key=b"0123456789abcdef", binding="run 1")


async def run(script: list[Any], **settings: Any) -> tuple[ScriptedProvider, list[Any]]:
    provider = ScriptedProvider(script)
    stream = run_loop(
        *loop_values(
            model="m",
            system="",
            toolset=mode().toolset(),
            provider=provider,
            **{"history": [UserMessage("Draw.")], **settings},
        )
    )
    return provider, [event async for event in stream]


async def test_parts_of_nested_results_reach_the_model() -> None:
    code = "[chart(name) for name in ('a', 'b')]"
    provider, _ = await run([says("", call("execute_tools", code=code)), says("done")])
    (result,) = [m for m in provider.requests[1].messages if isinstance(m, ToolResult)]
    assert not result.is_error
    assert [part.media_type for part in result.parts] == ["image/png"] * 2
    assert len((await mode().execute(code)).parts) == 2


async def test_parts_survive_a_pause() -> None:
    code = "chart('a')\npublish('a')"
    paused = await mode().execute(code)
    (pending,) = paused.pending
    assert paused.parts == ()
    resumed = await mode().resume(paused.state, {pending.call.id: pending.approve()})
    assert (resumed.value, len(resumed.parts)) == ("published a", 1)
    assert resumed.parts[0].data == IMAGE
    _, events = await run([says("", call("execute_tools", code=code))])
    end = events[-1]
    assert isinstance(end, RunFinished)
    assert end.status == "parked"


async def test_too_many_parts_are_an_error_the_program_can_catch() -> None:
    result = await mode().execute("for n in range(30): chart(str(n))")
    assert (result.ending, result.parts) == ("TOOL_ERROR", ())
    assert "at most 20" in result.error
    code = "try:\n    for n in range(30): chart(str(n))\nexcept ValueError: print('enough')"
    assert len((await mode().execute(code)).parts) == 20
