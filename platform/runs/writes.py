"""The statements that record runs: events and journal entries in one round trip, fenced by each job's lease.

The fence is in the statement itself: the job must still be held by this worker in this attempt, and the run's
``last_seq`` must be what this recorder left it at. A worker that takes the run over always writes an event first
(``step_reset``), so a late statement of the old one finds another ``last_seq`` and writes nothing.

Runs of one workspace that are written in the same moment share a statement, each behind its own fence. It never spans
workspaces: a statement has one tenant's rights, and nobody waits for a row that a neighbour has locked.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import structlog
from django.conf import settings
from django.db import DatabaseError, connection, transaction

from jobs.context import COMPLETE, JobContext, LeaseLost
from jobs.notify import CHANNEL, notify
from runs.models import Run, RunEvent
from toolloop.storable import json_storable
from webhooks.models import Event as WebhookEvent
from webhooks.services import webhooks_wanting

log = structlog.get_logger(__name__)

Event = tuple[str, dict[str, Any]]

# One run waits for its row. Several pass over rows that somebody has locked, so that no run holds up another and no two
# statements wait for each other; who was passed over is written alone.
_ONE = """
WITH mine AS (
    UPDATE runs_run SET last_seq = last_seq + %(count)s
    WHERE tenant_id = own_tenant() AND id = %(run)s AND last_seq = %(seq)s AND EXISTS (
        SELECT 1 FROM jobs_job WHERE tenant_id = own_tenant() AND id = %(job)s AND worker = %(worker)s
        AND attempts = %(attempt)s AND status = 'running')
    RETURNING id, tenant_id, user_id, last_seq, %(seq)s::int AS seq, stop_requested_at IS NOT NULL AS stop
)"""

# The last one of an attempt ends its job, whose row it locks before the run's, the order in which everybody locks them.
_LAST = f"""
WITH ended AS ({COMPLETE}), mine AS (
    UPDATE runs_run SET last_seq = last_seq + %(count)s{{columns}}
    WHERE tenant_id = own_tenant() AND id = %(run)s AND last_seq = %(seq)s AND EXISTS (SELECT FROM ended)
    RETURNING id, tenant_id, user_id, last_seq, %(seq)s::int AS seq, stop_requested_at IS NOT NULL AS stop
)"""  # noqa: S608 - a constant

_CASTS = {"usage": "::jsonb"}

_MANY = """
WITH given AS (
    SELECT * FROM unnest(%(runs)s::bigint[], %(seqs)s::int[], %(counts)s::int[], %(jobs)s::bigint[], %(workers)s::text[],
        %(attempts)s::int[]) AS g(run, seq, count, job, worker, attempt)
), held AS (
    SELECT r.id, g.seq, g.count FROM given g JOIN runs_run r ON r.tenant_id = own_tenant() AND r.id = g.run
    WHERE r.last_seq = g.seq AND EXISTS (
        SELECT 1 FROM jobs_job j WHERE j.tenant_id = own_tenant() AND j.id = g.job AND j.worker = g.worker
        AND j.attempts = g.attempt AND j.status = 'running')
    FOR NO KEY UPDATE OF r SKIP LOCKED
), mine AS (
    UPDATE runs_run r SET last_seq = r.last_seq + held.count FROM held
    WHERE r.tenant_id = own_tenant() AND r.id = held.id AND r.last_seq = held.seq
    RETURNING r.id, r.tenant_id, r.user_id, r.last_seq, held.seq, r.stop_requested_at IS NOT NULL AS stop
)"""

# Each part is given as [[run, its rows], ...].
_EVENTS = """, written AS (
    INSERT INTO runs_runevent (tenant_id, run_id, seq, kind, data)
    SELECT mine.tenant_id, mine.id, mine.seq + e.place, e.item->>0, e.item->1
    FROM jsonb_array_elements(%(events)s::jsonb) AS g JOIN mine ON mine.id = (g->>0)::bigint,
        jsonb_array_elements(g->1) WITH ORDINALITY AS e(item, place)
)"""

_STEPS = """, steps AS (
    INSERT INTO runs_runstep (tenant_id, run_id, index, turn)
    SELECT mine.tenant_id, mine.id, (s->>0)::int, s->1
    FROM jsonb_array_elements(%(steps)s::jsonb) AS g JOIN mine ON mine.id = (g->>0)::bigint,
        jsonb_array_elements(g->1) AS s
)"""

_CALLS = """, calls AS (
    INSERT INTO runs_toolcall (tenant_id, run_id, user_id, step, call_id, parent_call_id, path, name, tool_version,
        arguments, arguments_masked, decision, rule_id, decision_why, has_side_effects, status, content, payload,
        result_size, cost_usd, error_code, attempts, started_at, finished_at, duration_ms)
    SELECT mine.tenant_id, mine.id, mine.user_id, c.*
    FROM jsonb_array_elements(%(calls)s::jsonb) AS g JOIN mine ON mine.id = (g->>0)::bigint,
        jsonb_to_recordset(g->1) AS c(step int, call_id text, parent_call_id text, path text,
        name text, tool_version text, arguments jsonb, arguments_masked jsonb, decision text, rule_id bigint,
        decision_why text, has_side_effects bool, status text, content text, payload jsonb, result_size int,
        cost_usd numeric, error_code text, attempts int, started_at timestamptz, finished_at timestamptz, duration_ms int)
    ON CONFLICT ON CONSTRAINT tool_call_once DO UPDATE SET
        tool_version = excluded.tool_version, arguments = excluded.arguments,
        arguments_masked = excluded.arguments_masked, decision = excluded.decision, rule_id = excluded.rule_id,
        decision_why = excluded.decision_why, has_side_effects = excluded.has_side_effects,
        status = excluded.status, content = excluded.content, payload = excluded.payload,
        result_size = excluded.result_size, error_code = excluded.error_code, attempts = excluded.attempts,
        finished_at = excluded.finished_at, duration_ms = excluded.duration_ms
)"""

_USAGE = """, used AS (
    INSERT INTO runs_usagerecord (tenant_id, run_id, user_id, step, kind, provider, model, service_tier, input_tokens,
        cached_tokens, cache_write_tokens, output_tokens, reasoning_tokens, cost_usd, charged_usd, hold_id, attribution,
        duration_ms)
    SELECT mine.tenant_id, mine.id, mine.user_id, u.*
    FROM jsonb_array_elements(%(usage)s::jsonb) AS g JOIN mine ON mine.id = (g->>0)::bigint,
        jsonb_to_recordset(g->1) AS u(step int, kind text, provider text, model text,
        service_tier text, input_tokens bigint, cached_tokens bigint, cache_write_tokens bigint, output_tokens bigint,
        reasoning_tokens bigint, cost_usd numeric, charged_usd numeric, hold_id bigint, attribution jsonb,
        duration_ms integer)
)"""

_READS = """, reads AS (
    INSERT INTO runs_chunkread (tenant_id, run_id, user_id, chunk_id, document_id, document_name, version,
        collection_name, tool)
    SELECT mine.tenant_id, mine.id, mine.user_id, r.*
    FROM jsonb_array_elements(%(reads)s::jsonb) AS g JOIN mine ON mine.id = (g->>0)::bigint,
        jsonb_to_recordset(g->1) AS r(chunk_id bigint, document_id bigint, document_name text,
        version int, collection_name text, tool text)
    ON CONFLICT DO NOTHING
)"""

# synchronous_commit is off for what may be lost: a crash of the whole database may cost the last of it, and the run's
# resume resets the step it belongs to. Anything later that is durable makes it durable too (the log is sequential).
# Readers are told of all runs in one notification.
_RESULT = """
SELECT array_agg(id), array_agg(id) FILTER (WHERE stop),
    CASE WHEN count(*) > 0 THEN pg_notify(%(channel)s, string_agg(tenant_id || ':run:' || id || ' ' || last_seq, E'\n')) END,
    CASE WHEN NOT %(durable)s THEN set_config('synchronous_commit', 'off', true) END"""
_HAS_WEBHOOKS = f", {webhooks_wanting(WebhookEvent.RUN_FINISHED)}"

MOST_TOGETHER = 100
"""Runs that one statement writes at most; Postgres takes notifications of 8,000 bytes."""


@dataclass(slots=True)
class Batch:
    """What one statement writes; the calls by (step, call id), each as it stands at last."""

    events: list[Event] = field(default_factory=list)
    steps: list[tuple[int, dict[str, Any]]] = field(default_factory=list)
    calls: dict[tuple[int, str], dict[str, Any]] = field(default_factory=dict)
    usage: list[dict[str, Any]] = field(default_factory=list)
    reads: list[dict[str, Any]] = field(default_factory=list)

    def __bool__(self) -> bool:
        return bool(self.events or self.steps or self.calls or self.usage or self.reads)


@dataclass(frozen=True, slots=True)
class RunWrite:
    """What one run wants written: a batch as the run's events after ``first``; ``durable`` waits until it is on disk."""

    ctx: JobContext
    run_id: int
    batch: Batch
    first: int
    durable: bool = False


