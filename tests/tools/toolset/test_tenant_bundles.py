"""A workspace's own tools in every path: offered when granted, called, recorded, and harmless when they are broken."""

from __future__ import annotations

import json
from collections.abc import Iterator
from concurrent.futures import Executor
from pathlib import Path
from typing import Any

import pytest
from asgiref.sync import sync_to_async
from django.db import connection
from django.test.utils import CaptureQueriesContext

from apps.conversations.turns.conversations import conversation_create
from apps.tools.calls.services import call_parse, calls_execute
from apps.tools.connectors import plugin
from apps.tools.models import ToolSource, ToolVersion
from apps.tools.toolset.model_calls import run_toolset
from apps.tools.toolset.selectors import guard_for
from runs.models import Run
from runs.models import ToolCall as Row
from tenancy.scope import tenant_scope
from tests.cast import Cast
from tests.conversations.support import answer, ask, fresh
from tests.tools.sources.support import CALLING, PLUGIN, accepted, granted, many, plugin_put, source_made
from toolloop.providers.scripted import ScriptedCall, says
from toolloop.tools.dynamic import DynamicToolset
from toolloop.tools.specs import spec_tokens

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, settings: Any) -> Iterator[Path]:
    settings.PLUGIN_DIR = tmp_path
    plugin.plugins_forget()
    plugin_put(tmp_path)
    yield tmp_path
    plugin.plugins_forget()


def execute(cast: Cast, name: str, role: str = "member", **arguments: Any) -> Any:
    with tenant_scope(cast.tenant.pk):
        call = call_parse("a", name, json.dumps(arguments))
        return calls_execute(tenant=cast.tenant, actor=cast.actor(role), calls=[call])


async def chat(
    cast: Cast, lane: Executor, monkeypatch: Any, script: list[Any], conversation: Any = None
) -> Run:
    turn = await sync_to_async(ask)(cast, "Do it.", conversation=conversation)
    await answer(turn, lane, monkeypatch, script)
    run: Run = (await sync_to_async(fresh)(turn)).run
    return run


def calls_of(run: Run) -> list[Row]:
    with tenant_scope(run.tenant_id):
        return list(Row.objects.filter(run=run).order_by("pk"))


def test_tool_is_called_when_its_group_is_granted_and_only_then(cast: Cast) -> None:
    source_made(cast.tenant)
    assert execute(cast, "shop_stock", article="pen").results[0].error_code == "denied"
    granted(cast.tenant, "shop")
    done = execute(cast, "shop_stock", article="pen")
    assert json.loads(done.results[0].content) == {"article": "pen", "pieces": 12}
    assert execute(cast, "shop_stock", article="none").results[0].content == "there is no such article"
    assert execute(cast, "shop_stock", piece="pen").results[0].error_code == "invalid_arguments"


def test_tools_of_one_workspace_are_unknown_in_another(cast: Cast) -> None:
    source_made(cast.tenant)
    granted(cast.tenant, "shop")
    granted(cast.other_tenant, "shop")
    with tenant_scope(cast.other_tenant.pk):
        assert "shop_stock" not in {t.name for t in guard_for(actor=cast.actor("outsider"), scope={}).tools()}


async def test_tools_of_a_plugin_call_each_other_by_their_own_names(
    cast: Cast, folder: Path, lane_threads: Executor, monkeypatch: pytest.MonkeyPatch
) -> None:
    plugin_put(folder, CALLING)
    plugin.plugins_forget()
    await sync_to_async(source_made)(cast.tenant)
    await sync_to_async(granted)(cast.tenant, "shop")
    script = [says("", ScriptedCall("shop_stock_twice", {"article": "pen"}, "a")), says("Done.")]
    run = await chat(cast, lane_threads, monkeypatch, script)
    calls = {c.name: c for c in await sync_to_async(calls_of)(run)}
    assert {name: c.status for name, c in calls.items()} == {
        "shop_stock_twice": "succeeded",
        "shop_stock": "succeeded",
    }
    assert calls["shop_stock_twice"].content == "24"


async def test_tool_whose_rule_is_gone_is_not_permitted_rather_than_unknown(
    cast: Cast, lane_threads: Executor, monkeypatch: pytest.MonkeyPatch
) -> None:
    await sync_to_async(source_made)(cast.tenant)
    script = [
        says("", ScriptedCall("shop_stock", {"article": "pen"}, "a"), ScriptedCall("shop_none", {}, "b")),
        says("Done."),
    ]
    run = await chat(cast, lane_threads, monkeypatch, script)
    calls = {c.name: c for c in await sync_to_async(calls_of)(run)}
    assert (calls["shop_stock"].status, calls["shop_stock"].error_code) == ("denied", "denied")
    assert "it is not permitted here, because" in calls["shop_stock"].content
    assert calls["shop_none"].error_code == "unknown_tool"


