"""Providers that search tools themselves get the whole catalog; with any other our own meta-tools stand in."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from tests.toolloop.helpers import add
from tests.toolloop.providers.encodings import Call, Script, sse
from tests.toolloop.providers.wires import ANTHROPIC, COMPATIBLE, GOOGLE, OPENAI, XAI, Recorder, Wire, play
from toolloop.events import RunFinished, ToolFinished
from toolloop.loop import run_loop
from toolloop.loop_values import LoopInput, LoopServices
from toolloop.messages import UserMessage
from toolloop.providers.base import ToolSpec
from toolloop.providers.profiles import profile_for
from toolloop.tools import Tool
from toolloop.tools.catalog import Catalog
from toolloop.tools.dynamic import DynamicToolset
from toolloop.tools.meta_tools import META_TOOLS
from toolloop.tools.session import ToolSession

SEARCHES = replace(OPENAI, model="gpt-6")
SCHEMA = {
    "type": "object",
    "properties": {"query": {"type": "string"}},
    "required": ["query"],
    "additionalProperties": False,
}


def made(name: str) -> Tool:
    return Tool(name, f"Do {name}.", SCHEMA, lambda query: f"{name}: {query}")


def catalog_of(count: int = 3) -> Catalog:
    return Catalog([made(f"tool_{index}") for index in range(count)])


def names(body: dict[str, Any]) -> list[str]:
    tools = body["tools"]
    declared = [f for tool in tools for f in tool.get("functionDeclarations", ())]
    found = [tool.get("function", tool).get("name", tool.get("type")) for tool in declared or tools]
    return [str(name) for name in found]


CALL: dict[str, Any] = {
    "id": "fc_1",
    "type": "function_call",
    "call_id": "call_a",
    "name": "tool_1",
    "arguments": '{"query": "duty"}',
}
OPENAI_ITEMS: list[dict[str, Any]] = [
    {
        "id": "ts_1",
        "type": "tool_search_call",
        "execution": "server",
        "status": "completed",
        "arguments": {"paths": ["tool_1"]},
    },
    {
        "id": "to_1",
        "type": "tool_search_output",
        "execution": "server",
        "status": "completed",
        "tools": [{"type": "function", "name": "tool_1", "parameters": SCHEMA, "strict": True}],
    },
    CALL,
]


def openai_found() -> bytes:
    events = [
        {"type": "response.output_item.done", "output_index": index, "item": item}
        for index, item in enumerate(OPENAI_ITEMS)
    ]
    response = {"id": "r", "status": "completed", "output": OPENAI_ITEMS}
    return sse(*events, {"type": "response.completed", "response": response}, named=True)


ANTHROPIC_FOUND: dict[str, Any] = {
    "type": "tool_search_tool_result",
    "tool_use_id": "srvtoolu_1",
    "content": {
        "type": "tool_search_tool_search_result",
        "tool_references": [{"type": "tool_reference", "tool_name": "tool_1"}],
    },
}


def anthropic_found() -> bytes:
    search = {"type": "server_tool_use", "id": "srvtoolu_1", "name": "tool_search_tool_bm25"}
    blocks: list[tuple[dict[str, Any], str]] = [
        ({**search, "input": {}}, '{"query": "one"}'),
        (ANTHROPIC_FOUND, ""),
        ({"type": "tool_use", "id": "call_a", "name": "tool_1", "input": {}}, CALL["arguments"]),
    ]
    events: list[dict[str, Any]] = [{"type": "message_start", "message": {"id": "m"}}]
    for index, (block, raw) in enumerate(blocks):
        events.append({"type": "content_block_start", "index": index, "content_block": block})
        if raw:
            delta = {"type": "input_json_delta", "partial_json": raw}
            events.append({"type": "content_block_delta", "index": index, "delta": delta})
        events.append({"type": "content_block_stop", "index": index})
    end = {"type": "message_delta", "delta": {"stop_reason": "tool_use"}}
    return sse(*events, end, {"type": "message_stop"}, named=True)


async def run(wire: Wire, recorder: Recorder, toolset: DynamicToolset) -> tuple[RunFinished, list[Any]]:
    provider = wire.provider(recorder)
    events = [
        event
        async for event in run_loop(
            LoopInput(
                model=wire.model, system="", history=[UserMessage("Go")], toolset=toolset, cache_key="t:1"
            ),
            LoopServices(provider=provider),
        )
    ]
    await provider.aclose()
    assert isinstance(events[-1], RunFinished)
    return events[-1], events


@pytest.mark.parametrize(
    ("wire", "found", "search"),
    [(SEARCHES, openai_found(), "tool_search"), (ANTHROPIC, anthropic_found(), "tool_search_tool_bm25")],
    ids=["openai", "anthropic"],
)
async def test_natively_found_tool_is_run_and_its_search_echoed(
    wire: Wire, found: bytes, search: str
) -> None:
    assert profile_for(wire.name, wire.model).deferred_tools
    recorder = Recorder(found, wire.encode(Script(text=["done"])))
    toolset = DynamicToolset(catalog_of(), ToolSession(), [add], native=True)
    end, events = await run(wire, recorder, toolset)

    assert end.status == "completed"
    (finished,) = [event for event in events if isinstance(event, ToolFinished)]
    assert finished.result.content == "tool_1: duty"
    assert not finished.result.is_error
    first, second = (json.loads(request.content) for request in recorder.requests)
    assert names(first) == ["add", "tool_0", "tool_1", "tool_2", search]
    deferred = [tool.get("name") for tool in first["tools"] if tool.get("defer_loading")]
    assert deferred == ["tool_0", "tool_1", "tool_2"]
    # What was found changes nothing in the declarations: the cached prefix stays.
    assert first["tools"] == second["tools"]
    assert toolset.session.active == ()
    echoed = json.dumps(second)
    for item in OPENAI_ITEMS if wire is SEARCHES else [ANTHROPIC_FOUND]:
        assert json.dumps(item) in echoed


async def test_anthropic_never_marks_a_deferred_tool_for_its_cache() -> None:
    recorder = Recorder(ANTHROPIC.encode(Script(text=["x"])))
    tools = [ToolSpec("now", "Now.", SCHEMA), ToolSpec("later", "Later.", SCHEMA, deferred=True)]
    await play(ANTHROPIC.provider(recorder), ANTHROPIC.request(tools=tools, cache_key="t"))
    marked = [tool["name"] for tool in recorder.body["tools"] if "cache_control" in tool]
    assert marked == ["tool_search_tool_bm25"]


async def test_search_is_not_offered_when_nothing_is_deferred() -> None:
    for wire in (SEARCHES, ANTHROPIC):
        recorder = Recorder(wire.encode(Script(text=["x"])))
        await play(wire.provider(recorder), wire.request())
        assert names(recorder.body) == ["search_documents"]


@pytest.mark.parametrize("wire", [OPENAI, XAI, COMPATIBLE, GOOGLE], ids=str)
async def test_meta_tools_stand_in_when_the_model_has_no_tool_search(wire: Wire) -> None:
    assert not profile_for(wire.name, wire.model).deferred_tools
    load = Call("call_l", "load_tools", '{"tool_names": ["tool_1"]}')
    recorder = Recorder(
        wire.encode(Script(calls=[load])),
        wire.encode(Script(calls=[Call("call_a", "tool_1")])),
        wire.encode(Script(text=["done"])),
    )
    toolset = DynamicToolset(catalog_of(), ToolSession(), [add], native=True)
    end, events = await run(wire, recorder, toolset)

    assert end.status == "completed"
    results = [event.result.content for event in events if isinstance(event, ToolFinished)]
    assert results[1] == "tool_1: duty"
    first, second = (json.loads(request.content) for request in recorder.requests[:2])
    assert set(names(first)) == {"add", *META_TOOLS}
    assert names(second) == [*names(first), "tool_1"]
    assert "defer" not in recorder.requests[0].content.decode()


async def test_request_costs_little_when_the_catalog_is_large() -> None:
    toolset = DynamicToolset(catalog_of(500), ToolSession(), [add], native=True)
    report = toolset.token_report()
    assert report["now"] < report["catalog"] * 0.1
    assert len(toolset.specs()) == 507


async def test_forbidden_tools_are_neither_shown_nor_run_when_the_provider_searches() -> None:
    recorder = Recorder(openai_found(), SEARCHES.encode(Script(text=["done"])))
    toolset = DynamicToolset(catalog_of(), ToolSession(), native=True, allowed=lambda name: name != "tool_1")
    _, events = await run(SEARCHES, recorder, toolset)
    (finished,) = [event for event in events if isinstance(event, ToolFinished)]
    assert finished.result.error_code == "unknown_tool"
    assert "tool_1" not in names(json.loads(recorder.requests[0].content))


async def test_loaded_tool_is_declared_once_when_a_run_changes_over() -> None:
    toolset = DynamicToolset(catalog_of(), ToolSession(), native=True)
    toolset.load(["tool_1"])
    specs = [(spec.name, spec.deferred) for spec in toolset.specs() if not spec.finder]
    assert specs == [("tool_1", False), ("tool_0", True), ("tool_2", True)]