@dataclass(frozen=True, slots=True)
class LastWrite:
    """What an attempt's last write finds.

    Attributes:
        stop_requested: whether somebody has asked the run to stop.
        has_webhooks: whether a webhook wants to know that a run has ended; asking takes a statement otherwise.
    """

    stop_requested: bool
    has_webhooks: bool


def runs_write(writes: Sequence[RunWrite]) -> list[bool | Exception]:
    """Write for several runs of one workspace, each all of it or nothing; for a database thread.

    One statement for all that can share one. A run that it did not write (its lease is lost, somebody has locked its row,
    or a neighbour's rows were refused) is written alone, so that nobody's failure is another's.

    Returns:
        For each what ``batch_write`` returns or raises.
    """
    told: dict[int, bool] = {}
    together = _together(writes)
    if len(together) > 1:
        try:
            told = _write_many(together)
        except DatabaseError as error:
            log.warning("runs_written_apart", runs=len(together), error=str(error)[:300])
    # Two writes of one run come in their order.
    shared = {id(write) for write in together if write.run_id in told}
    return [told[write.run_id] if id(write) in shared else _alone(write) for write in writes]


def _together(writes: Sequence[RunWrite]) -> list[RunWrite]:
    """Return the writes that go into one statement: the first of each run, unless its job must be told too."""
    # A row that is locked inside a WITH is nothing that Citus hands on.
    first = {} if settings.CITUS else {write.run_id: write for write in reversed(writes)}
    return [write for write in first.values() if not _is_advance(write.ctx, write.batch)][:MOST_TOGETHER]


