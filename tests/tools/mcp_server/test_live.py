"""The official client of the MCP SDK against the running platform, in both generations of the protocol."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from typing import Any

import anyio
import httpx2
import pytest
from asgiref.sync import sync_to_async
from mcp.client import Client
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.exceptions import MCPError

from apps.collections.collection.services import collection_create
from apps.collections.documents.services import document_upload
from jobs.models import ACTIVE, Job
from runs.approvals.services import call_decide
from runs.models import PendingDecision, Run, ToolCall
from tenancy.models import RateLimit
from tenancy.scope import tenant_scope
from tests.cast import Cast, make_cast
from tests.servers import Stack, wait_for
from tests.tools.mcp_server.conftest import key_of
from toolloop.deferred import Decision
from toolloop.mcp import HttpTransport, McpServer

pytestmark = [pytest.mark.servers, pytest.mark.django_db(transaction=True)]
ERAS = ["legacy", "2026-07-28"]
TEXT = b"LED lamps of heading 8539.50.00 are dutiable at two percent. Pumps pay nothing. " * 5


@pytest.fixture(scope="module")
def stack(
    django_db_setup: None, django_db_blocker: Any, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Stack]:
    """Web server and worker with a tool that takes its time, and one that a person must approve."""
    logs = tmp_path_factory.mktemp("servers")
    with django_db_blocker.unblock():
        running = Stack(logs, DJANGO_SETTINGS_MODULE="tests.tools.mcp_server.slow_settings")
    try:
        running.start()
        yield running
    finally:
        running.stop()
        for log in logs.glob("*.log"):
            print(f"--- {log.name}\n{log.read_text(errors='replace')[-3000:]}")  # noqa: T201


@pytest.fixture
def cast(transactional_db: None) -> Cast:
    return make_cast()


@asynccontextmanager
async def connected(stack: Stack, slug: str, key: str, mode: str = "auto") -> AsyncIterator[Client]:
    headers = {"Authorization": f"Bearer {key}"}
    async with httpx2.AsyncClient(headers=headers, timeout=60) as http:
        transport = streamable_http_client(f"{stack.url}/t/{slug}/mcp", http_client=http)
        async with Client(transport, mode=mode) as client:
            yield client


def text(result: Any) -> str:
    return str(result.content[0].text)


def _read(result: Any) -> str:
    return str(result.contents[0].text)


@pytest.mark.parametrize("mode", ["auto", *ERAS])
async def test_official_client_sees_and_uses_everything(stack: Stack, cast: Cast, mode: str) -> None:
    key = await sync_to_async(key_of)(cast)

    def library() -> int:
        who: Any = {"tenant": cast.tenant, "actor": cast.actor("owner")}
        with tenant_scope(cast.tenant.pk):
            row = collection_create(**who, name="Tariffs")
            document_upload(**who, collection=row, name="lamps.txt", chunks=[TEXT])
            waiting = Job.objects.filter(status__in=ACTIVE)
            wait_for(lambda: not waiting.exists(), "the document")
        return row.pk

    pk = await sync_to_async(library)()
    async with connected(stack, cast.tenant.slug, key, mode) as client:
        tools = {t.name for t in (await client.list_tools()).tools}
        assert {"calculate", "search_documents", "approval_result"} <= tools
        assert "42" in text(await client.call_tool("calculate", {"expression": "6*7"}))
        found = await client.call_tool("search_documents", {"query": "the duty on lamps"})
        assert "two percent" in text(found)
        listed = {r.name: r.uri for r in (await client.list_resources()).resources}
        assert set(listed) == {"Tariffs", "lamps.txt"}
        document = await client.read_resource(listed["lamps.txt"])
        assert _read(document).startswith("LED lamps")
        hits = await client.read_resource(f"groundwork://collections/{pk}/search?query=lamps")
        assert "two percent" in _read(hits)
        assert len((await client.list_resource_templates()).resource_templates) == 7
        prompts = {p.name for p in (await client.list_prompts()).prompts}
        assert prompts == {"use_tools", "answer_from_documents"}
        prompt = await client.get_prompt("answer_from_documents", {"question": "lamps"})
        assert any("two percent" in str(m.content) for m in prompt.messages)
        with pytest.raises(MCPError, match="There is no tool 'nothing'"):
            await client.call_tool("nothing", {})
        with pytest.raises(MCPError, match="have access to it"):
            await client.read_resource("groundwork://documents/987654321")


async def test_our_own_client_takes_the_server_as_a_source_of_tools(stack: Stack, cast: Cast) -> None:
    key = await sync_to_async(key_of)(cast)
    transport = HttpTransport(url=f"{stack.url}/t/{cast.tenant.slug}/mcp", bearer=key)
    async with McpServer("gw", transport) as server:
        tool = server.toolset().get("gw__calculate")
        assert tool is not None
        assert tool.side_effects is False
        said = await tool.function(expression="6*7")
    assert "42" in said.content


@pytest.mark.parametrize("mode", ERAS)
async def test_refusals_reach_the_person_in_words(stack: Stack, cast: Cast, mode: str) -> None:
    foreign = await sync_to_async(key_of)(cast, "outsider")
    for key, words in (("gw_wrong", "unknown, revoked or expired"), (foreign, "Not found")):
        with pytest.raises((MCPError, ExceptionGroup)) as raised:
            await _list(stack, cast, key, mode, times=1)
        assert words.lower() in _said(raised.value).lower()

    def limit() -> str:
        with tenant_scope(cast.tenant.pk):
            RateLimit.objects.create(tenant=cast.tenant, kind="key", per_minute=1, burst=4)
        return key_of(cast)

    key = await sync_to_async(limit)()
    with pytest.raises((MCPError, ExceptionGroup)) as raised:
        await _list(stack, cast, key, mode, times=6)
    assert "requests a minute. Try again in" in _said(raised.value)


async def _list(stack: Stack, cast: Cast, key: str, mode: str, *, times: int) -> None:
    async with connected(stack, cast.tenant.slug, key, mode) as client:
        for _ in range(times):
            await client.list_tools()


def _said(error: BaseException) -> str:
    if isinstance(error, BaseExceptionGroup):
        return " ".join(_said(inner) for inner in error.exceptions)
    return str(error)


@pytest.mark.parametrize("mode", ERAS)
async def test_wait_for_approval_outlives_the_connection_and_the_server(
    stack: Stack, cast: Cast, mode: str
) -> None:
    key = await sync_to_async(key_of)(cast)
    async with connected(stack, cast.tenant.slug, key, mode) as client:
        waiting = await client.call_tool("pay", {"amount": 5})
        assert "must approve" in text(waiting)
        run_pk = waiting.structured_content["run"]

    def decided() -> None:
        stack.kill_web()
        stack.stop()
        stack.start()
        with tenant_scope(cast.tenant.pk):
            run = Run.objects.get(pk=run_pk)
            rows = PendingDecision.objects.filter(run=run)
            wait_for(rows.exists, "the run to park")
            call_decide(
                tenant=cast.tenant,
                actor=cast.actor("owner"),
                run=run,
                decision_id=rows.get().pk,
                decision=Decision("approve", arguments={"amount": 3}),
            )
            wait_for(lambda: Run.objects.get(pk=run_pk).status == "completed", "the run")

    await sync_to_async(decided)()
    async with connected(stack, cast.tenant.slug, key, mode) as client:
        ended = await client.call_tool("approval_result", {"run": run_pk})
        assert "paid 3" in text(ended)
        read = await client.read_resource(f"groundwork://runs/{run_pk}")
        assert json.loads(_read(read))["calls"][0]["status"] == "succeeded"


@pytest.mark.parametrize("mode", ERAS)
async def test_call_is_stopped_and_recorded_so_when_its_caller_hangs_up(
    stack: Stack, cast: Cast, mode: str
) -> None:
    key = await sync_to_async(key_of)(cast)

    def rows(**which: Any) -> bool:
        with tenant_scope(cast.tenant.pk):
            return bool(ToolCall.objects.filter(name="sleep_long", **which).exists())

    def stopped() -> bool:
        return rows(run__status="stopped", run__stop_reason="cancelled", status="unknown")

    # The newer protocol closes the request that is cancelled, the older one keeps it until it leaves.
    async with connected(stack, cast.tenant.slug, key, mode) as client:
        async with anyio.create_task_group() as group:
            group.start_soon(client.call_tool, "sleep_long", {})
            await sync_to_async(wait_for)(rows, "the call to begin")
            group.cancel_scope.cancel()
        if mode != "legacy":
            await sync_to_async(wait_for)(stopped, "the call to be stopped")
            assert "42" in text(await client.call_tool("calculate", {"expression": "6*7"}))
    await sync_to_async(wait_for)(stopped, "the call to be stopped")


async def test_many_callers_at_once_each_get_their_own_answers(stack: Stack, cast: Cast) -> None:
    mine = await sync_to_async(key_of)(cast)
    theirs = await sync_to_async(key_of)(cast, "outsider")

    async def talk(slug: str, key: str, number: int) -> str:
        async with connected(stack, slug, key, ERAS[number % 2]) as client:
            return text(await client.call_tool("calculate", {"expression": f"{number}*1000"}))

    sides = [(cast.tenant.slug, mine), (cast.other_tenant.slug, theirs)]
    said = await asyncio.gather(*(talk(*sides[n % 2], n) for n in range(2, 14)))
    assert all(f"{n}000" in text.replace(",", "") for n, text in zip(range(2, 14), said, strict=True))
