"""The statements that record a run: events and journal entries in one round trip, fenced by the job's lease.

The fence is in the statement itself: the job must still be held by this worker in this attempt, and the run's
``last_seq`` must be what this recorder left it at. A worker that takes the run over always writes an event first
(``step_reset``), so a late statement of the old one finds another ``last_seq`` and writes nothing.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from django.db import connection, transaction

from jobs.context import JobContext, LeaseLost
from jobs.notify import CHANNEL

Event = tuple[str, dict[str, Any]]

_FENCE = """
WITH mine AS (
    UPDATE runs_run SET last_seq = last_seq + %(count)s
    WHERE tenant_id = own_tenant() AND id = %(run)s AND last_seq = %(seq)s AND EXISTS (
        SELECT 1 FROM jobs_job WHERE tenant_id = own_tenant() AND id = %(job)s AND worker = %(worker)s
        AND attempts = %(attempt)s AND status = 'running')
    RETURNING id, tenant_id, user_id, stop_requested_at IS NOT NULL AS stop
), written AS (
    INSERT INTO runs_runevent (tenant_id, run_id, seq, kind, data)
    SELECT mine.tenant_id, mine.id, %(seq)s + e.place, e.item->>0, e.item->1
    FROM mine, jsonb_array_elements(%(events)s::jsonb) WITH ORDINALITY AS e(item, place)
)"""

_STEPS = """, steps AS (
    INSERT INTO runs_runstep (tenant_id, run_id, index, turn)
    SELECT mine.tenant_id, mine.id, (s->>0)::int, s->1
    FROM mine, jsonb_array_elements(%(steps)s::jsonb) AS s
)"""

_CALLS = """, calls AS (
    INSERT INTO runs_toolcall (tenant_id, run_id, user_id, step, call_id, parent_call_id, path, name, tool_version,
        arguments, arguments_masked, decision, rule_id, decision_why, has_side_effects, status, content, payload,
        result_size, cost_usd, error_code, attempts, started_at, finished_at, duration_ms)
    SELECT mine.tenant_id, mine.id, mine.user_id, c.*
    FROM mine, jsonb_to_recordset(%(calls)s::jsonb) AS c(step int, call_id text, parent_call_id text, path text,
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
    FROM mine, jsonb_to_recordset(%(usage)s::jsonb) AS u(step int, kind text, provider text, model text,
        service_tier text, input_tokens bigint, cached_tokens bigint, cache_write_tokens bigint, output_tokens bigint,
        reasoning_tokens bigint, cost_usd numeric, charged_usd numeric, hold_id bigint, attribution jsonb,
        duration_ms integer)
)"""

_READS = """, reads AS (
    INSERT INTO runs_chunkread (tenant_id, run_id, user_id, chunk_id, document_id, document_name, version,
        collection_name, tool)
    SELECT mine.tenant_id, mine.id, mine.user_id, r.*
    FROM mine, jsonb_to_recordset(%(reads)s::jsonb) AS r(chunk_id bigint, document_id bigint, document_name text,
        version int, collection_name text, tool text)
    ON CONFLICT DO NOTHING
)"""

# synchronous_commit is off for what may be lost: a crash of the whole database may cost the last of it, and the run's
# resume resets the step it belongs to. Anything later that is durable makes it durable too (the log is sequential).
_RESULT = """
SELECT stop, pg_notify(%(channel)s, %(payload)s),
    CASE WHEN NOT %(durable)s THEN set_config('synchronous_commit', 'off', true) END
FROM mine
"""


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


@contextmanager
def _advancing(ctx: JobContext, batch: Batch) -> Iterator[None]:
    """Write a finished turn or call with word of it to the job: from here a worker's death is another step's.

    A transaction of two statements only where a worker has died in the step before, and job before run, as everywhere.
    """
    ended = batch.steps or any(call["finished_at"] for call in batch.calls.values())
    if not ended or not ctx.deaths:
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
    parts = [_FENCE]
    values: dict[str, Any] = {
        "count": len(batch.events),
        "run": run_id,
        "seq": first,
        "job": ctx.job_id,
        "worker": ctx.worker,
        "attempt": ctx.attempt,
        "events": json.dumps(batch.events),
        "channel": CHANNEL,
        "payload": f"{ctx.tenant_id}:run:{run_id} {first + len(batch.events)}",
        "durable": durable,
    }
    rows: tuple[tuple[str, str, list[Any]], ...] = (
        (_STEPS, "steps", batch.steps),
        (_CALLS, "calls", list(batch.calls.values())),
        (_USAGE, "usage", batch.usage),
        (_READS, "reads", batch.reads),
    )
    for part, name, given in rows:
        if given:
            parts.append(part)
            values[name] = json.dumps(given)
    with _advancing(ctx, batch), connection.cursor() as cursor:
        cursor.execute("".join([*parts, _RESULT]), values)
        row = cursor.fetchone()
    if row is None:
        ctx.lost.set()
        raise LeaseLost(f"run {run_id}: job {ctx.job_id} is no longer held by {ctx.worker}")
    return bool(row[0])