def _alone(write: RunWrite) -> bool | Exception:
    try:
        return batch_write(write.ctx, write.run_id, write.batch, write.first, durable=write.durable)
    except Exception as error:  # noqa: BLE001 - raised by the run that it is about
        return error


def _write_many(writes: Sequence[RunWrite]) -> dict[int, bool]:
    """Return for each run that was written whether somebody has asked it to stop."""
    values: dict[str, Any] = {
        "runs": [write.run_id for write in writes],
        "seqs": [write.first for write in writes],
        "counts": [len(write.batch.events) for write in writes],
        "jobs": [write.ctx.job_id for write in writes],
        "workers": [write.ctx.worker for write in writes],
        "attempts": [write.ctx.attempt for write in writes],
    }
    durable = any(write.durable for write in writes)
    return _executed(_MANY, values, [(write.run_id, write.batch) for write in writes], durable)[0]


def _executed(
    fence: str,
    values: dict[str, Any],
    batches: Sequence[tuple[int, Batch]],
    durable: bool,
    more: str = "",
) -> tuple[dict[int, bool], Sequence[Any]]:
    """Return for each run that was written whether somebody has asked it to stop, and the answers to what ``more`` asks."""
    parts = [fence]
    rows: tuple[tuple[str, str, Callable[[Batch], Sequence[Any]]], ...] = (
        (_EVENTS, "events", lambda batch: batch.events),
        (_STEPS, "steps", lambda batch: batch.steps),
        (_CALLS, "calls", lambda batch: list(batch.calls.values())),
        (_USAGE, "usage", lambda batch: batch.usage),
        (_READS, "reads", lambda batch: batch.reads),
    )
    for part, name, of in rows:
        given = [(run, found) for run, batch in batches if (found := of(batch))]
        if given:
            parts.append(part)
            values[name] = json.dumps(given)
    with connection.cursor() as cursor:
        cursor.execute(
            "".join([*parts, _RESULT, more, "\nFROM mine"]),
            {**values, "channel": CHANNEL, "durable": durable},
        )
        written, stopping, _notified, _synchronous, *asked = cursor.fetchone()
    return {run: run in (stopping or ()) for run in written or ()}, asked


