"""Every cell of role x tool x collection x effect, over the paths a call can take; deny beats allow in all.

Two tools are the code's own, two are the workspace's: of an MCP server and of an OpenAPI document, both on loopback.
"""

from __future__ import annotations

import itertools
import json
import os
from collections.abc import Iterator, Sequence
from concurrent.futures import Executor
from typing import Any

import pytest
from asgiref.sync import sync_to_async
from django.test import Client
from mcp.server.mcpserver import MCPServer

from apps.conversations.toolset import bundle as conversation_tools
from apps.conversations.turns.conversations import conversation_create
from apps.tools.calls import tasks
from apps.tools.calls.services import JOB_KIND, MODEL, RUN_KIND, call_parse
from apps.tools.connectors.mcp_sessions import sessions_close
from apps.tools.models import ToolGrant
from jobs.models import Job
from runs.actors import actor_facts
from runs.models import Run
from runs.services import run_create
from tenancy.models import ApiKey
from tenancy.permissions import KEY_SCOPES
from tenancy.scope import tenant_scope
from tenancy.services import api_key_create
from tests.cast import Cast
from tests.conversations.support import answer, ask, fresh
from tests.factories import make_collection
from tests.nightly import NIGHTLY
from tests.runs.support import take
from tests.tools.connectors.http_server import api_serving
from tests.tools.connectors.mcp_support import served
from tests.tools.mcp_server.conftest import message, post
from tests.tools.sources.support import source_made
from toolloop.providers.scripted import ScriptedCall, ScriptedTurn, says
from toolloop.tools import Toolset, tool

pytestmark = pytest.mark.django_db(transaction=True)
ROLES = ("owner", "admin", "member", "viewer")
EFFECTS = ("allow", "ask", "deny")
# Effects given at once; "deny!" denies by a condition on the arguments, so that the tool is offered and its call is not
# run: what stands in the way then is the check of the call and not the offer.
CELLS = (
    (),
    ("allow",),
    ("ask",),
    ("deny",),
    ("allow", "ask"),
    ("allow", "deny"),
    ("ask", "deny"),
    ("allow", "ask", "deny"),
    ("allow", "deny!"),
    ("ask", "deny!"),
    ("allow", "ask", "deny!"),
)
PLACES = ("here", "elsewhere", "everywhere")
SUBJECTS = ("this role", "another role", "everyone")
ran: list[str] = []


@tool
async def probe_read(x: int) -> str:
    """Look at something.

    Args:
        x: what.
    """
    ran.append("probe_read")
    return "looked"


@tool(side_effects=True)
async def probe_write(x: int) -> str:
    """Change something.

    Args:
        x: what.
    """
    ran.append("probe_write")
    return "changed"


PROBES = ("probe_read", "probe_write", "own_probe", "api_probe")
DOCUMENT = {
    "openapi": "3.1.0",
    "info": {"title": "api"},
    "paths": {
        "/probe": {
            "post": {
                "operationId": "probe",
                "parameters": [{"name": "x", "in": "query", "required": True, "schema": {"type": "integer"}}],
            }
        }
    },
}


@pytest.fixture(scope="module")
def own_servers() -> Iterator[tuple[str, str]]:
    """Give the addresses of the MCP server and of the API."""
    server = MCPServer("own")

    @server.tool()
    def probe(x: int) -> str:
        """Do something elsewhere."""
        ran.append("own_probe")
        return "done"

    def answer(sent: Any) -> Any:
        ran.append("api_probe")
        return 200, {"Content-Type": "application/json"}, b'"done"'

    with served(server) as url, api_serving() as api:
        api.answer = answer
        yield url, api.url


@pytest.fixture(autouse=True)
def _probes(monkeypatch: pytest.MonkeyPatch, settings: Any) -> None:
    toolset = Toolset([*conversation_tools.TOOLSET, probe_read, probe_write])
    monkeypatch.setattr(conversation_tools, "TOOLSET", toolset)
    settings.FETCH_NETWORKS = ["127.0.0.0/8"]
    ran.clear()


class World:
    """A tenant without any grant, two collections, and calls that are about the first."""

    def __init__(self, cast: Cast, role: str, own_servers: tuple[str, str]) -> None:
        self.cast, self.role = cast, role
        mcp, api = own_servers
        source_made(cast.tenant, "mcp", "own", url=mcp)
        source_made(cast.tenant, "openapi", "api", url=api, document=json.dumps(DOCUMENT))
        self.here = make_collection(cast.tenant, "Here")
        self.elsewhere = make_collection(cast.tenant, "Elsewhere")

    def grants(self, name: str, effects: Sequence[str], place: str, subject: str) -> None:
        collection = {"here": self.here, "elsewhere": self.elsewhere, "everywhere": None}[place]
        other = ROLES[(ROLES.index(self.role) + 1) % len(ROLES)]
        role = {"this role": self.role, "another role": other, "everyone": ""}[subject]
        with tenant_scope(self.cast.tenant.pk):
            ToolGrant.objects.all().delete()
            for effect in effects:
                condition = [{"kind": "equals", "argument": "x", "value": 1}]
                ToolGrant.objects.create(
                    tenant=self.cast.tenant,
                    effect=effect.rstrip("!"),
                    target_kind="tool",
                    target=name,
                    subject_kind="role" if role else "everyone",
                    subject=role,
                    collection=collection,
                    arguments=condition if effect.endswith("!") else [],
                )
            ToolGrant.objects.create(
                tenant=self.cast.tenant, effect="allow", target_kind="group", target="code_mode"
            )