async def test_chat_and_its_programs_call_it(
    cast: Cast, lane_threads: Executor, monkeypatch: pytest.MonkeyPatch
) -> None:
    await sync_to_async(source_made)(cast.tenant)
    await sync_to_async(granted)(cast.tenant, "shop")
    await sync_to_async(granted)(cast.tenant, "code_mode")
    program = "print(shop_stock(article='pen')['pieces'] + calculate(expression='1+1'))"
    script = [
        says(
            "",
            ScriptedCall("shop_stock", {"article": "ink"}, "a"),
            ScriptedCall("execute_tools", {"code": program}, "b"),
        ),
        says("Done."),
    ]
    run = await chat(cast, lane_threads, monkeypatch, script)
    assert run.status == "completed"
    calls = {c.name: c for c in await sync_to_async(calls_of)(run)}
    assert (calls["shop_stock"].status, calls["shop_stock"].has_side_effects) == ("succeeded", False)
    assert "14" in calls["execute_tools"].content, calls["execute_tools"].content


async def test_programs_are_nobodys_unless_they_are_granted(
    cast: Cast, lane_threads: Executor, monkeypatch: pytest.MonkeyPatch
) -> None:
    script = [says("", ScriptedCall("execute_tools", {"code": "1"}, "a")), says("Done.")]
    run = await chat(cast, lane_threads, monkeypatch, script)
    (call,) = await sync_to_async(calls_of)(run)
    assert (call.status, call.error_code) == ("failed", "unknown_tool")
    assert "execute_tools" not in run.request["tools"]
    assert {"calculate", "search_documents"} <= set(run.request["tools"])


def test_source_that_is_off_or_lost_its_tool_answers_in_words(cast: Cast) -> None:
    source = source_made(cast.tenant)
    granted(cast.tenant, "shop")
    with tenant_scope(cast.tenant.pk):
        ToolVersion.objects.filter(tool_name="shop_stock").update(is_gone=True)
    result = execute(cast, "shop_stock", article="pen").results[0]
    assert result.is_error
    assert "no longer offered" in result.content
    with tenant_scope(cast.tenant.pk):
        ToolSource.objects.filter(pk=source.pk).update(is_enabled=False)
    assert execute(cast, "shop_stock", article="pen").results[0].error_code == "unknown_tool"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        pytest.param("raise RuntimeError('secret')", "can't be loaded (RuntimeError)", id="raises"),
        pytest.param("TOOLS = [1]", "It returned: int", id="no tool"),
        pytest.param("TOOLS = []", "It returned: nothing", id="empty"),
        pytest.param(
            "def TOOLS():\n    return 1 / 0", "can't be loaded (ZeroDivisionError)", id="function raises"
        ),
        pytest.param("import sys\nx = (", "can't be loaded (SyntaxError)", id="no Python"),
        pytest.param(
            PLUGIN.replace("an article there", "a thing there"),
            "not as it was accepted",
            id="other description",
        ),
        pytest.param(
            PLUGIN.replace("article: str", "article: int"), "not as it was accepted", id="other schema"
        ),
        pytest.param(
            PLUGIN.replace("TOOLS = [stock, order]", "TOOLS = [order]"), "not as it was accepted", id="gone"
        ),
    ],
)
def test_broken_or_changed_plugin_is_an_error_of_the_call_and_nothing_else(
    cast: Cast, folder: Path, text: str, said: str
) -> None:
    source_made(cast.tenant)
    granted(cast.tenant, "shop")
    plugin.plugins_forget()
    plugin_put(folder, text)
    result = execute(cast, "shop_stock", article="pen").results[0]
    assert result.error_code == "tool_error"
    assert said in result.content
    assert "secret" not in result.content
    assert execute(cast, "calculate", expression="6*7").results[0].content.count("42") == 1


def test_stored_nonsense_and_unknown_kinds_do_not_end_a_run(cast: Cast) -> None:
    source = source_made(cast.tenant)
    granted(cast.tenant, "shop")
    with tenant_scope(cast.tenant.pk):
        ToolVersion.objects.filter(tool_name="shop_order").update(
            spec={"name": "shop order!", "description": "x", "parameters": {}}
        )
        ToolSource.objects.filter(pk=source.pk).update(settings={"plugin": "nothing"})
    result = execute(cast, "shop_stock", article="pen").results[0]
    assert "has no plug-in “nothing”" in result.content


