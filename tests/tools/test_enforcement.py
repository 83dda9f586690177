"""Every cell of role x tool x collection x effect, in each path a call can take; deny beats allow in all."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator, Sequence
from concurrent.futures import Executor
from typing import Any

import pytest
from asgiref.sync import sync_to_async
from django.test import Client

from apps.conversations import tools as conversation_tools
from apps.conversations.services import conversation_create
from apps.tools.models import ToolGrant
from apps.tools.selectors import guard_for
from runs.models import Run
from runs.sandbox import code_mode_for
from runs.services import run_execute
from tenancy.models import ApiKey
from tenancy.permissions import KEY_SCOPES
from tenancy.scope import tenant_scope
from tenancy.services import api_key_create
from tests.cast import Cast
from tests.conversations.support import answer, ask, fresh
from tests.factories import make_collection
from tests.runs.support import make_run, take
from toolloop.messages import UserMessage
from toolloop.providers.scripted import ScriptedCall, ScriptedProvider, says
from toolloop.tools import Toolset, tool

pytestmark = pytest.mark.django_db(transaction=True)
ROLES = ("owner", "admin", "member", "viewer")
EFFECTS = ("allow", "ask", "deny")
# Effects given at once; "deny!" denies by a condition on the arguments, so that the tool is offered and its call is not
# run: what stands in the way then is the check of the call and not the offer.
CELLS = (
    (), ("allow",), ("ask",), ("deny",), ("allow", "ask"), ("allow", "deny"), ("ask", "deny"), ("allow", "ask", "deny"),
    ("allow", "deny!"), ("ask", "deny!"), ("allow", "ask", "deny!"),
)  # fmt: skip
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


PROBES = (probe_read, probe_write)


@pytest.fixture(autouse=True)
def _probes(monkeypatch: pytest.MonkeyPatch) -> None:
    toolset = Toolset([*conversation_tools.TOOLSET, *PROBES])
    monkeypatch.setattr(conversation_tools, "TOOLSET", toolset)
    ran.clear()


class World:
    """A tenant without any grant, two collections, and calls that are about the first."""

    def __init__(self, cast: Cast, role: str) -> None:
        self.cast, self.role = cast, role
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
                    tenant=self.cast.tenant, effect=effect.rstrip("!"), target_kind="tool", target=name,
                    subject_kind="role" if role else "everyone", subject=role, collection=collection,
                    arguments=condition if effect.endswith("!") else [],
                )  # fmt: skip


def expected(effects: Sequence[str], place: str, subject: str) -> str:
    if place == "elsewhere" or subject == "another role" or not effects:
        return "deny"
    return max((e.rstrip("!") for e in effects), key=EFFECTS.index)


def outcome(name: str, is_waiting: bool) -> str:
    """Return what became of the one call, from what ran and whether somebody is asked; both would be a failure."""
    assert ran in ([], [name])
    assert not (ran and is_waiting)
    result = "allow" if ran else "ask" if is_waiting else "deny"
    ran.clear()
    return result


def cells() -> Iterator[tuple[str, tuple[str, ...], str, str]]:
    for probe, effects, place, subject in itertools.product(PROBES, CELLS, PLACES, SUBJECTS):
        if effects or (place, subject) == ("here", "everyone"):
            yield probe.name, effects, place, subject


async def _chat(world: World, name: str, lane: Executor, monkeypatch: Any) -> str:
    def start() -> Any:
        with tenant_scope(world.cast.tenant.pk):
            conversation = conversation_create(
                tenant=world.cast.tenant, actor=world.cast.actor(world.role), collections=[world.here.pk]
            )  # fmt: skip
        return ask(world.cast, "Do it.", role=world.role, conversation=conversation)

    turn = await sync_to_async(start)()
    script = [says("", ScriptedCall(name, {"x": 1}, "a")), says("Done.")]
    await answer(turn, lane, monkeypatch, script)
    run = (await sync_to_async(fresh)(turn)).run
    assert run.status in ("completed", "parked")
    return outcome(name, run.status == "parked")


async def _code_mode(world: World, name: str, lane: Executor, monkeypatch: Any) -> str:
    def start() -> Any:
        run, job = make_run(world.cast)
        with tenant_scope(world.cast.tenant.pk):
            actor = world.cast.actor(world.role)
            guard = guard_for(actor=actor, scope={world.here.pk: world.here.name})
        return run, take(job, "w1", lane), guard

    run, ctx, guard = await sync_to_async(start)()
    inner = guard.toolset(conversation_tools.TOOLSET, conversation_tools.BUNDLE)
    program = f"try:\n    print({name}(x=1))\nexcept Exception as error:\n    print('refused')\n"
    script = [says("", ScriptedCall("execute_tools", {"code": program}, "p")), says("Done.")]
    with tenant_scope(world.cast.tenant.pk):
        await run_execute(
            ctx, run, toolset=code_mode_for(run, inner).toolset(), provider=ScriptedProvider(script),
            system="", history=[UserMessage("Do it.")],
        )  # fmt: skip
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


def _wrong(cell: tuple[str, tuple[str, ...], str, str], found: str) -> str | None:
    _, effects, place, subject = cell
    wanted = expected(effects, place, subject)
    return None if found == wanted else f"{cell}: {found} instead of {wanted}"


@pytest.mark.parametrize("role", ROLES)
@pytest.mark.parametrize("path", ["chat", "code mode"])
async def test_every_cell_when_a_run_calls(
    cast: Cast, role: str, path: str, lane_threads: Executor, monkeypatch: pytest.MonkeyPatch
) -> None:
    world = await sync_to_async(World)(cast, role)
    drive = {"chat": _chat, "code mode": _code_mode}[path]
    wrong = []
    for cell in cells():
        await sync_to_async(world.grants)(*cell)
        wrong.append(_wrong(cell, await drive(world, cell[0], lane_threads, monkeypatch)))
    assert [w for w in wrong if w] == []
    assert len(wrong) == 2 * (10 * 9 + 1)


@pytest.mark.parametrize("role", ROLES)
def test_every_cell_when_a_key_calls_over_rest(cast: Cast, role: str) -> None:
    world = World(cast, role)
    _, key = api_key_create(
        tenant=cast.tenant, actor=cast.actor("owner"), name="k", scopes=sorted(KEY_SCOPES)
    )
    with tenant_scope(cast.tenant.pk):
        ApiKey.objects.update(user=cast.user(role))
    client = Client(headers={"Authorization": f"Bearer {key}"})
    wrong = []
    for cell in cells():
        world.grants(*cell)
        wrong.append(_wrong(cell, _rest(world, client, cell[0])))
    assert [w for w in wrong if w] == []
