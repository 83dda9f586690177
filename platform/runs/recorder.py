"""Write a run's events and journal: coalesced, with those of other runs, each fenced, nothing once the job is lost.

Text is written at moments that runs share (``runs.pace``); what several runs of a workspace want written in the same
moment, or while the write before is under way, is one statement and one commit (``runs.writes``).
"""

from __future__ import annotations

import asyncio
import weakref
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from django.db import transaction

from basics.gathering import Crowd, Gathered
from jobs.context import JobContext
from runs.pace import pace_here
from runs.transcript import TEXT, TOOL_PROGRESS, Transcript
from runs.writes import Batch, LastWrite, RunWrite, last_write, runs_write
from toolloop.storable import json_storable

FLUSH_CHARS = 2048


class Recorder:
    """Records one attempt at a run; belongs to one event loop.

    Args:
        ctx: the job that carries the run.
        run_id: the run.
        transcript: its state so far; goes on with each event that is added.
        stop: set when a flush finds that somebody asked the run to stop, or when writing fails.

    Attributes:
        error: why writing failed in the background, None while all is well.
    """

    def __init__(self, ctx: JobContext, run_id: int, transcript: Transcript, stop: asyncio.Event) -> None:
        self._ctx, self._run_id, self._stop = ctx, run_id, stop
        self.transcript = transcript
        self.error: BaseException | None = None
        self._written = transcript.seq
        self._pending = Batch()
        self._size = 0
        self._flushed_at = 0.0
        self._is_dirty, self._due = False, 0.0
        self._now = asyncio.Event()
        self._pace = pace_here()
        self._writes = _writes_here(ctx)
        self._lock = asyncio.Lock()
        self._pump_task: asyncio.Task[None] | None = None
        self._closed = False

    def open(self) -> None:
        """Start writing in the background what nobody waits for."""
        self._pump_task = asyncio.create_task(self._pump(), name=f"recorder-{self._run_id}")

    async def close(self) -> None:
        """Stop writing in the background; what is pending stays unwritten."""
        # Never cancelled: a statement that goes on in its thread would race with the next one.
        self._closed = True
        self._now.set()
        if self._pump_task is not None:
            await self._pump_task

    def add(self, kind: str, data: dict[str, Any]) -> None:
        """Add an event that is written with the next delta or journal entry."""
        self._pending.events.append((kind, json_storable(data)))
        self.transcript.apply(self.transcript.seq + 1, *self._pending.events[-1])

    def step_begins(self) -> None:
        """Let the next delta go out at once, whenever the last one did."""
        self._flushed_at = 0.0

    def delta(self, kind: str, step: int, text: str) -> None:
        """Add streamed text: the first of a step is written at once, later ones together."""
        events = self._pending.events
        last = events[-1] if events else None
        if last is not None and last[0] == kind and last[1]["step"] == step:
            clean = json_storable(text)
            last[1]["text"] += clean
            said = self.transcript.steps[step]
            if kind == TEXT:
                said.text += clean
            else:
                said.reasoning += clean
        else:
            self.add(kind, {"step": step, "text": text})
        self._size += len(text)
        self._pace.spoken(self._run_id)
        if not self._flushed_at or self._size >= FLUSH_CHARS:
            self._wake(0.0)
        else:
            self._wake(self._pace.next_after(self._flushed_at))

    def progress(self, step: int, call_id: str, text: str) -> None:
        """Add a piece of what a running tool yields; pieces of one call are written together."""
        events = self._pending.events
        last = events[-1] if events else None
        if (
            last is not None
            and last[0] == TOOL_PROGRESS
            and last[1]["call_id"] == call_id
            and last[1]["step"] == step
        ):
            clean = json_storable(text)
            last[1]["text"] += clean
            self.transcript.progress_add(step, call_id, clean)
        else:
            self.add(TOOL_PROGRESS, {"step": step, "call_id": call_id, "text": text})
        self._size += len(text)
        self._pace.spoken(self._run_id)
        self._wake(0.0 if self._size >= FLUSH_CHARS else self._soon())

    def step_keep(self, index: int, turn: dict[str, Any]) -> None:
        """Keep a finished turn; see ``call_keep`` for when it is written."""
        self._pending.steps.append((index, json_storable(turn)))
        self._wake(self._soon())

    def usage_keep(self, columns: dict[str, Any]) -> None:
        """Keep what a request used; what is kept in the same moment is written in one transaction with it."""
        self._pending.usage.append(columns)
        self._wake(self._soon())

    def call_keep(self, call: dict[str, Any]) -> None:
        """Keep a tool call as it stands now (the columns of its row).

        Written soon, or with whatever is flushed before that. Who relies on it (a call that must not run twice) flushes.
        """
        self._pending.calls[call["step"], call["call_id"]] = call
        self._wake(self._soon())

    def reads_keep(self, reads: list[dict[str, Any]]) -> None:
        """Keep which passages a call has fetched; written in one transaction with the call, which is kept next."""
        self._pending.reads += reads

    async def flush(self, *, durable: bool = False) -> None:
        """Write what is pending.

        Args:
            durable: wait until the commit is on disk.

        Raises:
            LeaseLost: another worker has the job, or it ended; nothing was written.
        """
        async with self._lock:
            if not self._pending:
                return
            batch, first = self._take()
            if await self._writes.ask(RunWrite(self._ctx, self._run_id, batch, first, durable)):
                self._stop.set()

    async def settle(self) -> None:
        """Write what has ended before the next thing begins, where a worker has died of this run already.

        What comes next may be what kills it, and a step that is not written is done again, and counts as not done.
        """
        if self._ctx.attempt > 1:
            await self.flush()

    async def finish(
        self,
        kind: str,
        data: dict[str, Any],
        also: Callable[[LastWrite], None],
        before: Callable[[], dict[str, Any]] | None = None,
        columns: Mapping[str, Any] | None = None,
    ) -> None:
        """Write the rest with this attempt's last event and end the job, in one durable transaction.

        Args:
            also: writes the caller's rows when the rest is written; told what that found.
            before: writes rows that the event must name; what it returns is added to the event's data.
            columns: what the run's row says from now on, by names of columns.

        Raises:
            LeaseLost: another worker has the job, or it ended; nothing was written.
        """
        await self.close()
        async with self._lock:
            self.add(kind, data)
            batch, first = self._take()
            await self._ctx.in_db(self._write_last, batch, first, also, before, columns or {})

    def _soon(self) -> float:
        return self._pace.next_after(self._pace.now)

    def _wake(self, due: float) -> None:
        """Have the pump write at a time of the loop's clock, or before."""
        if self._is_dirty and due >= self._due:
            return
        self._is_dirty, self._due = True, due
        if due <= self._pace.now:
            self._now.set()
        else:
            self._pace.call_at(due, self._ring)

    def _ring(self) -> None:
        if not self._is_dirty:
            return
        if self._due <= self._pace.now:
            self._now.set()
        else:  # It was set for what was written long ago, with something that could not wait; or a timer is early.
            self._pace.call_at(self._due, self._ring)

    def _take(self) -> tuple[Batch, int]:
        """Take what is pending, with the number of the last event before it."""
        batch, self._pending, self._size = self._pending, Batch(), 0
        self._is_dirty = False
        self._flushed_at = self._pace.now
        first = self._written
        self._written += len(batch.events)
        return batch, first

    async def _pump(self) -> None:
        try:
            while not self._closed:
                await self._now.wait()
                self._now.clear()
                if self._is_dirty and not self._closed:
                    await self.flush()
        except Exception as error:  # noqa: BLE001 - raised again by the run, which is told to stop
            self.error = error
            self._stop.set()

    def _write_last(
        self,
        batch: Batch,
        first: int,
        also: Callable[[LastWrite], None],
        before: Callable[[], dict[str, Any]] | None,
        columns: Mapping[str, Any],
    ) -> None:
        with transaction.atomic():
            if before is not None:
                self._ctx.hold()  # job before run, the order in which everybody locks them
                batch.events[-1][1].update(json_storable(before()))
            also(last_write(self._ctx, self._run_id, batch, first, columns))


Writes = Gathered[RunWrite, bool]
# By tenant; held by the recorders that use them.
_writes: weakref.WeakKeyDictionary[asyncio.AbstractEventLoop, weakref.WeakValueDictionary[int, Writes]] = (
    weakref.WeakKeyDictionary()
)


def _writes_here(ctx: JobContext) -> Writes:
    """Return what writes for the runs of this event loop that are of the job's workspace."""
    found = _writes.setdefault(asyncio.get_running_loop(), weakref.WeakValueDictionary())
    writes = found.get(ctx.tenant_id)
    if writes is None:

        async def write(group: list[RunWrite]) -> Sequence[bool | Exception]:
            return await ctx.in_db(runs_write, group)

        writes = found[ctx.tenant_id] = Gathered(write, Crowd(1))
    return writes
