"""Sessions and meta-tools: what a model loads in one turn it can call in the next, within limits."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.toolloop.helpers import Dialogue, add, loop_values
from toolloop.chooser import model_chooser
from toolloop.errors import AuthFailed, ConfigurationError
from toolloop.loop import run_loop
from toolloop.messages import ModelMessage, ToolResult, Turn, UserMessage
from toolloop.providers.scripted import ScriptedProvider, ScriptedTurn, call, calls, fails, says
from toolloop.tools import Tool, ToolDefinitionError, tool
from toolloop.tools.catalog import Catalog, CatalogEntry
from toolloop.tools.dynamic import DynamicToolset
from toolloop.tools.session import ToolSession

META = ("browse_toolkit", "find_tools", "load_tools", "load_tool_group", "unload_tool_group", "unload_tools")


def made(name: str, group: str = "", words: int = 10) -> Tool:
    schema = {
        "type": "object",
        "properties": {"x": {"type": "string", "description": "word " * words}},
        "additionalProperties": False,
    }
    return Tool(name, f"Do {name}.", schema, lambda x="": f"{name}({x})", group=group)


@pytest.fixture
def catalog() -> Catalog:
    return Catalog([made("alpha", "g"), made("beta", "g.sub"), made("gamma", "h"), made("delta")])


async def converse(toolset: DynamicToolset, *script: ScriptedTurn, **settings: Any) -> Dialogue:
    provider = ScriptedProvider(script)
    events = run_loop(
        *loop_values(
            model="m", system="", history=[UserMessage("Go")], toolset=toolset, provider=provider, **settings
        )
    )
    return Dialogue(provider, [event async for event in events])


def offered(dialogue: Dialogue, request: int) -> list[str]:
    return [spec.name for spec in dialogue.provider.requests[request].tools]


def result(dialogue: Dialogue, request: int) -> dict[str, Any]:
    loaded: dict[str, Any] = json.loads(dialogue.told(request)[-1].content)
    return loaded


async def test_model_sees_a_tool_in_the_turn_after_it_loaded_it(catalog: Catalog) -> None:
    toolset = DynamicToolset(catalog, ToolSession(), [add])
    dialogue = await converse(
        toolset,
        calls(call("load_tools", tool_names=["beta"])),
        calls(call("beta", x="1")),
        calls(call("unload_tools", tool_names=["beta"])),
        says("done"),
    )
    assert offered(dialogue, 0) == ["add", *META]
    assert offered(dialogue, 1) == ["add", *META, "beta"]
    assert dialogue.told(2)[-1].content == "beta(1)"
    assert offered(dialogue, 3) == ["add", *META]
    assert dialogue.end.text == "done"


async def test_group_is_loaded_and_unloaded_with_those_below_it(catalog: Catalog) -> None:
    dialogue = await converse(
        DynamicToolset(catalog, ToolSession()),
        calls(call("load_tool_group", group="g")),
        calls(call("unload_tool_group", group="g.sub")),
        calls(call("load_tool_group", group="nope")),
        says("done"),
    )
    assert result(dialogue, 1)["loaded"] == ["alpha", "beta"]
    assert offered(dialogue, 2)[len(META) :] == ["alpha"]
    last = dialogue.told(3)[-1]
    assert last.is_error
    assert "Groups: g, g.sub, h" in last.content


async def test_core_and_meta_tools_stay_when_a_model_unloads_them(catalog: Catalog) -> None:
    dialogue = await converse(
        DynamicToolset(catalog, ToolSession(), [add]),
        calls(call("unload_tools", tool_names=["add", "load_tools", "gamma"])),
        says("done"),
    )
    assert set(result(dialogue, 1)["kept"]) == {"add", "load_tools"}
    assert result(dialogue, 1)["unloaded"] == []
    assert offered(dialogue, 1) == ["add", *META]


async def test_model_is_told_to_load_when_it_calls_what_is_not_loaded(catalog: Catalog) -> None:
    dialogue = await converse(
        DynamicToolset(catalog, ToolSession()),
        calls(call("alpha"), call("alhpa")),
        calls(call("load_tools", tool_names=["alhpa"])),
        says("done"),
    )
    unloaded, unknown = dialogue.told(1)
    assert "Load it with load_tools" in unloaded.content
    assert unloaded.error_code == unknown.error_code == "unknown_tool"
    assert "did you mean 'alpha'" in result(dialogue, 2)["not_loaded"]["alhpa"]


async def test_calls_of_one_turn_load_and_unload_in_their_order(catalog: Catalog) -> None:
    dialogue = await converse(
        DynamicToolset(catalog, ToolSession(max_tools=1)),
        calls(
            call("load_tools", tool_names=["alpha"]),
            call("unload_tools", tool_names=["alpha"]),
            call("load_tools", tool_names=["gamma"]),
        ),
        says("done"),
    )
    assert offered(dialogue, 1)[len(META) :] == ["gamma"]


async def test_most_tools_at_once_is_kept_and_said(catalog: Catalog) -> None:
    session = ToolSession(max_tools=2)
    dialogue = await converse(
        DynamicToolset(catalog, session),
        calls(call("load_tools", tool_names=["alpha", "beta", "gamma", "alpha"])),
        says("done"),
    )
    assert result(dialogue, 1)["loaded"] == ["alpha", "beta"]
    assert "2 tools are active" in result(dialogue, 1)["not_loaded"]["gamma"]
    assert session.active == ("alpha", "beta")


async def test_forbidden_tools_are_neither_found_nor_loaded_nor_called(catalog: Catalog) -> None:
    session = ToolSession()
    session.load(["gamma"], lambda _: (1, 1))
    toolset = DynamicToolset(catalog, session, allowed=lambda name: name != "gamma")
    dialogue = await converse(
        toolset,
        calls(call("gamma")),
        calls(call("browse_toolkit"), call("find_tools", intent="do gamma")),
        calls(call("load_tools", tool_names=["gamma"]), call("load_tool_group", group="h")),
        says("done"),
    )
    assert dialogue.told(1)[-1].error_code == "unknown_tool"
    assert all('"gamma"' not in told.content for told in dialogue.told(2)[-2:])
    assert offered(dialogue, 3) == list(META)


async def test_browsing_pages_through_the_catalog(catalog: Catalog) -> None:
    dialogue = await converse(
        DynamicToolset(catalog, ToolSession()),
        calls(call("browse_toolkit", limit=3)),
        calls(call("browse_toolkit", limit=3, offset=3)),
        calls(call("browse_toolkit", query="zebra")),
        says("done"),
    )
    first, second, nothing = (result(dialogue, n) for n in (1, 2, 3))
    assert [t["name"] for t in first["tools"]] == ["alpha", "beta", "gamma"]
    assert (first["total"], first["next_offset"]) == (4, 3)
    assert [t["name"] for t in second["tools"]] == ["delta"]
    assert "next_offset" not in second
    assert nothing["groups"] == {"g": 2, "g.sub": 1, "h": 1}


async def test_find_tools_asks_the_chooser_when_there_is_one(catalog: Catalog) -> None:
    asked: list[tuple[str, int]] = []

    async def choose(intent: str, entries: Any) -> list[str]:
        asked.append((intent, len(entries)))
        return ["delta", "invented", "delta", "alpha"]

    dialogue = await converse(
        DynamicToolset(catalog, ToolSession(), chooser=choose),
        calls(call("find_tools", intent="something")),
        says("done"),
    )
    assert asked == [("something", 4)]
    assert [t["name"] for t in result(dialogue, 1)["tools"]] == ["delta", "alpha"]


def test_schemas_become_compact_under_pressure_and_arguments_stay_checked() -> None:
    catalog = Catalog([made(f"t{n}", words=100) for n in range(4)])
    one = catalog.token_count(["t0"])
    session = ToolSession(token_budget=int(one * 2.5))
    toolset = DynamicToolset(catalog, session)
    toolset.load(["t0"])
    first = session.is_compact
    toolset.load(["t1"])
    assert (first, session.is_compact) == (False, True)
    assert toolset.specs()[-1].parameters["properties"] == {"x": {"type": "string"}}
    found = toolset.get("t1")
    assert found is not None
    assert "description" in found.parameters["properties"]["x"]
    assert toolset.load(["t2", "t3"]).refused == {}
    left = session.tokens_left
    assert left is not None
    assert left > 0


def test_tool_is_refused_when_it_does_not_fit_the_budget() -> None:
    catalog = Catalog([made("small"), made("huge", words=1000)])
    session = ToolSession(token_budget=catalog.token_count(["small"]) * 2, auto_compact=False)
    outcome = DynamicToolset(catalog, session).load(["huge", "small"])
    assert outcome.loaded == ("small",)
    assert "budget" in outcome.refused["huge"]


async def test_session_survives_json_and_counts_what_was_done(catalog: Catalog) -> None:
    session = ToolSession(token_budget=5000, metadata={"user": 7})
    await converse(
        DynamicToolset(catalog, session),
        calls(call("load_tools", tool_names=["alpha", "beta"])),
        calls(call("alpha"), call("alpha", x=3)),
        calls(call("unload_tools", tool_names=["beta"])),
        says("done"),
    )
    assert session.analytics()["alpha"] == {"loads": 1, "unloads": 0, "calls": 2, "errors": 1}
    assert session.analytics()["beta"]["unloads"] == 1
    again = ToolSession.from_dict(json.loads(json.dumps(session.to_dict())))
    assert again == session
    assert again.tokens_used == session.tokens_used > 0
    again.analytics_reset()
    assert again.analytics() == {}


async def test_loaded_tools_are_there_again_when_a_killed_run_goes_on(catalog: Catalog) -> None:
    history: list[ModelMessage] = [UserMessage("Go")]
    first = await converse(
        DynamicToolset(catalog, ToolSession()),
        calls(call("load_tools", tool_names=["alpha", "gamma"])),
        calls(call("unload_tools", tool_names=["alpha"])),
        says("done"),
    )
    history += [m for m in first.provider.requests[-1].messages if isinstance(m, Turn | ToolResult)]
    fresh = DynamicToolset(catalog, ToolSession())
    fresh.restore(history)
    assert fresh.session.active == ("gamma",)


def test_configuration_errors_when_limits_or_names_make_no_sense(catalog: Catalog) -> None:
    with pytest.raises(ConfigurationError):
        ToolSession(max_tools=0)
    with pytest.raises(ConfigurationError):
        ToolSession(token_budget=0)

    @tool
    def load_tools() -> str:
        """Clash with the meta-tool."""
        return ""

    with pytest.raises(ToolDefinitionError):
        DynamicToolset(catalog, ToolSession(), [load_tools])


def test_first_request_costs_under_5_percent_when_the_catalog_holds_500_tools() -> None:
    catalog = Catalog(made(f"tool_{n}", words=60) for n in range(500))
    report = DynamicToolset(catalog, ToolSession(), [add]).token_report()
    assert report["now"] < 0.05 * report["catalog"]
    assert isinstance(next(iter(catalog)), CatalogEntry)


async def test_cheap_model_chooses_and_its_failure_is_an_error_the_model_can_work_around(
    catalog: Catalog,
) -> None:
    cheap = ScriptedProvider(
        [says('{"names": ["gamma", "invented"]}', expect="- gamma: Do gamma."), fails(AuthFailed("no"))]
    )
    dialogue = await converse(
        DynamicToolset(catalog, ToolSession(), chooser=model_chooser(cheap, "cheap")),
        calls(call("find_tools", intent="do gamma")),
        calls(call("find_tools", intent="do delta")),
        says("done"),
    )
    assert [t["name"] for t in result(dialogue, 1)["tools"]] == ["gamma"]
    failed = dialogue.told(2)[-1]
    assert failed.error_code == "tool_error"
    assert "browse_toolkit" in failed.content
    assert cheap.requests[0].tools == ()
