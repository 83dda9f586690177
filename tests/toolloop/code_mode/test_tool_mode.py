"""``execute_tools`` in a run: nested calls are journalled, counted, permitted and approved like native ones."""

from __future__ import annotations

import itertools
import json
from typing import Any

import pytest

from tests.toolloop.helpers import Recorder, loop_values
from tests.toolloop.test_loop_resume import DurableJournal, Killed, Store
from toolloop.code_mode import CodeMode
from toolloop.code_mode.prompts import schema_render
from toolloop.deferred import PendingCall
from toolloop.events import RunFinished, ToolFinished, TurnFinished
from toolloop.limits import Limits
from toolloop.loop import run_loop
from toolloop.loop_values import LoopInput, LoopServices
from toolloop.messages import ToolCall, ToolResult, UserMessage
from toolloop.providers.scripted import ScriptedProvider, call, says
from toolloop.tools import Tool, ToolContext, tool

KEY = b"0123456789abcdef"
done: list[str] = []


@tool
def look(what: str, ctx: ToolContext) -> dict[str, Any]:
    """Look."""
    return {"what": what, "tenant": ctx.data.get("tenant")}


@tool(side_effects=True)
def act(what: str) -> str:
    """Act."""
    done.append(what)
    return f"did {what}"


@tool(side_effects=True, needs_approval=True)
def send(to: str) -> str:
    """Send."""
    done.append(to)
    return f"sent {to}"


@pytest.fixture(autouse=True)
def _nothing_done():
    done.clear()


def mode() -> CodeMode:
    return CodeMode([look, act, send], state_key=KEY, binding="run 1")


async def converse(code: str, **settings: Any) -> tuple[ScriptedProvider, list[Any]]:
    provider = ScriptedProvider([says("", call("execute_tools", code=code)), says("done")])
    events = [
        event
        async for event in run_loop(
            *loop_values(
                model="m",
                system="",
                history=settings.pop("history", [UserMessage("Go.")]),
                toolset=mode().toolset(),
                provider=provider,
                **settings,
            )
        )
    ]
    return provider, events


async def test_model_sees_one_tool_and_its_output_when_it_writes_a_program():
    journal = Recorder()
    code = "r = look('x')\nprint(r['tenant'], act('y'))"
    provider, events = await converse(code, journal=journal, context={"tenant": "t1"})
    assert [spec.name for spec in provider.requests[0].tools] == ["execute_tools"]
    assert "def look(what: str)" in provider.requests[0].tools[0].description
    told = [m for m in provider.requests[1].messages if isinstance(m, ToolResult)]
    assert told[0].content == "t1 did y"
    assert not told[0].is_error
    assert sum(line.endswith("started") for line in journal.log if "turn" not in line) == 3
    payload = next(e for e in events if isinstance(e, ToolFinished)).result.payload
    assert [c["name"] for c in payload["calls"]] == ["look", "act"]


async def test_model_reads_line_and_advice_when_its_program_fails():
    provider, _ = await converse("look('x')['nope']")
    told = [m for m in provider.requests[1].messages if isinstance(m, ToolResult)]
    assert told[0].is_error
    assert "RUNTIME_ERROR in line 1" in told[0].content
    assert "Advice:" in told[0].content


async def test_calls_of_programs_count_when_the_run_has_a_limit():
    _, events = await converse("for i in range(20):\n    act(str(i))", limits=Limits(max_tool_calls=6))
    end = events[-1]
    assert isinstance(end, RunFinished)
    assert end.limit == "max_tool_calls"
    assert len(done) == 5  # The program itself is the sixth.


async def test_call_is_denied_when_the_journal_says_so():
    class Refusing(Recorder):
        async def call_started(self, step: int, call: ToolCall, tool: Tool | None) -> ToolResult | None:
            if call.name == "act":
                return ToolResult(call.id, call.name, "No.", is_error=True, error_code="denied")
            return await super().call_started(step, call, tool)

    provider, _ = await converse("act('x')", journal=Refusing())
    told = [m for m in provider.requests[1].messages if isinstance(m, ToolResult)]
    assert "TOOL_DENIED" in told[0].content
    assert done == []


