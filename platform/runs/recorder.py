"""Write a run's events: text deltas coalesced, each flush one statement, nothing written once the job is lost.

The fence is in the statement itself: the job must still be held by this worker in this attempt, and the run's
``last_seq`` must be what this recorder left it at. A worker that takes the run over always writes an event first
(``step_reset``), so a late statement of the old one finds another ``last_seq`` and writes nothing.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import Callable
from typing import Any

from django.db import connection, transaction

from jobs.context import JobContext, LeaseLost
from jobs.notify import CHANNEL
from runs.storable import json_storable
from runs.transcript import TEXT, Transcript

FLUSH_S = 0.08
FLUSH_CHARS = 2048

# synchronous_commit is off for deltas: a crash of the whole database may cost the last of them, and the run's resume
# resets the step they belong to. Anything later that is durable makes them durable too (the log is sequential).
_WRITE = """
WITH mine AS (
    UPDATE runs_run SET last_seq = last_seq + %(count)s
    WHERE id = %(run)s AND last_seq = %(seq)s AND EXISTS (
        SELECT 1 FROM jobs_job WHERE id = %(job)s AND worker = %(worker)s
        AND attempts = %(attempt)s AND status = 'running')
    RETURNING id, tenant_id, stop_requested_at IS NOT NULL AS stop
), written AS (
    INSERT INTO runs_runevent (tenant_id, run_id, seq, kind, data)
    SELECT mine.tenant_id, mine.id, %(seq)s + e.place, e.item->>0, e.item->1
    FROM mine, jsonb_array_elements(%(events)s::jsonb) WITH ORDINALITY AS e(item, place)
)
SELECT stop, pg_notify(%(channel)s, %(payload)s),
    CASE WHEN NOT %(durable)s THEN set_config('synchronous_commit', 'off', true) END
FROM mine
"""

Event = tuple[str, dict[str, Any]]


class Recorder:
    """Records the events of one attempt at a run; belongs to one event loop.

    Args:
        ctx: the job that carries the run.
        run_id: the run.
        transcript: its state so far; goes on with each event that is added.
        stop: set when a flush finds that somebody asked the run to stop, or when writing fails.

    Attributes:
        error: why writing failed in the background, None while all is well.
    """

    def __init__(
        self, ctx: JobContext, run_id: int, transcript: Transcript, stop: asyncio.Event
    ) -> None:
        self._ctx, self._run_id, self._stop = ctx, run_id, stop
        self.transcript = transcript
        self.error: BaseException | None = None
        self._written = transcript.seq
        self._pending: list[Event] = []
        self._size = 0
        self._flushed_at = 0.0
        self._dirty, self._full = asyncio.Event(), asyncio.Event()
        self._lock = asyncio.Lock()
        self._pump_task: asyncio.Task[None] | None = None
        self._closed = False

    def open(self) -> None:
        """Start writing deltas in the background."""
        self._pump_task = asyncio.create_task(self._pump(), name=f"recorder-{self._run_id}")

    async def close(self) -> None:
        """Stop writing in the background; what is pending stays unwritten."""
        # Never cancelled: a statement that goes on in its thread would race with the next one.
        self._closed = True
        self._dirty.set()
        self._full.set()
        if self._pump_task is not None:
            await self._pump_task

    def add(self, kind: str, data: dict[str, Any]) -> None:
        """Add an event that is written with the next delta or journal entry."""
        self._pending.append((kind, json_storable(data)))
        self.transcript.apply(self.transcript.seq + 1, *self._pending[-1])

    def step_begins(self) -> None:
        """Let the next delta go out at once, whenever the last one did."""
        self._flushed_at = 0.0

    def delta(self, kind: str, step: int, text: str) -> None:
        """Add streamed text: the first of a step is written at once, later ones together."""
        last = self._pending[-1] if self._pending else None
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
        self._dirty.set()
        if self._size >= FLUSH_CHARS:
            self._full.set()

    async def flush(self, *, also: Callable[[], None] | None = None, durable: bool = False) -> None:
        """Write what is pending, and in the same transaction what ``also`` writes.

        Args:
            also: runs in a database thread, before the events are written.
            durable: wait until the commit is on disk.

        Raises:
            LeaseLost: another worker has the job, or it ended; nothing was written.
        """
        async with self._lock:
            events, first = self._take()
            if not events and also is None:
                return
            stop = await self._ctx.in_db(self._write, events, first, also, durable)
            if stop:
                self._stop.set()

    async def finish(self, kind: str, data: dict[str, Any], also: Callable[[], None]) -> None:
        """Write the rest with the run's last event, and what ``also`` writes after it, in one durable transaction.

        Raises:
            LeaseLost: another worker has the job, or it ended; nothing was written.
        """
        await self.close()
        async with self._lock:
            self.add(kind, data)
            events, first = self._take()
            await self._ctx.in_db(self._write_last, events, first, also)

    def _take(self) -> tuple[list[Event], int]:
        """Take what is pending, with the number of the last event before it."""
        events, self._pending, self._size = self._pending, [], 0
        self._dirty.clear()
        self._full.clear()
        self._flushed_at = asyncio.get_running_loop().time()
        first = self._written
        self._written += len(events)
        return events, first

    async def _pump(self) -> None:
        loop = asyncio.get_running_loop()
        try:
            while not self._closed:
                await self._dirty.wait()
                pause = self._flushed_at + FLUSH_S - loop.time()
                if self._flushed_at and pause > 0 and not self._closed:
                    with contextlib.suppress(TimeoutError):
                        await asyncio.wait_for(self._full.wait(), pause)
                if not self._closed:
                    await self.flush()
        except Exception as error:  # noqa: BLE001 - raised again by the run, which is told to stop
            self.error = error
            self._stop.set()

    def _write(
        self,
        events: list[Event],
        first: int,
        also: Callable[[], None] | None,
        durable: bool,
    ) -> bool:
        if also is None:
            return self._statement(events, first, durable)
        with transaction.atomic():
            # The fence first: it locks the run's row, and nothing is written when the job is lost.
            stop = self._statement(events, first, durable)
            also()
        return stop

    def _write_last(self, events: list[Event], first: int, also: Callable[[], None]) -> None:
        with transaction.atomic():
            self._ctx.hold()  # job before run, the order in which everybody locks them
            self._statement(events, first, True)
            also()

    def _statement(self, events: list[Event], first: int, durable: bool) -> bool:
        with connection.cursor() as cursor:
            cursor.execute(
                _WRITE,
                {
                    "count": len(events),
                    "run": self._run_id,
                    "seq": first,
                    "job": self._ctx.job_id,
                    "worker": self._ctx.worker,
                    "attempt": self._ctx.attempt,
                    "events": json.dumps(events),
                    "channel": CHANNEL,
                    "payload": f"{self._ctx.tenant_id}:run:{self._run_id} {first + len(events)}",
                    "durable": durable,
                },
            )
            row = cursor.fetchone()
        if row is None:
            self._ctx.lost.set()
            raise LeaseLost(
                f"run {self._run_id}: job {self._ctx.job_id} is no longer held by {self._ctx.worker}"
            )
        return bool(row[0])
