"""A plan of calls that tools make, gated or not, in every way tools make them; run over stores that lose what they may."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from toolloop.deferred import Decision, ParkCall, PendingCall
from toolloop.events import RunFinished
from toolloop.journal import NullJournal
from toolloop.limits import Limits
from toolloop.loop import run_loop
from toolloop.loop_values import LoopInput, LoopServices
from toolloop.messages import ModelMessage, Turn, UserMessage, message_from_json
from toolloop.providers.scripted import ScriptedProvider, ScriptedTurn
from toolloop.storable import json_storable
from toolloop.tools import Tool, ToolContext, ToolError, Toolset, tool

Storage = Callable[[Any], Any]


def plain(data: Any) -> Any:
    """Store as JSON text."""
    return json.loads(json.dumps(data, allow_nan=False))


def unordered(data: Any) -> Any:
    """Store as JSON text whose keys come back in another order."""
    return json.loads(json.dumps(data, allow_nan=False, sort_keys=True))


def storable(data: Any) -> Any:
    """Store as the platform does, before Postgres."""
    return json.loads(json.dumps(json_storable(data), allow_nan=False))


STORAGES: Mapping[str, Storage] = {"json": plain, "unordered": unordered, "storable": storable}


@dataclass
class Effects:
    """What has happened outside, and what must not be forgotten between attempts."""

    made: list[str] = field(default_factory=list)

    def count(self, name: str) -> int:
        """Return how often an effect took place."""
        return self.made.count(name)


def tools_of(effects: Effects) -> list[Tool]:
    """Return tools that make what a plan names: gated and free effects, tools that ask themselves, groups of calls."""

    @tool(side_effects=True, needs_approval=True)
    async def gated(name: str, value: Any = None) -> str:
        """Have an effect that somebody must agree to."""
        effects.made.append(name)
        await asyncio.sleep(0)
        return f"did {name}"

    @tool(side_effects=True)
    async def free(name: str, value: Any = None) -> str:
        """Have an effect."""
        await asyncio.sleep(0)
        effects.made.append(name)
        return f"did {name}"

    @tool(external=True)
    async def outside(name: str, value: Any = None) -> str:
        """Be answered from outside."""
        raise AssertionError("never run here")

    @tool(side_effects=True)
    async def asking(name: str, ctx: ToolContext, value: Any = None) -> str:
        """Begin, ask, end."""
        if ctx.decision is None:
            effects.made.append(f"{name} begins")
            raise ParkCall("approval", "Really?", {"half": name, "value": value})
        assert ctx.decision.state["half"] == json_storable(name) or ctx.decision.state["half"] == name
        if ctx.decision.kind != "approve":
            raise ToolError("refused")
        effects.made.append(name)
        return f"did {name}"

    @tool
    async def group(how: str, plan: list[Any], ctx: ToolContext) -> list[Any]:
        """Make other calls.

        Args:
            how: in turn, gather, swallow, taskgroup.
            plan: tool and arguments of each.
        """

        async def one(name: str, arguments: Mapping[str, Any]) -> Any:
            result = await ctx.call(name, arguments)
            return result.content

        if how == "in turn":
            return [await one(*step) for step in plan]
        if how == "taskgroup":
            async with asyncio.TaskGroup() as tasks:
                made = [tasks.create_task(one(*step)) for step in plan]
            return [task.result() for task in made]
        swallow = how == "swallow"
        found = await asyncio.gather(*(one(*step) for step in plan), return_exceptions=swallow)
        return [str(entry) for entry in found]

    @tool(needs_approval=True)
    async def gated_group(how: str, plan: list[Any], ctx: ToolContext) -> Any:
        """Make other calls, once somebody agrees.

        Args:
            how: as for group.
            plan: as for group.
        """
        return (await ctx.call("group", {"how": how, "plan": plan})).content

    return [gated, free, outside, asking, group, gated_group]


Decide = Callable[[PendingCall], Decision | None]


async def drive(
    script: Sequence[ScriptedTurn],
    tools: Sequence[Tool],
    storage: Storage,
    decide: Decide,
    *,
    toolset: Callable[[], Toolset] | None = None,
    most_rounds: int = 60,
) -> tuple[RunFinished, int]:
    """Run a script to its end without a journal: all that lives on between attempts goes through the storage.

    Args:
        decide: about what waits; None leaves it open for this round; it is asked again when all was left open.

    Returns:
        The last event, and how many attempts it took.
    """
    history: list[Any] = [UserMessage("Go.").to_json()]
    steps = 0
    waiting: list[Any] = []
    decisions: dict[str, Any] = {}
    for attempt in range(1, most_rounds):
        journal = _Kept(storage)
        messages: list[ModelMessage] = [message_from_json(message) for message in history]
        end: RunFinished | None = None
        async for event in run_loop(
            LoopInput(
                model="m",
                system="",
                history=messages,
                first_step=steps,
                toolset=Toolset(tools) if toolset is None else toolset(),
                limits=Limits(max_steps=50, repeat_stop=99, failure_stop=99),
                decisions={call_id: Decision.from_json(data) for call_id, data in decisions.items()},
                pending=[PendingCall.from_json(data) for data in waiting],
            ),
            LoopServices(provider=ScriptedProvider(script, by_history=True), journal=journal),
        ):
            if isinstance(event, RunFinished):
                end = event
        assert end is not None
        history += journal.messages
        steps += journal.turns
        if end.status != "parked":
            return end, attempt
        waiting = [storage(pending.to_json()) for pending in end.pending]
        decisions = {}
        while not decisions:
            given = [(pending, decide(pending)) for pending in map(PendingCall.from_json, waiting)]
            decisions = {p.call.id: storage(d.to_json()) for p, d in given if d is not None}
    raise AssertionError(f"the run asks for ever: {[p['reason'] for p in waiting]}")


class _Kept(NullJournal):
    """Keeps what belongs to the history, as a store gives it back; nothing of what tools have called."""

    def __init__(self, storage: Storage) -> None:
        self._storage = storage
        self.messages: list[Any] = []
        self.turns = 0

    async def turn_finished(self, step: int, turn: Turn) -> None:
        self.messages.append(self._storage(turn.to_json()))
        self.turns += 1

    async def call_finished(self, step: int, call: Any, result: Any, duration_s: float) -> None:
        if "." not in call.id:
            self.messages.append(self._storage(result.to_json()))