async def test_program_runs_on_mocks_when_the_run_is_mocked():
    provider, _ = await converse("print(act('x')['mock'], send('y')['tool'])", mock_tools=True)
    told = [m for m in provider.requests[1].messages if isinstance(m, ToolResult)]
    assert told[0].content == "True send"
    assert done == []


async def test_programs_cannot_start_programs():
    provider, _ = await converse("execute_tools('1')")
    told = [m for m in provider.requests[1].messages if isinstance(m, ToolResult)]
    assert "NameError" in told[0].content


async def test_run_parks_and_goes_on_when_a_program_needs_approval():
    code = "print(act('first'))\nprint(send('a'))\nprint(send('b'))"
    _, events = await converse(code)
    turn = next(e.turn for e in events if isinstance(e, TurnFinished))
    for expected in ("a", "b"):
        end = events[-1]
        assert end.status == "parked"
        pending = PendingCall.from_json(json.loads(json.dumps(end.pending[0].to_json())))
        assert expected in pending.reason
        assert done == ["first", *"ab"[: "ab".index(expected)]]
        provider = ScriptedProvider([says("done")])
        events = [
            event
            async for event in run_loop(
                LoopInput(
                    model="m",
                    system="",
                    history=[UserMessage("Go."), turn],
                    toolset=mode().toolset(),
                    first_step=1,
                    decisions={pending.call.id: pending.approve()},
                ),
                LoopServices(provider=provider),
            )
        ]
    assert events[-1].status == "completed"
    assert done == ["first", "a", "b"]
    told = [m for m in provider.requests[0].messages if isinstance(m, ToolResult)]
    assert told[0].content == "did first\nsent a\nsent b"


PROGRAM = """\
out = []
for name in ("a", "b", "c"):
    out.append(look(name)["what"])
    out.append(act(name))
out += parallel((look, "p"), (look, "q"))
print(act("last"), len(out))
"""


async def test_side_effects_happen_once_when_the_process_dies_at_any_write():
    async def attempt(store: Store, kill_at: int, *, after: bool = False) -> RunFinished | None:
        script = [says("", call("execute_tools", code=PROGRAM)), says("done")]
        turns = len(store.turns)
        provider = ScriptedProvider(script[turns:])
        events: list[Any] = []
        try:
            async for event in run_loop(
                LoopInput(
                    model="m", system="", history=store.history(), toolset=mode().toolset(), first_step=turns
                ),
                LoopServices(provider=provider, journal=DurableJournal(store, kill_at, after=after)),
            ):
                events.append(event)  # noqa: PERF401 - what came before a kill counts
        except Killed:
            return None
        end = events[-1]
        assert isinstance(end, RunFinished)
        return end

    whole = Store()
    assert (await attempt(whole, 10**6)) is not None
    writes = whole.writes
    assert writes > 15
    for kill_at, after in itertools.product(range(writes), (False, True)):
        done.clear()
        store = Store()
        assert await attempt(store, kill_at, after=after) is None
        end = await attempt(store, 10**6)
        assert end is not None
        assert end.text == "done"
        assert len(done) == len(set(done)), f"killed at write {kill_at}: {done}"
        assert set(done) <= {"a", "b", "c", "last"}


@pytest.mark.parametrize(
    ("form", "path"),
    [
        ("openai", ("parameters",)),
        ("compatible", ("function", "parameters")),
        ("mistral", ("function", "parameters")),
        ("anthropic", ("input_schema",)),
        ("google", ("parametersJsonSchema",)),
        ("raw", ("parameters",)),
    ],
)
def test_schema_has_the_providers_form(form, path):
    rendered: Any = schema_render(mode().tool(), form)
    for key in path:
        rendered = rendered[key]
    assert rendered["properties"]["code"]["type"] == "string"


def test_unknown_form_is_refused():
    with pytest.raises(ValueError, match="unknown form"):
        mode().tool_schema("soap")
