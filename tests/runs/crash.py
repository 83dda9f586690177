"""Processes that die at a chosen write, a world they act on, and runs of ten calls: what tests/runs/test_crash.py uses."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Sequence
from concurrent.futures import Executor
from typing import Any, Literal

import pytest
from asgiref.sync import sync_to_async
from django.db import connection

from runs import recorder as recorder_module
from runs import writes
from runs.approvals.services import call_decide
from runs.journal import RunJournal
from runs.models import PendingDecision, Run, RunStatus
from runs.recorder import Recorder
from runs.services import execute, run_execute
from tenancy.scope import tenant_scope
from tests.cast import Cast
from tests.runs.support import make_run, take
from toolloop.deferred import Decision
from toolloop.messages import UserMessage
from toolloop.providers.scripted import ScriptedCall, ScriptedProvider, ScriptedTurn, says
from toolloop.tools import Toolset, tool

When = Literal["before", "inside", "after"]
ANSWER = "All ten are done."
HISTORY = [UserMessage("Do ten things.")]
USAGE_A_TURN = (10, 5)  # what the script says each turn used: input, output


class Killed(BaseException):
    """The process dies here: nothing after it runs."""


class Process:
    """A process that dies at its write number ``point``: before it, inside its transaction, or after its commit."""

    def __init__(self, point: int = -1, when: When = "before") -> None:
        self.point, self.when = point, when
        self.count = 0
        self.dead = False

    def write(self, function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        """Do one write, or die around it; a dead process writes nothing, whatever task of it goes on."""
        mine = self.count == self.point
        if self.dead or (mine and self.when == "before"):
            self.dead = True
            raise Killed
        self.count += 1
        value = function(*args, **kwargs)
        if mine:
            self.dead = True
            raise Killed
        return value

    def statement(self, function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        """Do one statement of a write; die before its transaction commits."""
        value = function(*args, **kwargs)
        if self.when == "inside" and self.count == self.point + 1 and connection.in_atomic_block:
            self.dead = True
            raise Killed
        return value


class EagerJournal(RunJournal):
    """Writes each fact by itself, so that there is a kill point between any two."""

    async def turn_started(self, step: int) -> None:
        await super().turn_started(step)
        await self._recorder.flush()

    async def turn_finished(self, *args: Any) -> None:
        await super().turn_finished(*args)
        await self._recorder.flush()

    async def call_started(self, *args: Any) -> Any:
        stored = await super().call_started(*args)
        await self._recorder.flush()
        return stored

    async def call_finished(self, *args: Any) -> None:
        await super().call_finished(*args)
        await self._recorder.flush()

    async def call_parked(self, *args: Any) -> None:
        await super().call_parked(*args)
        await self._recorder.flush()


class World:
    """What the tools did outside, which no crash undoes."""

    def __init__(self) -> None:
        self.done: Counter[tuple[str, int]] = Counter()

    def tools(self) -> Toolset:
        """Return the tools as a new process has them."""

        @tool
        async def look(number: int) -> dict[str, int]:
            """Look something up; twice does no harm.

            Args:
                number: which.
            """
            await asyncio.sleep(0)
            self.done["look", number] += 1
            return {"found": number}

        @tool(side_effects=True)
        async def send(number: int) -> str:
            """Send a letter; twice would be a mistake.

            Args:
                number: which.
            """
            self.done["send", number] += 1
            await asyncio.sleep(0)
            return f"sent {number}"

        @tool(side_effects=True, needs_approval=True)
        async def pay(number: int) -> str:
            """Pay a bill, when somebody agrees; twice would be a mistake.

            Args:
                number: which.
            """
            self.done["pay", number] += 1
            return f"paid {number}"

        return Toolset([look, send, pay])

    def twice(self) -> list[tuple[str, int]]:
        """Return what must not happen twice and did."""
        return [what for what, count in self.done.items() if what[0] != "look" and count > 1]


def ten_calls(*turns: str) -> list[ScriptedTurn]:
    """Return a script from turns such as ``"look send pay"``: calls numbered on from 1, then the answer."""
    script, number = [], 0
    for names in turns:
        made = []
        for name in names.split():
            number += 1
            made.append(ScriptedCall(name, {"number": number}, id=f"c{number}"))
        script.append(says("", *made))
    assert number == 10
    return [*script, says(ANSWER)]


SCRIPTS = {
    "plain": ten_calls(*["look", "send", "look", "send", "send", "look", "look", "send", "look", "send"]),
    "parallel": ten_calls("look send look send", "send look send", "look send look"),
    "parked": ten_calls("look", "send look pay", "look", "pay", "send pay", "look send"),
}


def install(monkeypatch: pytest.MonkeyPatch, process: Process, *, eager: bool) -> None:
    """Make every write from now on this process's."""
    write_last, begin = Recorder._write_last, execute._run_begin
    runs_write, batch_write, last = writes.runs_write, writes.batch_write, writes.last_write
    monkeypatch.setattr(recorder_module, "runs_write", lambda *args: process.write(runs_write, *args))
    monkeypatch.setattr(Recorder, "_write_last", lambda *args: process.write(write_last, *args))
    monkeypatch.setattr(execute, "_run_begin", lambda *args: process.write(begin, *args))
    monkeypatch.setattr(writes, "batch_write", lambda *a, **k: process.statement(batch_write, *a, **k))
    monkeypatch.setattr(recorder_module, "last_write", lambda *args: process.statement(last, *args))
    if eager:
        monkeypatch.setattr(execute, "RunJournal", EagerJournal)