def test_source_cannot_take_the_grants_or_the_names_of_the_codes_tools(cast: Cast) -> None:
    source_made(cast.tenant, name="builtin", settings={"plugin": "shop"})
    with tenant_scope(cast.tenant.pk):
        names = {t.name for t in guard_for(actor=cast.actor("member"), scope={}).tools()}
    assert not [name for name in names if name.startswith("builtin_")]
    with tenant_scope(cast.tenant.pk):
        ToolSource.objects.update(name="own")
        ToolVersion.objects.filter(tool_name="builtin_stock").update(tool_name="calculate")
        row = ToolVersion.objects.get(tool_name="calculate")
        ToolVersion.objects.filter(pk=row.pk).update(spec={**row.spec, "name": "calculate"})
    granted(cast.tenant, "own")
    assert "42" in execute(cast, "calculate", expression="6*7").results[0].content


def test_many_tools_are_loaded_from_a_catalog_and_stay_loaded(cast: Cast, folder: Path) -> None:
    plugin_put(folder, many(500, 150), "many")
    source_made(cast.tenant, name="many")
    granted(cast.tenant, "many")
    with tenant_scope(cast.tenant.pk):
        run = Run.objects.create(tenant=cast.tenant, kind="x", model="m")
        guard = guard_for(actor=cast.actor("member"), scope={})
        toolset = run_toolset(
            guard,
            run,
            loaded=lambda: [{"loaded": ["many_tool3", "many_tool4", "gone"]}, {"unloaded": ["many_tool4"]}],
        )
    assert isinstance(toolset, DynamicToolset)
    assert {"calculate", "load_tools", "many_tool3"} <= set(toolset.names())
    assert "many_tool4" not in toolset.names()
    everything = sum(spec_tokens(tool.spec()) for tool in guard.tools())
    assert sum(spec_tokens(spec) for spec in run_toolset(guard, run).specs()) < 0.05 * everything


async def test_loaded_tool_is_there_in_the_next_turn(
    cast: Cast, folder: Path, lane_threads: Executor, monkeypatch: pytest.MonkeyPatch
) -> None:
    def start() -> Any:
        plugin_put(folder, many(60, 5), "many")
        source_made(cast.tenant, name="many")
        granted(cast.tenant, "many")
        with tenant_scope(cast.tenant.pk):
            return conversation_create(tenant=cast.tenant, actor=cast.actor("member"))

    conversation = await sync_to_async(start)()
    early = ScriptedCall("many_tool7", {"text": "hi"}, "a")
    load = ScriptedCall("load_tools", {"tool_names": ["many_tool7"]}, "b")
    again = ScriptedCall("many_tool7", {"text": "hi"}, "c")
    run = await chat(
        cast, lane_threads, monkeypatch, [says("", early, load), says("", again), says("Done.")], conversation
    )
    calls = await sync_to_async(calls_of)(run)
    assert [c.status for c in calls] == ["failed", "succeeded", "succeeded"]
    assert "Load it with load_tools" in calls[0].content
    assert calls[2].content == "7 hi"
    run = await chat(cast, lane_threads, monkeypatch, [says("", again), says("Done.")], conversation)
    assert [c.status for c in await sync_to_async(calls_of)(run)] == ["succeeded"]


def test_number_of_queries_does_not_grow_with_tools(cast: Cast, folder: Path) -> None:
    def count() -> int:
        with tenant_scope(cast.tenant.pk), CaptureQueriesContext(connection) as queries:
            guard_for(actor=cast.actor("member"), scope={1: "a"}).tools()
            return len(queries)

    source_made(cast.tenant)
    granted(cast.tenant, "shop")
    before = count()
    plugin_put(folder, many(300), "many")
    source_made(cast.tenant, name="many")
    granted(cast.tenant, "many")
    assert count() == before <= 5


def test_version_that_was_called_is_told(cast: Cast) -> None:
    source = source_made(cast.tenant)
    granted(cast.tenant, "shop")
    with tenant_scope(cast.tenant.pk):
        accepted(source, 2)
        tools = {t.name: t for t in guard_for(actor=cast.actor("member"), scope={}).tools()}
    assert (tools["shop_stock"].version, tools["shop_stock"].group) == ("2", "shop")
    verdict = tools["shop_stock"].permit
    assert verdict is not None
    found = verdict({"article": "x"}, None)  # type: ignore[arg-type]
    assert found.effect == "allow"
    assert found.rule is not None
