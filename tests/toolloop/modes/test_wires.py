"""Both modes over every real adapter: what each provider is sent, turn by turn, through its own SDK."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.toolloop.modes.support import PASSAGE, PAST, search_documents
from tests.toolloop.providers.encodings import Call, Script
from tests.toolloop.providers.wires import WIRES, Recorder, Wire
from toolloop.events import RunFinished
from toolloop.loop import run_loop
from toolloop.loop_values import LoopInput, LoopServices
from toolloop.messages import UserMessage
from toolloop.modes import PlannedProvider, QuickProvider, plan_tool
from toolloop.providers.base import Provider
from toolloop.tools import Toolset

every_wire = pytest.mark.parametrize("wire", WIRES, ids=str)
PLAN = {
    "schema_version": "1.0",
    "reasoning": "One search.",
    "steps": [{"action": "search_documents", "description": "find it", "inputs": {}}],
}


async def ask(wire: Wire, provider: Provider, *history: Any) -> RunFinished:
    async for event in run_loop(
        LoopInput(
            model=wire.model,
            system="Be brief.",
            history=[*history, UserMessage("And on gloves?")],
            toolset=Toolset([plan_tool(), search_documents]),
        ),
        LoopServices(provider=provider),
    ):
        last = event
    await provider.aclose()
    assert isinstance(last, RunFinished)
    return last


def bodies(recorder: Recorder) -> list[dict[str, Any]]:
    return [json.loads(request.content) for request in recorder.requests]


@every_wire
async def test_quick_searches_once_and_answers(wire: Wire) -> None:
    recorder = Recorder(
        wire.encode(Script(text=["What is the duty on gloves?"], reasoning="Hm.")),
        wire.encode(Script(text=["It is ", "14 percent [c7]."])),
    )
    end = await ask(wire, QuickProvider(wire.provider(recorder)), *PAST)
    assert (end.status, end.text) == ("completed", "It is 14 percent [c7].")
    condense, answer = bodies(recorder)
    assert "tools" not in condense
    assert wire.call_names(answer) == ["search_documents"]
    ((_, content, is_error),) = wire.results(answer)
    assert PASSAGE in json.dumps(content)
    assert not is_error
    assert end.usage.requests == 2


@every_wire
async def test_planned_plans_acts_and_answers(wire: Wire) -> None:
    recorder = Recorder(
        wire.encode(Script(reasoning="Hm.", calls=[Call("c_1", "plan", json.dumps(PLAN))])),
        wire.encode(Script(text=["Searching."], calls=[Call("c_2", raw='{"query": "gloves"}')])),
        wire.encode(Script(text=["It is ", "14 percent [c7]."])),
    )
    end = await ask(wire, PlannedProvider(wire.provider(recorder)))
    assert (end.status, end.text) == ("completed", "It is 14 percent [c7].")
    planning, acting, answer = bodies(recorder)
    assert json.dumps(planning["tools"]).count('"search_documents"') == 0
    assert json.dumps(acting["tools"]).count('"search_documents"') == 1
    assert wire.call_names(acting) == ["plan"]
    assert wire.call_names(answer) == ["plan", "search_documents"]
    assert PASSAGE in json.dumps(wire.results(answer)[1][1])
    assert end.usage.requests == 3