async def carry(
    cast: Cast,
    lane: Executor,
    monkeypatch: pytest.MonkeyPatch,
    script: Sequence[ScriptedTurn],
    processes: Callable[[int], Process],
    *,
    eager: bool,
) -> tuple[Run, World, list[Process]]:
    """Carry a run to its end through as many processes as it takes, deciding what it waits for.

    Args:
        processes: makes the process of an attempt, by its number.
    """
    run, _ = await sync_to_async(make_run)(cast)
    world = World()
    used: list[Process] = []
    for attempt in range(60):
        run = await sync_to_async(_fresh)(run)
        if run.status not in (RunStatus.QUEUED, RunStatus.RUNNING, RunStatus.PARKED):
            return run, world, used
        process = processes(attempt)
        used.append(process)
        with monkeypatch.context() as patch:
            install(patch, process, eager=eager)
            try:
                if run.status == RunStatus.PARKED:
                    await sync_to_async(_decide)(cast, run, process)
                else:
                    await _execute(run, lane, attempt, world, script)
            except BaseException:
                if not process.dead:
                    raise
    raise AssertionError(f"the run does not end: {run.status}")


async def _execute(
    run: Run, lane: Executor, attempt: int, world: World, script: Sequence[ScriptedTurn]
) -> None:
    ctx = await sync_to_async(take)(run.job, f"w{attempt}", lane)
    with tenant_scope(run.tenant_id):
        await run_execute(
            ctx,
            await ctx.in_db(Run.objects.get, pk=run.pk),
            toolset=world.tools(),
            provider=ScriptedProvider(script, by_history=True),
            system="Be brief.",
            history=HISTORY,
        )


def _decide(cast: Cast, run: Run, process: Process) -> None:
    with tenant_scope(run.tenant_id):
        for waiting in PendingDecision.objects.filter(run=run, status="pending").order_by("pk"):
            process.write(
                call_decide,
                tenant=cast.tenant,
                actor=cast.actor("member"),
                run=run,
                decision_id=waiting.pk,
                decision=Decision("approve"),
            )


def _fresh(run: Run) -> Run:
    with tenant_scope(run.tenant_id):
        row: Run = Run.objects.select_related("job").get(pk=run.pk)
        return row