def _is_advance(ctx: JobContext, batch: Batch) -> bool:
    """Tell whether a batch finishes a step or a call while workers' deaths are counted against it."""
    if not ctx.deaths:
        return False
    return bool(batch.steps) or any(call["finished_at"] for call in batch.calls.values())


@contextmanager
def _advancing(ctx: JobContext, batch: Batch) -> Iterator[None]:
    """Write a finished turn or call with word of it to the job: from here a worker's death is another step's.

    A transaction of two statements only where a worker has died in the step before, and job before run, as everywhere.
    """
    if not _is_advance(ctx, batch):
        yield
        return
    with transaction.atomic():
        ctx.advanced()
        yield


def batch_write(ctx: JobContext, run_id: int, batch: Batch, first: int, *, durable: bool) -> bool:
    """Write a batch as the run's events after ``first``, all of it or nothing.

    Args:
        durable: wait until the commit is on disk.

    Returns:
        Whether somebody has asked the run to stop.

    Raises:
        LeaseLost: another worker has the job, or it ended; nothing was written.
    """
    values = _fence(ctx, run_id, batch, first)
    with _advancing(ctx, batch):
        told, _ = _executed(_ONE, values, [(run_id, batch)], durable)
    return _told(ctx, run_id, told)


def last_write(
    ctx: JobContext, run_id: int, batch: Batch, first: int, columns: Mapping[str, Any]
) -> LastWrite:
    """Write an attempt's last batch, change the run and end the job, by one statement in the caller's durable transaction.

    Args:
        columns: what else the run's row says from now on; the names are ours.

    Raises:
        LeaseLost: another worker has the job, or it ended; nothing may be committed.
    """
    changed = "".join(f", {name} = %(run_{name})s{_CASTS.get(name, '')}" for name in columns)
    values = {
        **_fence(ctx, run_id, batch, first),
        **{f"run_{name}": value for name, value in columns.items()},
    }
    fence = _LAST.format(columns=changed)
    told, (has_webhooks,) = _executed(fence, values, [(run_id, batch)], durable=True, more=_HAS_WEBHOOKS)
    stopping = _told(ctx, run_id, told)
    ctx.completed()
    return LastWrite(stopping, has_webhooks)


def _fence(ctx: JobContext, run_id: int, batch: Batch, first: int) -> dict[str, Any]:
    return {
        "count": len(batch.events),
        "run": run_id,
        "seq": first,
        "job": ctx.job_id,
        "worker": ctx.worker,
        "attempt": ctx.attempt,
    }


def _told(ctx: JobContext, run_id: int, told: Mapping[int, bool]) -> bool:
    if run_id not in told:
        ctx.lost.set()
        raise LeaseLost(f"run {run_id}: job {ctx.job_id} is no longer held by {ctx.worker}")
    return told[run_id]


def event_append(run: Run, kind: str, data: dict[str, Any]) -> None:
    """Add an event to a run that no worker holds, in the transaction that holds the run's lock."""
    run.last_seq += 1
    run.save(update_fields=["last_seq"])
    RunEvent.objects.create(
        tenant_id=run.tenant_id, run=run, seq=run.last_seq, kind=kind, data=json_storable(data)
    )
    notify(run.tenant_id, f"run:{run.pk}", run.last_seq)