def expected(effects: Sequence[str], place: str, subject: str, *, is_about_all: bool) -> str:
    """Return what a call about the collection “here”, or about all, must come to: every collection has to agree."""
    places = {"everywhere"} if is_about_all else {"here", "everywhere"}
    if place not in places or subject == "another role" or not effects:
        return "deny"
    return max((e.rstrip("!") for e in effects), key=EFFECTS.index)


def outcome(name: str, is_waiting: bool) -> str:
    """Return what became of the one call, from what ran and whether somebody is asked; both would be a failure."""
    assert ran in ([], [name])
    assert not (ran and is_waiting)
    result = "allow" if ran else "ask" if is_waiting else "deny"
    ran.clear()
    return result


EVERY_CELL = bool(os.environ.get("EVERY_CELL"))
PATHS = ("chat", "code mode", "job", "rest", "mcp")
Cell = tuple[str, tuple[str, ...], str, str]


def grants() -> list[tuple[tuple[str, ...], str, str]]:
    """Return every combination of effects, place and subject."""
    found = [
        (effects, place, subject)
        for effects, place, subject in itertools.product(CELLS, PLACES, SUBJECTS)
        if effects or (place, subject) == ("here", "everyone")
    ]
    assert len(found) == 10 * 9 + 1
    return found


