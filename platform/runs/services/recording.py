"""Record runs that kept a journal of their own while they went on, in the transaction that ends them."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from django.db import connection

from runs.journal import call_arguments, call_key, name_storable, result_size, version_of
from runs.models import CallPath, ToolCallStatus
from runs.reads import reads_of
from tenancy.models import Tenant
from toolloop.messages import ToolCall, ToolResult, Turn
from toolloop.storable import json_storable, text_storable
from toolloop.tokens import Usage
from toolloop.tools import Tool
from toolloop.tools.tool import Verdict

# By hand and as one JSON value: the ORM takes longer to write these statements than the database to carry them out.
_RECORD = """
WITH given AS (
    SELECT r.item, r.place FROM jsonb_array_elements(%(runs)s::jsonb) WITH ORDINALITY AS r(item, place)
), made AS (
    INSERT INTO runs_run (tenant_id, user_id, kind, model, status, request, answer, last_seq,
        stop_reason, limit_reached, error_code, error_message, is_retryable, usage, cost_usd,
        started_at, finished_at)
    SELECT %(tenant)s, %(user)s, r.item->>'kind', r.item->>'model', 'completed', r.item->'request',
        r.item->>'answer', 0, 'end', '', '', '', false, r.item->'usage',
        (r.item->>'cost_usd')::numeric,
        now() - make_interval(secs => (r.item->>'seconds')::float), now()
    FROM given r ORDER BY r.place RETURNING id
), runs AS (
    SELECT m.id, g.item FROM given g
    JOIN (SELECT id, row_number() OVER (ORDER BY id) AS place FROM made) m USING (place)
), steps AS (
    INSERT INTO runs_runstep (tenant_id, run_id, index, turn)
    SELECT %(tenant)s, runs.id, t.place - 1, t.turn
    FROM runs, jsonb_array_elements(runs.item->'turns') WITH ORDINALITY AS t(turn, place)
), calls AS (
    INSERT INTO runs_toolcall (tenant_id, run_id, user_id, parent_call_id, has_side_effects,
        attempts, started_at, finished_at, step, call_id, path, name, tool_version, arguments,
        arguments_masked, decision, rule_id, decision_why, status, content, payload, result_size,
        error_code, duration_ms)
    SELECT %(tenant)s, runs.id, %(user)s, '', false, 1,
        now() - make_interval(secs => c.duration_ms / 1000.0), now(), c.*
    FROM runs, jsonb_to_recordset(runs.item->'calls') AS c (step int, call_id text, path text,
        name text, tool_version text, arguments jsonb, arguments_masked jsonb, decision text,
        rule_id bigint, decision_why text, status text, content text, payload jsonb,
        result_size int, error_code text, duration_ms int)
), reads AS (
    INSERT INTO runs_chunkread (tenant_id, run_id, user_id, chunk_id, document_id, document_name,
        version, collection_name, tool)
    SELECT %(tenant)s, runs.id, %(user)s, c.*
    FROM runs, jsonb_to_recordset(runs.item->'reads') AS c (chunk_id bigint, document_id bigint,
        document_name text, version int, collection_name text, tool text)
    ON CONFLICT DO NOTHING
)
SELECT id FROM runs ORDER BY id
"""


@dataclass(frozen=True, slots=True)
class AnsweredCall:
    """A tool call that has ended.

    Attributes:
        tool: None for a name that the toolset does not know.
        verdict: what the policy said, None where it was not asked.
    """

    step: int
    call: ToolCall
    result: ToolResult
    seconds: float
    tool: Tool | None
    verdict: Verdict | None


@dataclass(frozen=True, slots=True)
class AnsweredRun:
    """A run that has come to an answer.

    Attributes:
        request: what it was started with, as ``Run.request`` keeps it; JSON.
        cost_usd: None where the price is not known.
    """

    kind: str
    model: str
    request: Mapping[str, Any]
    answer: str
    turns: Sequence[Turn]
    calls: Sequence[AnsweredCall]
    usage: Usage
    cost_usd: float | None
    seconds: float


def runs_record(*, tenant: Tenant, user_id: int | None, runs: Sequence[AnsweredRun]) -> list[int]:
    """Write runs with their turns, calls and reads, in the caller's transaction; returns their ids in order.

    Their usage is not written: whoever paid for the calls has recorded it then.
    """
    if not runs:
        return []
    told = [
        {
            "kind": run.kind,
            "model": run.model,
            "request": json_storable(dict(run.request)),
            "answer": text_storable(run.answer),
            "usage": run.usage.to_json(),
            "cost_usd": run.cost_usd,
            "seconds": run.seconds,
            "turns": [json_storable(turn.to_json()) for turn in run.turns],
            "calls": [_call_columns(call) for call in run.calls],
            "reads": [
                read
                for call in run.calls
                if not call.result.is_error
                for read in reads_of(call.call.name, call.result.payload)
            ],
        }
        for run in runs
    ]
    values = {"tenant": tenant.pk, "user": user_id, "runs": json.dumps(told)}
    with connection.cursor() as cursor:
        cursor.execute(_RECORD, values)
        return [pk for (pk,) in cursor.fetchall()]


def _call_columns(made: AnsweredCall) -> dict[str, Any]:
    arguments, shown = call_arguments(made.call, made.tool)
    verdict = made.verdict
    return {
        "step": made.step,
        "call_id": call_key(made.step, made.call.id)[1],
        "path": CallPath.JOB.value,
        "name": name_storable(made.call.name),
        "tool_version": version_of(made.tool),
        "arguments": arguments,
        "arguments_masked": shown,
        "decision": "" if verdict is None else str(verdict.effect),
        "rule_id": None if verdict is None else verdict.rule,
        "decision_why": "" if verdict is None else text_storable(verdict.why),
        "status": (ToolCallStatus.FAILED if made.result.is_error else ToolCallStatus.SUCCEEDED).value,
        "content": text_storable(made.result.content),
        "payload": json_storable(made.result.payload),
        "result_size": result_size(made.result),
        "error_code": made.result.error_code[:60],
        "duration_ms": round(made.seconds * 1000),
    }