def cells(
    role: str, path: str, *, is_whole: bool = NIGHTLY, is_for_each_role: bool = EVERY_CELL
) -> list[Cell]:
    """Return this role's share of the cells in a path.

    By day a path takes every combination of grants once, each with one of the tools: each cell is taken by some path. At
    night each path takes every cell, and each role a quarter of them. With EVERY_CELL=1 every role takes every cell.
    """
    every = [(probe, *grant) for probe, grant in itertools.product(PROBES, grants())]
    if is_for_each_role:
        return every
    if not is_whole:
        first = PATHS.index(path)
        every = [
            (PROBES[(number + number // len(ROLES) + first) % len(PROBES)], *grant)
            for number, grant in enumerate(grants())
        ]
    return every[ROLES.index(role) :: len(ROLES)]


def test_every_cell_is_taken_by_some_path_by_day_and_by_each_at_night() -> None:
    every = set(cells("owner", "chat", is_for_each_role=True))
    assert len(every) == len(PROBES) * len(grants())

    def taken(path: str, *, is_whole: bool) -> list[Cell]:
        shares = (cells(role, path, is_whole=is_whole, is_for_each_role=False) for role in ROLES)
        return list(itertools.chain.from_iterable(shares))

    by_day = {path: taken(path, is_whole=False) for path in PATHS}
    assert set().union(*by_day.values()) == every
    for path, found in by_day.items():
        assert sorted(grant for _, *grant in found) == sorted(list(grant) for grant in grants()), path
        assert set(taken(path, is_whole=True)) == every
        # Every role calls every tool, and every tool is called under every set of effects but the empty one, in each path.
        for role in ROLES:
            share = cells(role, path, is_whole=False, is_for_each_role=False)
            assert {probe for probe, *_ in share} == set(PROBES)
        assert {(probe, effects) for probe, effects, *_ in found} >= set(itertools.product(PROBES, CELLS[1:]))


async def _chat(world: World, lane: Executor, monkeypatch: Any, name: str, *script: ScriptedTurn) -> str:
    def start() -> Any:
        with tenant_scope(world.cast.tenant.pk):
            conversation = conversation_create(
                tenant=world.cast.tenant, actor=world.cast.actor(world.role), collections=[world.here.pk]
            )
        return ask(world.cast, "Do it.", role=world.role, conversation=conversation)

    turn = await sync_to_async(start)()
    first = script or (says("", ScriptedCall(name, {"x": 1}, "a")),)
    await answer(turn, lane, monkeypatch, [*first, says("Done.")])
    run = (await sync_to_async(fresh)(turn)).run
    assert run.status in ("completed", "parked")
    return outcome(name, run.status == "parked")


async def _code_mode(world: World, lane: Executor, monkeypatch: Any, name: str) -> str:
    program = f"try:\n    print({name}(x=1))\nexcept Exception as error:\n    print('refused')\n"
    call = ScriptedCall("execute_tools", {"code": program}, "p")
    return await _chat(world, lane, monkeypatch, name, says("", call))


async def _job(world: World, lane: Executor, monkeypatch: Any, name: str) -> str:
    def start() -> Any:
        actor = world.cast.actor(world.role)
        request = {
            "actor": actor_facts(actor),
            "path": "job",
            "collections": [world.here.pk],
            "calls": [call_parse("a", name, '{"x": 1}').to_json()],
        }
        with tenant_scope(world.cast.tenant.pk):
            run = run_create(
                tenant=world.cast.tenant, actor=actor, kind=RUN_KIND, model=MODEL, request=request
            )
            run.job = Job.objects.create(tenant=world.cast.tenant, kind=JOB_KIND, lane="loop")
            run.save(update_fields=["job"])
        return run, take(run.job, "w1", lane)

    run, ctx = await sync_to_async(start)()
    with tenant_scope(world.cast.tenant.pk):
        await tasks.calls_run(ctx, run_id=run.pk)
        status = (await sync_to_async(Run.objects.get)(pk=run.pk)).status
    assert status in ("completed", "parked")
    return outcome(name, status == "parked")


def _rest(world: World, client: Client, name: str) -> str:
    call = {"id": "a", "type": "function", "function": {"name": name, "arguments": '{"x": 1}'}}
    body = {"tool_calls": [call], "collections": [world.here.pk]}
    answered = client.post("/api/v1/tools/execute", json.dumps(body), "application/json")
    assert answered.status_code == 200, answered.content
    told = answered.json()
    assert len(told["messages"]) + len(told["waiting"]) == 1
    if told["messages"] and told["messages"][0]["is_error"]:
        assert told["messages"][0]["error_code"] in ("denied", "unknown_tool")
    return outcome(name, told["waiting_run"] is not None)


def _wrong(cell: Cell, found: str, *, is_about_all: bool = False) -> str | None:
    _, effects, place, subject = cell
    wanted = expected(effects, place, subject, is_about_all=is_about_all)
    return None if found == wanted else f"{cell}: {found} instead of {wanted}"


@pytest.mark.parametrize("role", ROLES)
@pytest.mark.parametrize("path", PATHS[:3])
async def test_every_cell_when_a_run_calls(
    cast: Cast,
    own_servers: tuple[str, str],
    role: str,
    path: str,
    lane_threads: Executor,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    world = await sync_to_async(World)(cast, role, own_servers)
    drive: Any = {"chat": _chat, "code mode": _code_mode, "job": _job}[path]
    wrong = []
    try:
        for cell in cells(role, path):
            await sync_to_async(world.grants)(*cell)
            wrong.append(_wrong(cell, await drive(world, lane_threads, monkeypatch, cell[0])))
    finally:
        await sessions_close()
    assert [w for w in wrong if w] == []


def key_for(cast: Cast, role: str) -> str:
    """Return a key with every scope that acts for one of the cast."""
    _, key = api_key_create(
        tenant=cast.tenant, actor=cast.actor("owner"), name="k", scopes=sorted(KEY_SCOPES)
    )
    with tenant_scope(cast.tenant.pk):
        ApiKey.objects.update(user=cast.user(role))
    return str(key)


@pytest.mark.parametrize("role", ROLES)
def test_every_cell_when_a_key_calls_over_rest(cast: Cast, own_servers: tuple[str, str], role: str) -> None:
    world = World(cast, role, own_servers)
    client = Client(headers={"Authorization": f"Bearer {key_for(cast, role)}"})
    wrong = []
    for cell in cells(role, "rest"):
        world.grants(*cell)
        wrong.append(_wrong(cell, _rest(world, client, cell[0])))
    assert [w for w in wrong if w] == []


def _over_mcp(world: World, key: str, name: str) -> str:
    call = message("tools/call", name=name, arguments={"x": 1})
    told = json.loads(post(world.cast.tenant.slug, call, key).content)
    if "error" in told:
        assert told["error"]["data"]["code"] == "unknown_tool"
        return outcome(name, False)
    result = told["result"]
    if result.get("isError"):
        assert result["_meta"]["groundwork/error_code"] == "denied"
    facts = result.get("structuredContent") or {}
    return outcome(name, facts.get("status") == "waiting_for_approval")


@pytest.mark.parametrize("role", ROLES)
def test_every_cell_when_a_key_calls_over_mcp(cast: Cast, own_servers: tuple[str, str], role: str) -> None:
    world = World(cast, role, own_servers)
    key = key_for(cast, role)
    wrong = []
    for cell in cells(role, "mcp"):
        world.grants(*cell)
        wrong.append(_wrong(cell, _over_mcp(world, key, cell[0]), is_about_all=True))
    assert [w for w in wrong if w] == []
